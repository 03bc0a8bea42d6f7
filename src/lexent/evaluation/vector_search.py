"""The nearest of many vectors, a block at a time, and how alike two rankings of them are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.evaluation.baselines import SCORES_PER_CHUNK
from lexent.evaluation.pooling import unit
from lexent.nan_safe import ratio


def block_size(n_queries: int) -> int:
    """Vectors at a time: no more than some 30 million scores are held."""
    return max(1, min(SCORES_PER_CHUNK // max(n_queries, 1), 1 << 16))


def nearest_by_cosine(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], *, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k vectors of highest cosine with each query, as `nearest` gives them."""
    block = block_size(len(queries))
    starts = range(0, len(vectors), block)
    return nearest(unit(queries), (unit(vectors[start : start + block]) for start in starts), k=k)


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
        kept = np.broadcast_to(np.arange(len(block)), found.shape)
        if depth < len(block):
            kept = np.argpartition(-found, depth - 1, axis=1)[:, :depth]
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
