"""Adapted retrieval as systems under test: an adapter, and the methods beside it, on the same candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lexent.adapters.corpus import AdaptedCorpus, best
from lexent.adapters.dime import Dime
from lexent.evaluation.baselines import pooled
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress
from lexent.evaluation.runs import Run, from_top

if TYPE_CHECKING:
    from lexent.adapters import Adapter
    from lexent.adapters.modulation import Rows
    from lexent.encoders import Encoder


class Scorer(Protocol):
    """Scores all of its documents for one query of the encoder."""

    def scores(self, vector: Rows) -> Rows:
        """The scores of all documents for a query vector."""


@dataclass(frozen=True, slots=True)
class Adapted:
    """Any scorer over the encoder's vectors: all documents, or the base retriever's best ranked again."""

    name: str
    encoder: Encoder
    make: Callable[[Rows], Scorer]
    """Gives the scorer for some documents, unit rows of the encoder."""
    candidates: int | None = None
    """Rank only so many documents, the base retriever's best; all where it is none."""

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The documents that this system finds for each query, with their scores."""
        documents = pooled(self.encoder, collection.texts, kind="document", progress=progress)
        queries = pooled(self.encoder, list(collection.queries.values()), kind="query", progress=progress)
        scorer = self.make(documents)
        k = min(depth + 1, len(documents), self.candidates or len(documents))
        positions, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
        for row, query in enumerate(queries):
            found = scorer.scores(query)
            if self.candidates is not None and self.candidates < len(documents):
                kept = best(documents @ query, self.candidates).positions
                lowered = np.full(len(found), -np.inf, np.float32)
                lowered[kept] = found[kept]
                found = lowered
            ranking = best(found, k)
            positions[row], scores[row] = ranking.positions, ranking.scores
            if progress is not None and (row % 64 == 63 or row + 1 == len(queries)):
                progress(f"{self.name}, queries ranked", row + 1, len(queries))
        return from_top(collection, positions, scores=scores, depth=depth)


@dataclass(frozen=True, slots=True)
class _Base:
    """The frozen retriever, in the same form as the others."""

    documents: Rows

    def scores(self, vector: Rows) -> Rows:
        found: Rows = self.documents @ vector
        return found


def base(encoder: Encoder, *, candidates: int | None = None) -> Adapted:
    """The encoder's own cosine."""
    return Adapted("base", encoder, _Base, candidates)


def imrnn(adapter: Adapter, encoder: Encoder, *, name: str = "imrnn", candidates: int | None = None) -> Adapted:
    """An adapter over all documents, or over the base's best."""
    adapter.check(encoder)
    return Adapted(name, encoder, lambda documents: AdaptedCorpus(adapter, documents), candidates)


def dime(encoder: Encoder, removed: float, *, candidates: int | None = None) -> Adapted:
    """PRF-DIME without a share of the dimensions."""
    name = f"prf-dime-{removed:.0%}".rstrip("%")
    return Adapted(name, encoder, lambda documents: Dime(documents, removed), candidates)
