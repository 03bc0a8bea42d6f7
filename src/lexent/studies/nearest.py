"""The nearest of many vectors, a block at a time, and how alike two rankings of them are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.undefined import ratio


def nearest(
    queries: NDArray[np.float32], blocks: Iterable[NDArray[np.float32]], *, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k vectors of highest product with each query, strongest first, lower positions first among equals.

    Only one block of vectors and the best so far are held. Places left over hold -1.
    """
    positions = np.full((len(queries), 0), -1, np.int64)
    scores = np.zeros((len(queries), 0), np.float32)
    start = 0
    for block in blocks:
        found = queries @ block.T
        depth = min(k, len(block))
        kept = np.argpartition(-found, depth - 1, axis=1)[:, :depth] if depth < len(block) else _all(found)
        positions = np.concatenate([positions, kept + start], axis=1)
        scores = np.concatenate([scores, np.take_along_axis(found, kept, axis=1)], axis=1)
        order = np.lexsort((positions, -scores), axis=1)[:, :k]
        positions, scores = np.take_along_axis(positions, order, axis=1), np.take_along_axis(scores, order, axis=1)
        start += len(block)
    return positions, scores


def spearman(
    queries: tuple[NDArray[np.float32], NDArray[np.float32]],
    documents: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> NDArray[np.float64]:
    """float64[n_queries]: the rank correlation of all documents' scores by one pair of matrices and by the other."""
    found = np.zeros(len(queries[0]))
    for row in range(len(found)):
        left, right = (vectors @ query[row] for query, vectors in zip(queries, documents, strict=True))
        found[row] = rank_correlation(left, right)
    return found


def rank_correlation(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Spearman's, with mean ranks for ties. Undefined where one side has only ties, or a single value."""
    from scipy.stats import rankdata

    a, b = rankdata(left), rankdata(right)
    a, b = a - a.mean(), b - b.mean()
    return ratio(float(a @ b), float(np.sqrt((a @ a) * (b @ b))))


def _all(found: NDArray[np.float32]) -> NDArray[np.int64]:
    return np.broadcast_to(np.arange(found.shape[1]), found.shape)
