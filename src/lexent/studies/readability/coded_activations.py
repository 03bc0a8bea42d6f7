"""Which concepts fire in which texts, coded as an index codes its documents.

`lexent.lexicon.activations` codes every state that an encoder gives; a recipe may leave some of them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.encoders import Encoder
from lexent.evaluation import cache
from lexent.evaluation.progress import counter
from lexent.lexicon.activations import Activations, active
from lexent.pipeline import Coded, Pipeline
from lexent.types import Batches, Kind, Level, Tokens


def activations(pipeline: Pipeline, texts: Sequence[str]) -> Activations:
    """Which concepts fire in which texts, coded as an index codes documents; from the cache where they are."""
    recipe = pipeline.recipe
    settings = {"specials": recipe.specials, "punctuation": recipe.punctuation, "k": recipe.k_for("document")}
    coding = {"lexicon": pipeline.lexicon.hash, "level": recipe.level, "whole": recipe.whole > 0, **settings}
    key = cache.key_for(pipeline.encoder, texts, what="activations by recipe", **coding)
    names = ("texts", "peaks", "totals", "places", "offsets")

    def make() -> cache.Arrays:
        advance = counter("coding the texts that test names", total=len(texts))
        entries: list[Entries] = [
            Entries.of(batch) for batch in pipeline.coded(texts, kind="document", progress=advance)
        ]
        found = Entries.joined(entries).activations(n_texts=len(texts), n_concepts=pipeline.lexicon.size)
        return {name: getattr(found, name) for name in names}

    return Activations(**cache.arrays(key, frozenset(names), make), n_texts=len(texts))


@dataclass(frozen=True, slots=True)
class Entries:
    """An entry for each concept of each text."""

    texts: NDArray[np.int64]
    concepts: NDArray[np.int64]
    peaks: NDArray[np.float32]
    totals: NDArray[np.float32]
    places: NDArray[np.int64]

    @staticmethod
    def of(batch: Coded) -> Entries:
        """Of a batch of texts."""
        _, text, place, concept, value = active(batch.codes, batch.positions)
        order = np.lexsort((place, -value, concept, text))  # the strongest of each text and concept first
        text, concept, place, value = text[order], concept[order], place[order], value[order]
        first = np.flatnonzero((np.diff(text, prepend=-1) != 0) | (np.diff(concept, prepend=-1) != 0))
        totals = np.add.reduceat(value, first) if len(first) else value
        return Entries(text[first], concept[first], value[first], totals, place[first])

    @staticmethod
    def joined(parts: Sequence[Entries]) -> Entries:
        """Of all batches."""
        columns = ("texts", "concepts", "peaks", "totals", "places")
        return Entries(*(np.concatenate([getattr(part, column) for part in parts]) for column in columns))

    def activations(self, *, n_texts: int, n_concepts: int) -> Activations:
        """The entries by concept."""
        order = np.lexsort((self.texts, self.concepts))
        ends = np.bincount(self.concepts, minlength=n_concepts).cumsum()
        return Activations(
            self.texts[order].astype(np.int32),
            self.peaks[order].astype(np.float32),
            self.totals[order].astype(np.float32),
            self.places[order].astype(np.int32),
            np.concatenate([[0], ends]).astype(np.int64),
            n_texts,
        )


class CodedTokens:
    """An encoder whose tokens are those that a recipe codes: with special ones, or without them."""

    def __init__(self, encoder: Encoder, *, specials: bool) -> None:
        self.id, self.fingerprint, self.dim = encoder.id, encoder.fingerprint, encoder.dim
        self._encoder, self._specials = encoder, specials

    def batches(self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True) -> Batches:
        """States of texts; see `Encoder.batches`."""
        return self._encoder.batches(texts, kind=kind, level=level, specials=specials and self._specials)

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """Tokens of texts; see `Encoder.tokenize`."""
        return self._encoder.tokenize(texts, kind=kind, specials=specials and self._specials)
