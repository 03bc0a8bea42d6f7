"""Every document scored for every query, in float64: what the exact systems are checked against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.vectors import Query

TOLERANCE = 1e-5
"""Of a score, relative: float32 sums differ by about so much."""


class Truth:
    """The best scores of some queries over stored weights, and what any document scores."""

    def __init__(self, rows: Any, columns: Any, queries: list[Query], k: int) -> None:
        self.rows, self.queries, self.k = rows, queries, k
        arrays = columns.indptr.astype(np.int64), columns.indices, columns.data
        scores = np.zeros(rows.shape[0], np.float64)
        self.best = []
        for query in queries:
            add_all(*arrays, query.ids, query.values.astype(np.float64), scores)
            self.best.append(np.sort(np.partition(scores, -k)[-k:])[::-1])

    def scores(self, number: int, documents: NDArray[np.int64]) -> NDArray[np.float64]:
        """What these documents score for one query."""
        query, dense = self.queries[number], np.zeros(self.rows.shape[1], np.float64)
        dense[query.ids] = query.values
        return _scores_of(self.rows.indptr, self.rows.indices, self.rows.data, documents, dense)

    def holds(self, number: int, documents: NDArray[np.int64]) -> bool:
        """Whether these are k best documents of the query: ties may fall either way."""
        if len(np.unique(documents)) != self.k:
            return False
        found = np.sort(self.scores(number, documents))[::-1]
        return bool(np.allclose(found, self.best[number], rtol=TOLERANCE, atol=0))

    def recall(self, number: int, documents: NDArray[np.int64]) -> float:
        """The share of the k best that was found, ties counted as found."""
        found = self.scores(number, np.unique(documents))
        return min(int((found >= self.best[number][-1] * (1 - TOLERANCE)).sum()) / self.k, 1.0)


@njit(cache=True)
def add_all(
    starts: NDArray[np.int64],
    documents: NDArray[np.int32],
    weights: NDArray[np.float32],
    ids: NDArray[np.int32],
    values: NDArray[Any],
    scores: NDArray[Any],
) -> None:
    """Every document's score, list by list, in the precision of the arrays given."""
    scores[:] = 0
    for place in range(len(ids)):
        value = values[place]
        for posting in range(starts[ids[place]], starts[ids[place] + 1]):
            scores[documents[posting]] += value * weights[posting]


@njit(cache=True)
def strongest(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The k documents of highest score, strongest first: a heap, which few documents enter."""
    best, who = np.full(k, -np.inf, np.float32), np.full(k, -1, np.int64)
    for document in range(len(scores)):
        score = scores[document]
        if score <= best[0]:
            continue
        place = 0
        while True:
            child = 2 * place + 1
            if child >= k:
                break
            if child + 1 < k and best[child + 1] < best[child]:
                child += 1
            if best[child] >= score:
                break
            best[place], who[place] = best[child], who[child]
            place = child
        best[place], who[place] = score, document
    return who[np.argsort(-best)]


@njit(cache=True)
def _scores_of(
    starts: NDArray[Any],
    ids: NDArray[np.int32],
    weights: NDArray[np.float32],
    documents: NDArray[np.int64],
    dense: NDArray[np.float64],
) -> NDArray[np.float64]:
    scores = np.zeros(len(documents), np.float64)
    for place in range(len(documents)):
        for entry in range(starts[documents[place]], starts[documents[place] + 1]):
            scores[place] += dense[ids[entry]] * weights[entry]
    return scores
