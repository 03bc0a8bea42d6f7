"""A lexicon: a sparse autoencoder for one encoder, and a name for each of its latents.

A lexicon for MaxSim may have a second autoencoder, for the vector of the whole text. Its latents are numbered after
those of the first, so that one set of names, one index and one explanation serve both.

A lexicon whose encoder was trained with it keeps what was changed in that encoder, and brings it along.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from lexent import arguments, artifact, recipes
from lexent.artifact import MANIFEST, check_sizes, read_manifest, recover
from lexent.encoders import Encoder
from lexent.encoders.buckets import FOLDER as ENCODER
from lexent.encoders.buckets import BucketParts, read_base
from lexent.encoders.encoder import DEFAULT
from lexent.errors import ArtifactError, MismatchError, NotFoundError
from lexent.lexicon.bucket_weights import FILE as BUCKET_WEIGHTS
from lexent.lexicon.bucket_weights import BucketWeights
from lexent.lexicon.concepts import Concept, Concepts
from lexent.recipes import Recipe
from lexent.sae.autoencoder import CONFIG, SparseAutoencoder
from lexent.sae.config import SAEConfig
from lexent.types import Level, Match, RowCodes, States

CARD = "README.md"
WHOLE = "whole"
"""The folder, inside a lexicon's, of the autoencoder for whole texts."""


@dataclass(frozen=True, slots=True)
class LexiconInfo:
    """The metadata of a lexicon."""

    name: str
    encoder_id: str
    encoder_fingerprint: str
    level: Level = "tokens"
    """The states it reads: tokens or pooled."""
    training: dict[str, Any] = field(default_factory=dict)
    """How it was trained and what was measured; free form."""
    match: Match = "documents"
    """What its codes were trained to be compared by."""


