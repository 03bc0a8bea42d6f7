"""A query after encoding and weighting: concepts and their final weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.types import SparseVectors

WHOLE_TEXT_ROW, ADDED_CONCEPT_ROW = -1, -2
"""Rows of a query that are no tokens: the whole text, or a concept that steering added."""


def summed(ids: NDArray[np.int32], values: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The distinct ids, ascending, and the sum of the values of each."""
    distinct, places = np.unique(ids, return_inverse=True)
    sums = np.bincount(places, weights=values.astype(np.float64), minlength=len(distinct))
    return distinct.astype(np.int32), sums.astype(np.float32)


@dataclass(frozen=True, slots=True)
class QueryRows:
    """Rows of a query, one a token, for MaxSim: row i has the entries offsets[i] to offsets[i + 1]."""

    ids: NDArray[np.int32]  # [n_entries], ascending within a row
    weights: NDArray[np.float32]  # [n_entries], final; none is 0
    offsets: NDArray[np.int64]  # [n_rows + 1]
    tokens: NDArray[np.int32]  # [n_rows]: the token, WHOLE_TEXT_ROW, or ADDED_CONCEPT_ROW
    strengths: NDArray[np.float32]  # [n_rows]: norm of each row before idf and steering: its weight

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class Query:
    """A query's text and final weights, after transform, cap, steering and idf; none is 0."""

    text: str
    ids: NDArray[np.int32]  # [n_concepts], ascending
    weights: NDArray[np.float32]  # [n_concepts], negative only under idf "okapi"
    rows: QueryRows | None = None
    """For MaxSim: the rows that the weights are the sums of."""

    @staticmethod
    def of(text: str, weights: SparseVectors) -> Query:
        """From one weighted vector."""
        ids, values = weights.of(0)
        return Query(text, ids[values != 0], values[values != 0])

    @staticmethod
    def of_rows(text: str, rows: QueryRows) -> Query:
        """From rows: a concept's weight is the sum of its weights in them."""
        return Query(text, *summed(rows.ids, rows.weights), rows)

    def vectors(self, size: int) -> SparseVectors:
        """The query as a container of one vector."""
        return SparseVectors(self.ids, self.weights, np.array([0, len(self.ids)], dtype=np.int64), size)
