"""The documents of an index by the encoder's own vectors: the cosine of each with a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.forward.dense import DenseStore
from lexent.indexing.reader import IndexReader
from lexent.search.document_ranking import first_of_each
from lexent.search.document_scorer import Masks
from lexent.search.groups import Line
from lexent.search.query import Query
from lexent.search.results import SharedTerm

LABEL = "cosine of the vectors"
"""What the one reason of a dense score is called."""


@dataclass(frozen=True, slots=True)
class DenseRanking:
    """Every document that may be found, by its best passage; a cosine has no parts."""

    positions: NDArray[np.int64]  # [n_found]: of the best passage of each document, highest cosine first
    scores: NDArray[np.float32]  # [n_found]
    query: Query
    """One term, the cosine."""
    cosines: NDArray[np.float32]  # [n_passages]

    @staticmethod
    def of(reader: IndexReader, text: str, vector: NDArray[np.float32], masks: Masks) -> DenseRanking:
        """The ranking for the vector of a query. masks: which passages of each segment may be found."""
        unit = vector / max(float(np.linalg.norm(vector)), 1e-12)
        found, live = [np.empty(0, np.float32)], [np.empty(0, np.bool_)]
        for stores, mask in zip(reader.forward, masks, strict=True):
            store = stores[DenseStore.name]
            assert isinstance(store, DenseStore)
            found.append(store.cosines(unit))
            live.append(mask if len(mask) else np.ones(len(store), np.bool_))
        cosines, places = np.concatenate(found), np.flatnonzero(np.concatenate(live))
        order = places[np.lexsort((places, -cosines[places]))]
        if reader.has_long_documents:
            order = order[first_of_each(reader.owners[order])]
        query = Query(text, np.zeros(1, np.int32), np.ones(1, np.float32))
        return DenseRanking(order, cosines[order], query, cosines)

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """The cosine of a passage."""
        cosine = self.cosines[position : position + 1]
        return cosine, cosine.astype(np.float64)

    def named(self, terms: Sequence[int]) -> list[tuple[str, bool]]:
        """What the cosine is called; it is no word."""
        return [(LABEL, False)] * len(terms)

    def lines(self, query: Query, position: int, terms: Sequence[SharedTerm]) -> list[Line]:
        """A cosine has no groups."""
        return []