@dataclass(eq=False, repr=False)
class Lexicon:
    """Codes states and names the codes."""

    sae: SparseAutoencoder
    concepts: Concepts
    info: LexiconInfo
    _: KW_ONLY
    whole: SparseAutoencoder | None = None
    """Codes the vector of a whole text; its latents are numbered from `token_size` on."""
    own_encoder: BucketParts | None = None
    """The encoder that was trained with it."""
    bucket_weights: BucketWeights | None = None
    """How much its buckets count for a query."""

    def __post_init__(self) -> None:
        if len(self.concepts) != self.size:
            raise ArtifactError(f"{len(self.concepts)} names were given for the {self.size} latents of {self.name}")

    @property
    def name(self) -> str:
        """The name in reports and manifests."""
        return self.info.name

    @cached_property
    def size(self) -> int:
        """How many latents there are, those for whole texts with them."""
        return self.token_size + (self.whole.config.d_sae if self.whole is not None else 0)

    @property
    def token_size(self) -> int:
        """How many latents the first autoencoder has; those of whole texts are numbered from here on."""
        return self.sae.config.d_sae

    @property
    def encoder_id(self) -> str:
        """What loads its encoder."""
        return self.info.encoder_id

    @property
    def buckets(self) -> int:
        """Equal parts of its latents, each of which reads a layer of its own."""
        return self.sae.config.buckets

    @property
    def encoder_fingerprint(self) -> str:
        """The fingerprint of the encoder whose states the lexicon codes."""
        return self.info.encoder_fingerprint

    @property
    def learned_from_pairs(self) -> bool:
        """Whether it was trained on pairs of queries and documents (ssr, uhd), and not on texts alone."""
        return self.info.match == "maxsim" or self.sae.config.architecture == "winners"

    @cached_property
    def hash(self) -> str:
        """Changes when the codes would; names may change freely."""
        if self.whole is None:
            return self.sae.hash()
        return hashlib.sha256(f"{self.sae.hash()} {self.whole.hash()}".encode()).hexdigest()[:16]

    def codes(self, states: States, *, k: int) -> RowCodes:
        """The k strongest latents of each state."""
        arguments.instance("states", states, States, allowed="States, as an encoder gives them")
        arguments.whole("k", k, least=1)
        return self.sae.encode(states, k=k)

    def whole_codes(self, states: States, *, k: int | None = None) -> RowCodes:
        """The k strongest latents of each whole text, from its pooled state; by default as many as in training."""
        if self.whole is None:
            raise MismatchError(
                f'the lexicon "{self.name}" has no concepts for whole texts; take a recipe without them, or train one '
                "that has: lexent train TEXTS --recipe ssr --whole --out DIR"
            )
        arguments.instance("states", states, States, allowed="States, as an encoder gives them")
        codes = self.whole.encode(states, k=arguments.whole_or_none("k", k, least=1))
        return RowCodes(codes.ids + np.int32(self.token_size), codes.values, codes.offsets)

    def renamed(self, concepts: Concepts, info: LexiconInfo | None = None) -> Lexicon:
        """The same codes under other names."""
        return replace(self, concepts=concepts, info=info or self.info)

    def weighing(self, bucket_weights: BucketWeights | None) -> Lexicon:
        """The same codes and names with other weights of buckets."""
        return replace(self, bucket_weights=bucket_weights)

    def label(self, latent: int) -> str:
        """The name of a latent."""
        return self.concept(latent).label

    def concept(self, latent: int) -> Concept:
        """The concept of a latent, by number."""
        if type(latent) is not int or not 0 <= latent < self.size:
            latent = arguments.whole("latent", latent, least=0, most=self.size - 1)
        return self.concepts[latent]

    def resolve(self, name: str | int) -> Concept:
        """The concept of that number or name; an unknown one raises an error that suggests the nearest."""
        return self.concepts.resolve(name)

    def find(self, text: str, limit: int = 10) -> list[Concept]:
        """Concepts whose names hold the words of the text."""
        return self.concepts.find(text, limit=limit)

    def neighbours(self, latent: int, limit: int = 8) -> list[tuple[Concept, float]]:
        """The concepts whose directions are nearest, with the cosine.

        Concepts of whole texts are compared with those of whole texts, those of a bucket with those of the bucket.
        """
        latent = arguments.whole("latent", latent, least=0, most=self.size - 1)
        limit = arguments.whole("limit", limit, least=1)
        size = self.token_size // self.buckets
        first = latent // size * size
        rows = self.sae.decoder_rows[first : first + size]
        if self.whole is not None and latent >= self.token_size:
            first, rows = self.token_size, self.whole.decoder_rows
        cosine = rows @ rows[latent - first]
        cosine[latent - first] = -np.inf
        nearest = np.argsort(-cosine, kind="stable")[: min(limit, len(rows) - 1)]
        return [(self.concepts[first + int(other)], float(cosine[other])) for other in nearest]

    def directions(self, latents: NDArray[np.int64]) -> NDArray[np.float32]:
        """float32[n, width]: the directions of concepts. Those of other buckets, or of whole texts, are orthogonal."""
        size = self.token_size // self.buckets
        bucket = np.minimum(latents // size, self.buckets)
        width = self.sae.config.width
        found = np.zeros((len(latents), (self.buckets + (self.whole is not None)) * width), np.float32)
        for place in np.unique(bucket).tolist():
            own = np.flatnonzero(bucket == place)
            sae, first = (self.sae, 0) if place < self.buckets else (self.whole, self.token_size)
            assert sae is not None
            found[own, place * width : place * width + width] = sae.decoder_rows_of(latents[own] - first)
        return found

    def check(self, encoder: Encoder, *, level: Level | None = None) -> None:
        """Refuse an encoder that this lexicon was not trained for, and states of another level."""
        if not hasattr(encoder, "fingerprint"):
            raise arguments.refused("encoder", encoder, "a lexent encoder: lexent.load_encoder(NAME)")
        if level is not None and arguments.choice("level", level, get_args(Level)) != self.info.level:
            raise MismatchError(
                f'the lexicon "{self.name}" reads {self.info.level} states and the recipe gives {level} ones; '
                f"take another recipe or lexicon, or train one: lexent train TEXTS --level {level} --out DIR"
            )
        # An adapter changes an encoder's vectors, not the space that they are in.
        if getattr(encoder, "lexicon_fingerprint", encoder.fingerprint) != self.encoder_fingerprint:
            if self.own_encoder is not None:
                raise MismatchError(
                    f'the lexicon "{self.name}" has an encoder of its own, which was trained with it '
                    f'({self.encoder_fingerprint}); given: "{encoder.id}" ({encoder.fingerprint}); leave --encoder out'
                )
            raise MismatchError(
                f'the lexicon "{self.name}" was trained for the encoder "{self.encoder_id}" '
                f'({self.encoder_fingerprint}), not for "{encoder.id}" ({encoder.fingerprint}); '
                f"train one for it: lexent train TEXTS --encoder {encoder.id} --out DIR"
            )

    def save(self, out: str | Path, *, card: str = "", overwrite: bool = False) -> Path:
        """Write beside and rename: the folder holds the old lexicon or the new one, never a part."""
        arguments.flag("overwrite", overwrite)
        arguments.unicode("card", arguments.text("card", card))
        out = arguments.path("out", out)
        with artifact.new_folder(out, kind="lexicon", overwrite=overwrite) as folder:
            with artifact.disk_errors(folder):
                self.sae.save(folder)
                if self.whole is not None:
                    (folder / WHOLE).mkdir()
                    self.whole.save(folder / WHOLE)
                if self.own_encoder is not None:
                    self.own_encoder.save(folder / ENCODER)
                if self.bucket_weights is not None:
                    self.bucket_weights.save(folder)
                self.concepts.save(folder)
                if card:
                    (folder / CARD).write_text(card)
            facts = asdict(self.info)
            if self.info.match == "documents":  # the default, which older manifests do not have
                del facts["match"]
            artifact.write_manifest(folder, kind="lexicon", facts=facts)
        return out

    @staticmethod
    def random(
        encoder: Encoder, *, size: int = 256, k: int = 8, seed: int = 0, level: Level = "tokens", whole: int = 0
    ) -> Lexicon:
        """Random directions: enough to try the pipeline without training. whole: latents for whole texts."""
        if not hasattr(encoder, "fingerprint"):
            raise arguments.refused("encoder", encoder, "a lexent encoder: lexent.load_encoder(NAME)")
        for name, given, least in (("size", size, 1), ("k", k, 1), ("seed", seed, 0), ("whole", whole, 0)):
            arguments.whole(name, given, least=least)
        arguments.choice("level", level, get_args(Level))
        draw = np.random.default_rng(seed)
        sae = _random_sae(draw, encoder.dim, size, k)
        other = _random_sae(draw, encoder.dim, whole, k) if whole else None
        concepts = Concepts([Concept(latent, f"concept {latent}") for latent in range(size + whole)])
        info = LexiconInfo(f"random-{size}", encoder.id, encoder.fingerprint, level)
        return Lexicon(sae, concepts, info, whole=other)


def _random_sae(draw: np.random.Generator, width: int, size: int, k: int) -> SparseAutoencoder:
    rows = draw.standard_normal((size, width)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    config, b_enc, b_dec = SAEConfig(width, size, k, tied=True), np.zeros(size, np.float32), np.zeros(width, np.float32)
    return SparseAutoencoder(config, encoder=rows, decoder=None, b_enc=b_enc, b_dec=b_dec)


def shipped() -> dict[str, Path]:
    """The lexicons that come with Lexent, by name."""
    root = Path(str(resources.files("lexent.lexicon"))) / "shipped"
    return {path.parent.name: path.parent for path in sorted(root.glob(f"*/{MANIFEST}"))}


def default_for(recipe: Recipe | None = None) -> str:
    """The name of the shipped lexicon that a recipe is used with: of its level, and of the k nearest to its own."""
    wanted = recipe or recipes.get("latent-terms")
    near: list[tuple[int, str]] = []
    for name, folder in shipped().items():
        manifest = read_manifest(folder, kind="lexicon")
        config = json.loads((folder / CONFIG).read_text())
        found = manifest["level"], manifest.get("match", "documents"), config["architecture"] == "winners"
        base = read_base(folder / ENCODER) or manifest["encoder_id"]
        if found == (wanted.level, wanted.match, wanted.winners) and base == DEFAULT:
            near.append((abs(config["k"] - wanted.k), name))
    if not near:
        raise NotFoundError(
            f'no shipped lexicon is of the level "{wanted.level}", as the recipe "{wanted.name}" needs; '
            f"train one and name it: lexent train TEXTS --level {wanted.level} --out DIR; --lexicon DIR"
        )
    return min(near)[1]


def load(lexicon: str | Path | Lexicon | None = None, *, recipe: Recipe | None = None) -> Lexicon:
    """A lexicon by folder or by the name of a shipped one; where none is given, the shipped one for the recipe."""
    if recipe is not None and not hasattr(recipe, "level"):
        raise arguments.refused("recipe", recipe, "a lexent.Recipe: lexent.recipes.get(NAME)")
    if isinstance(lexicon, Lexicon):
        return lexicon
    if lexicon is not None:
        arguments.path("lexicon", lexicon, allowed="the name or the folder of a lexicon, or a lexent.Lexicon")
    name = str(lexicon) if lexicon is not None else default_for(recipe)
    if lexicon is not None:
        recover(Path(name))
    # A folder of the default's name in the working directory, say the encoder's, is not meant where none is given.
    folder = Path(name) if lexicon is not None and Path(name).is_dir() else shipped().get(name)
    if folder is None:
        raise NotFoundError(
            f'no lexicon "{name}": neither a folder nor one of the shipped ones ({", ".join(shipped()) or "none"}); '
            f"train one: lexent train TEXTS --out {name}"
        )
    manifest = read_manifest(folder, kind="lexicon")
    remedy = f"train it again: lexent train TEXTS --out {folder}"
    try:
        fields = [field for field in LexiconInfo.__dataclass_fields__ if field != "match" or field in manifest]
        info = LexiconInfo(**{field: manifest[field] for field in fields})
        sizes = {file: facts["size"] for file, facts in manifest["files"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f'"{folder}" is damaged: its {MANIFEST} has no good {error}; {remedy}') from error
    check_sizes(folder, sizes, remedy=remedy)
    sae = SparseAutoencoder.load(folder)
    own = BucketParts.load(folder / ENCODER) if (folder / ENCODER).is_dir() else None
    if own is not None:  # wherever the folder is now, the encoder is in it
        info = replace(info, encoder_id=name if folder == shipped().get(name) else str(folder))
    whole = SparseAutoencoder.load(folder / WHOLE) if (folder / WHOLE).is_dir() else None
    weights = None
    if (folder / BUCKET_WEIGHTS).is_file():
        weights = BucketWeights.load(folder, width=sae.config.width, buckets=sae.config.buckets)
    names = Concepts.load(folder, size=sae.config.d_sae + (whole.config.d_sae if whole is not None else 0))
    names.options = () if lexicon is None and recipe is None else ("--lexicon", name)
    return Lexicon(sae, names, info, whole=whole, own_encoder=own, bucket_weights=weights)
