"""Systems under test: whatever gives a run for a collection. Recipes and their baselines, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lexent import adapters, recipes
from lexent import lexicon as lexicons
from lexent.adapters.encoder import AdaptedEncoder
from lexent.encoders import DEFAULT
from lexent.errors import InputError, MismatchError, NotFoundError
from lexent.evaluation import baselines, latent, token_codes
from lexent.evaluation.adapted import Adapted, imrnn
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress
from lexent.evaluation.runs import Run, from_top
from lexent.indexing.segment import Segment
from lexent.models import load_encoder
from lexent.pipeline import Pipeline
from lexent.recipes import Recipe
from lexent.search.document_scorer import DocumentScorer
from lexent.search.maxsim_scorer import MaxSimScorer
from lexent.types import Kind, SparseVectors

if TYPE_CHECKING:
    from lexent.adapters import Adapter
    from lexent.encoders import Encoder
    from lexent.evaluation.adapted import Adapted
    from lexent.lexicon import Lexicon
    from lexent.search.document_scorer import DocumentScorer
    from lexent.search.maxsim_scorer import MaxSimScorer
    from lexent.search.query import Query

BASELINES = ("dense", "bm25")
ADAPTED = "imrnn"
"""The system of an adapter."""

EncoderLike: TypeAlias = "Encoder | str | Path | Any | None"
LexiconLike: TypeAlias = "Lexicon | str | Path | None"
"""The thing itself, its name or folder, or None for the default."""
AdapterLike: TypeAlias = "Adapter | str | Path | None"


class System(Protocol):
    """Ranks the documents of a collection for each of its queries."""

    @property
    def name(self) -> str:
        """The name in reports."""

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The `depth` best documents for each query."""
        ...


@dataclass(frozen=True, slots=True)
class Dense:
    """The cosine of the encoder's own pooled vectors."""

    encoder: Encoder
    name: str = "dense"

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The documents that this system finds for each query, with their scores."""
        return baselines.dense(collection, self.encoder, k=depth, progress=progress)


@dataclass(frozen=True, slots=True)
class Lexical:
    """BM25 over words."""

    name: str = "bm25"

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The documents that this system finds for each query, with their scores."""
        return baselines.bm25(collection, k=depth)


