"""A query as the postings see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.types import SparseVectors


@dataclass(frozen=True, slots=True)
class Query:
    """A query's text and its final weights: after the transform, the cap, steering and idf; none is 0."""

    text: str
    ids: NDArray[np.int32]  # [n_concepts], ascending
    weights: NDArray[np.float32]  # [n_concepts], negative only under idf "okapi"

    @staticmethod
    def of(text: str, weights: SparseVectors) -> Query:
        """From a container of one vector."""
        ids, values = weights.of(0)
        return Query(text, ids[values != 0], values[values != 0])

    def vectors(self, size: int) -> SparseVectors:
        return SparseVectors(self.ids, self.weights, np.array([0, len(self.ids)], dtype=np.int64), size)
