"""An encoder that training changed, as a lexicon of several buckets reads it: states of chosen layers side by side.

Buckets may share one copy of the encoder or have one each. Only what was changed is kept, beside the lexicon.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexent import artifact
from lexent.encoders import fine_tuning
from lexent.encoders.encoder import Encoder
from lexent.encoders.engines import Engine, chosen, open_light, open_with_torch
from lexent.encoders.light import LightEncoder
from lexent.encoders.sentence import SentenceEncoder
from lexent.errors import ArtifactError, InputError, MismatchError
from lexent.types import Batches, Kind, Level, Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = "encoder"
"""Inside a lexicon's folder."""
FACTS, CHANGES = "encoder.json", "changes-{}.safetensors"


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of the base encoder: which layers are read, what was changed in it, and what was left out of it."""

    layers: tuple[int, ...]
    patch: dict[str, NDArray[Any]]
    without: tuple[int, ...] = ()  # layers of the base that the copy does not have; those read are counted without them


@dataclass(frozen=True, slots=True)
class BucketParts:
    """All that a changed encoder is, beside its base."""

    base: str
    base_fingerprint: str
    copies: tuple[Copy, ...]

    @property
    def fingerprint(self) -> str:
        """A hash of the base encoder and of all changes."""
        digests = [f"{one.layers}{one.without or ''} {fine_tuning.digest(one.patch)}" for one in self.copies]
        return hashlib.sha256(" ".join([self.base_fingerprint, *digests]).encode()).hexdigest()[:16]

    def save(self, folder: Path) -> None:
        """Into a folder of its own inside a lexicon's."""
        from safetensors.numpy import save

        folder.mkdir()
        layers = {name: [list(getattr(one, name)) for one in self.copies] for name in ("layers", "without")}
        facts = {"base": self.base, "base_fingerprint": self.base_fingerprint, **layers}
        (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n")
        for place, one in enumerate(self.copies):
            (folder / CHANGES.format(place)).write_bytes(save(one.patch))

    @staticmethod
    def load(folder: Path) -> BucketParts:
        """Read what `save` wrote."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            facts = artifact.read_json(folder / FACTS)
            copies = tuple(
                Copy(tuple(layers), load_file(folder / CHANGES.format(place)), tuple(without))
                for place, (layers, without) in enumerate(zip(facts["layers"], facts["without"], strict=True))
            )
            return BucketParts(facts["base"], facts["base_fingerprint"], copies)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise ArtifactError(f'the encoder "{folder}" is damaged ({error}); train it again: lexent train') from error


def read_base(folder: Path) -> str | None:
    """The encoder that the one in a folder was made from; none where there is no such folder."""
    return str(json.loads((folder / FACTS).read_text())["base"]) if folder.is_dir() else None


def _check_base(parts: BucketParts, fingerprint: str, *, id: str) -> None:
    if fingerprint != parts.base_fingerprint:
        raise MismatchError(
            f'the encoder "{id}" is "{parts.base}" ({parts.base_fingerprint}) with changes; the one of that name '
            f"here has other weights ({fingerprint})"
        )


class BucketEncoder:
    """Token states of the chosen layers of each copy, side by side. All copies are of one engine."""

    light_refusal = ""
    """Why the light engine does not take this encoder, where that was tried."""

    def __init__(
        self, members: Sequence[SentenceEncoder] | Sequence[LightEncoder], *, id: str, fingerprint: str
    ) -> None:
        self.members: tuple[Any, ...] = tuple(members)
        self.id, self.fingerprint = id, fingerprint
        self.is_light = isinstance(members[0], LightEncoder)
        self.dim = sum(member.dim for member in members)
        self.prompts = members[0].prompts

    @staticmethod
    def of(
        parts: BucketParts,
        *,
        id: str,
        base: SentenceEncoder | None = None,
        device: str | None = None,
        trusted: bool = True,
    ) -> BucketEncoder:
        """base: the encoder that was changed, where it is at hand; it stays as it is."""
        from copy import deepcopy

        base = base or open_with_torch(parts.base, device=device, trusted=trusted)
        _check_base(parts, base.fingerprint, id=id)
        members: list[SentenceEncoder] = []
        for one in parts.copies:
            model = deepcopy(base.model).float().cpu()
            fine_tuning.drop(model, one.without)
            fine_tuning.apply(model, one.patch)
            fine_tuning.shorten(model, max(one.layers))
            members.append(SentenceEncoder(model, id=id, device=device or str(base.device), layers=one.layers))
        return BucketEncoder(members, id=id, fingerprint=parts.fingerprint)

    @staticmethod
    def light(parts: BucketParts, *, id: str, trusted: bool = True) -> BucketEncoder:
        """By the light engine; `UnknownModelError` says why it does not know the base."""
        base = open_light(parts.base, trusted=trusted)
        _check_base(parts, base.fingerprint, id=id)
        members = [base.changed(one.patch, layers=one.layers, without=one.without) for one in parts.copies]
        return BucketEncoder(members, id=id, fingerprint=parts.fingerprint)

    @staticmethod
    def open(
        folder: Path, *, id: str, device: str | None = None, engine: Engine | None = None, trusted: bool = True
    ) -> Encoder:
        """The encoder of a lexicon that has one of its own. trusted: whether its base is; see `open_encoder`."""
        parts = BucketParts.load(folder / FOLDER)
        of_torch = partial(BucketEncoder.of, parts, id=id, device=device, trusted=trusted)
        light = partial(BucketEncoder.light, parts, id=id, trusted=trusted)
        return chosen(id, light, of_torch, device=device, engine=engine)

    @property
    def device(self) -> Any:
        """Where the encoder computes."""
        return self.members[0].device

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that the encoder reads at most."""
        return int(self.members[0].max_tokens)

    def batches(self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True) -> Batches:
        """States of texts, a batch at a time; see `Encoder.batches`."""
        if level != "tokens":
            raise InputError(f'the encoder "{self.id}" belongs to a lexicon of token states and has no pooled ones')
        first, *others = self.members
        yield from first.batches_beside(others, texts, kind=kind, specials=specials)

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """The tokens of texts with their places; see `Encoder.tokenize`."""
        found: list[Tokens] = self.members[0].tokenize(texts, kind=kind, specials=specials)
        return found
