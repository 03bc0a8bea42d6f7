"""A query as the postings see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.types import SparseVectors

WHOLE, ADDED = -1, -2
"""What a query's row is where it is no token: the text as a whole, or a concept that steering added."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The tokens of a query, for MaxSim: row i has the entries offsets[i] to offsets[i + 1]."""

    ids: NDArray[np.int32]  # [n_entries], ascending within a row
    weights: NDArray[np.float32]  # [n_entries], final; none is 0
    offsets: NDArray[np.int64]  # [n_rows + 1]
    tokens: NDArray[np.int32]  # [n_rows]: which token of the query; or WHOLE, or ADDED
    strengths: NDArray[np.float32]  # [n_rows]: the length of each row before idf and steering, which is its weight

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class Query:
    """A query's text and its final weights: after the transform, the cap, steering and idf; none is 0."""

    text: str
    ids: NDArray[np.int32]  # [n_concepts], ascending
    weights: NDArray[np.float32]  # [n_concepts], negative only under idf "okapi"
    rows: Rows | None = None
    """For MaxSim: what the weights are the sums of."""

    @staticmethod
    def of(text: str, weights: SparseVectors) -> Query:
        """From a container of one vector."""
        ids, values = weights.of(0)
        return Query(text, ids[values != 0], values[values != 0])

    @staticmethod
    def of_rows(text: str, rows: Rows) -> Query:
        """From tokens: a concept's weight is the sum of what it has in each."""
        ids, places = np.unique(rows.ids, return_inverse=True)
        sums = np.bincount(places, weights=rows.weights.astype(np.float64), minlength=len(ids))
        return Query(text, ids.astype(np.int32), sums.astype(np.float32), rows)

    def vectors(self, size: int) -> SparseVectors:
        return SparseVectors(self.ids, self.weights, np.array([0, len(self.ids)], dtype=np.int64), size)
