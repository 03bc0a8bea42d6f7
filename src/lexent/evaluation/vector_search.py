"""Exact search over vectors, a block at a time, and how alike two rankings of them are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import unit
from lexent.nan_safe import ratio

SCORES_PER_CHUNK = 1 << 25
"""How many scores are held at a time."""

Top = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Positions and scores, a row a query: strongest first, lower positions first among equals."""


def blocks(vectors: NDArray[np.float32], *, n_queries: int) -> Iterator[NDArray[np.float32]]:
    """The vectors in parts that are small enough to be scored for all queries at once."""
    step = max(1, min(SCORES_PER_CHUNK // max(n_queries, 1), 1 << 16))
    return (vectors[start : start + step] for start in range(0, len(vectors), step))


def nearest_by_cosine(queries: NDArray[np.float32], vectors: NDArray[np.float32], *, k: int) -> Top:
    """The k vectors of highest cosine with each query."""
    return nearest(unit(queries), map(unit, blocks(vectors, n_queries=len(queries))), k=k)


def nearest(queries: NDArray[np.float32], blocks: Iterable[NDArray[np.float32]], *, k: int) -> Top:
    """The k vectors of highest product with each query. Only one block of vectors and the best so far are held."""
    found, start = none_yet(len(queries)), 0
    for block in blocks:
        scores = queries @ block.T
        kept = np.broadcast_to(np.arange(len(block)), scores.shape)
        if k < len(block):
            kept = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        found = best_of(found, (kept + start, np.take_along_axis(scores, kept, axis=1)), k=k)
        start += len(block)
    return found


def none_yet(n_queries: int) -> Top:
    """Where `best_of` begins."""
    return np.empty((n_queries, 0), np.int64), np.empty((n_queries, 0), np.float32)


def best_of(found: Top, more: Top, *, k: int) -> Top:
    """The k best of both."""
    positions = np.concatenate([found[0], more[0]], axis=1)
    scores = np.concatenate([found[1], more[1]], axis=1)
    order = np.lexsort((positions, -scores), axis=1)[:, :k]
    return np.take_along_axis(positions, order, axis=1), np.take_along_axis(scores, order, axis=1)


def spearman(
    queries: tuple[NDArray[np.float32], NDArray[np.float32]],
    documents: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> NDArray[np.float64]:
    """float64[n_queries]: the rank correlation of all documents' scores by one pair of matrices and by the other."""
    rows = zip(*queries, strict=True)
    return np.array([rank_correlation(documents[0] @ left, documents[1] @ right) for left, right in rows], np.float64)


def rank_correlation(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Spearman's, with mean ranks for ties. Undefined where one side has only ties, or a single value."""
    from scipy.stats import rankdata

    return correlation(rankdata(left), rankdata(right))


def correlation(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Pearson's. Undefined where one side has only equal values."""
    left, right = left - left.mean(), right - right.mean()
    return ratio(float(left @ right), float(np.sqrt((left @ left) * (right @ right))))