@dataclass(frozen=True, slots=True)
class Latent:
    """A recipe: concepts, weighed and searched by the index's own kernels."""

    recipe: Recipe
    lexicon: Lexicon
    encoder: Encoder
    label: str = ""

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.label or self.recipe.name

    @property
    def pipeline(self) -> Pipeline:
        """The encoder, the lexicon and the recipe as one value."""
        return Pipeline(self.encoder, self.lexicon, self.recipe)

    def pooled(self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None) -> SparseVectors:
        """The concepts of texts before the transform, from the cache where they are."""
        return latent.represent(texts, self.pipeline, kind=kind, progress=progress)

    def scorer(self, collection: Collection, *, progress: Progress | None = None) -> DocumentScorer:
        """The collection's documents, packed as an index packs them."""
        return DocumentScorer.from_vectors(
            self.pooled(collection.texts, kind="document", progress=progress), self.recipe
        )

    def queries(self, collection: Collection, *, progress: Progress | None = None) -> SparseVectors:
        """The collection's queries, transformed and capped, not yet times idf: what `DocumentScorer.top` takes."""
        vectors = self.pooled(list(collection.queries.values()), kind="query", progress=progress)
        return self.pipeline.query_vectors(vectors)

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The documents that this system finds for each query, with their scores."""
        scorer = self.scorer(collection, progress=progress)
        found = scorer.top(self.queries(collection, progress=progress), depth + 1)
        return from_top(collection, found.positions, scores=found.scores, depth=depth)


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """A recipe that matches tokens: MaxSim by the index's own kernels; candidates first where the recipe is fast."""

    recipe: Recipe
    lexicon: Lexicon
    encoder: Encoder
    label: str = ""

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.label or self.recipe.name

    @property
    def pipeline(self) -> Pipeline:
        """The encoder, the lexicon and the recipe as one value."""
        return Pipeline(self.encoder, self.lexicon, self.recipe)

    def scorer(self, collection: Collection, *, progress: Progress | None = None) -> MaxSimScorer:
        """The collection's documents, packed as an index packs them; the codes come from the cache where they are."""
        size = self.lexicon.size
        store = token_codes.documents(collection.texts, self.pipeline, progress=progress)
        segment = Segment.pack(store.maxima(size=size), size=size, recipe=self.recipe)
        return MaxSimScorer(DocumentScorer([segment], self.recipe, size=size), [store])

    def queries(
        self, collection: Collection, scorer: DocumentScorer, *, progress: Progress | None = None
    ) -> list[Query]:
        """The collection's queries with their final weights. scorer: by whole documents, for idf."""
        texts = list(collection.queries.values())
        found = token_codes.queries(texts, self.pipeline, progress=progress)
        return [rows.query(text, scorer) for text, rows in zip(texts, found, strict=True)]

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The documents that this system finds for each query, with their scores."""
        scorer = self.scorer(collection, progress=progress)
        asked = self.queries(collection, scorer.document_scorer, progress=progress)
        found = scorer.top(asked, depth + 1)
        return from_top(collection, found.positions, scores=found.scores, depth=depth)


def learns(system: System) -> bool:
    """Whether a system learned from pairs of queries and documents: adapters, and lexicons as ssr and uhd have them."""
    if isinstance(system, Latent | TokenMatch) and system.lexicon.learned_from_pairs:
        return True
    return isinstance(system, Adapted) or isinstance(getattr(system, "encoder", None), AdaptedEncoder)


class Bench:
    """Makes systems by name; the encoder and each lexicon are loaded once, when a system first needs them."""

    def __init__(
        self, *, encoder: EncoderLike = None, lexicon: LexiconLike = None, adapter: AdapterLike = None
    ) -> None:
        """lexicon: used by the recipes of its level; the others take the shipped ones. adapter: of the system imrnn."""
        self._source = encoder
        self._adapter = adapter
        self._encoder: Encoder | None = None
        self._own: dict[str, Encoder] = {}
        self._lexicons: dict[tuple[str, int, str, bool], Lexicon] = {}
        self.given: Lexicon | None = None
        if lexicon is not None:
            self.given = lexicons.load(lexicon)

    @property
    def encoder(self) -> Encoder:
        """The given encoder, or that of the given lexicon, or the default.

        A lexicon whose encoder was trained with it keeps that one to itself: others use what it was made from.
        """
        if self._encoder is None:
            own = DEFAULT
            if self.given is not None:
                changed = self.given.own_encoder
                own = self.given.encoder_id if changed is None else changed.base
            self._encoder = load_encoder(own if self._source is None else self._source)
        return self._encoder

    def encoder_for(self, lexicon: Lexicon) -> Encoder:
        """The encoder that a lexicon is used with here."""
        if lexicon.own_encoder is None or self._source is not None:
            return self.encoder
        if lexicon.encoder_id not in self._own:
            self._own[lexicon.encoder_id] = load_encoder(lexicon.encoder_id)
        return self._own[lexicon.encoder_id]

    def lexicon(self, recipe: Recipe) -> Lexicon:
        """The lexicon that a recipe is used with here."""
        given = self.given
        of_winners = given is not None and given.sae.config.architecture == "winners"
        if given is not None and given.info.level == recipe.level and (recipe.winners or not of_winners):
            return given
        key = (recipe.level, recipe.k, recipe.match, recipe.winners)
        if key not in self._lexicons:
            self._lexicons[key] = lexicons.load(None, recipe=recipe)
        return self._lexicons[key]

    def system(self, which: str | Recipe) -> System:
        """A baseline, or a recipe, by name; a recipe may be given itself."""
        if which == "dense":
            return Dense(self.encoder)
        if which == "bm25":
            return Lexical()
        if which == ADAPTED:
            return self.adapted()
        if isinstance(which, str) and which not in recipes.RECIPES and not which.endswith(".json"):
            known = (*recipes.RECIPES, *BASELINES, ADAPTED)
            raise NotFoundError(f'no system "{which}"; systems: {", ".join(known)}')
        return self.recipe(which)

    def adapted(self) -> Adapted:
        """The encoder's vectors under the given adapter, over all documents."""
        if self._adapter is None:
            raise InputError(
                f"the system {ADAPTED} needs an adapter: --adapter DIR; train one: "
                "lexent adapt train COLLECTION --out DIR"
            )
        return imrnn(adapters.load(self._adapter), self.encoder)

    def recipe(self, recipe: str | Recipe) -> Latent | TokenMatch:
        """A recipe, however it matches."""
        chosen = recipes.get(recipe)
        if chosen.match == "documents":
            return self.latent(chosen)
        lexicon = self.lexicon(chosen)
        lexicon.check(self.encoder, level=chosen.level)
        return TokenMatch(chosen, lexicon, self.encoder)

    def latent(self, recipe: str | Recipe) -> Latent:
        """A recipe that matches by concepts of whole documents; a MismatchError where it does not."""
        chosen = recipes.get(recipe)
        if chosen.match != "documents":
            raise MismatchError(
                f'the recipe "{chosen.name}" matches tokens, and this looks at concepts of whole documents; take a '
                "recipe that matches by those, for example latent-terms"
            )
        lexicon = self.lexicon(chosen)
        encoder = self.encoder_for(lexicon)
        lexicon.check(encoder, level=chosen.level)
        return Latent(chosen, lexicon, encoder)
