"""The cosine of a query and of every document under a diagonal modulation, in one pass over the documents.

With y = scale d + bias, made on the way and never stored: product = query . y, length = y . y, and with a layer norm
less the square of y's sum over its width. The query is centred already where there is a layer norm.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

MIN_SQUARED_NORM = np.float32(1e-12)
"""Of a squared length; what is shorter is nothing, and scores 0."""


@njit(cache=True, nogil=True, fastmath=True)
def diagonal_scores(
    rows: NDArray[np.float32],
    scale: NDArray[np.float32],
    bias: NDArray[np.float32],
    query: NDArray[np.float32],
    normed: bool,
    out: NDArray[np.float32],
) -> None:
    """A document at a time, from the first on: best where they come from memory."""
    n, m = rows.shape
    for i in range(n):
        out[i] = _one(rows[i], scale, bias, query, normed, m)


@njit(cache=True, nogil=True, fastmath=True)
def diagonal_scores_by_four(
    rows: NDArray[np.float32],
    scale: NDArray[np.float32],
    bias: NDArray[np.float32],
    query: NDArray[np.float32],
    normed: bool,
    out: NDArray[np.float32],
) -> None:
    """Four documents at a time, so that the query's numbers are read once for them: best where all lie in the cache."""
    n, m = rows.shape
    whole = n - n % 4
    if normed:
        whole = 0
    for i in range(0, whole, 4):
        p0 = p1 = p2 = p3 = np.float32(0)
        l0 = l1 = l2 = l3 = np.float32(0)
        for j in range(m):
            s, b, q = scale[j], bias[j], query[j]
            y0, y1 = s * rows[i, j] + b, s * rows[i + 1, j] + b
            y2, y3 = s * rows[i + 2, j] + b, s * rows[i + 3, j] + b
            p0 += q * y0
            p1 += q * y1
            p2 += q * y2
            p3 += q * y3
            l0 += y0 * y0
            l1 += y1 * y1
            l2 += y2 * y2
            l3 += y3 * y3
        out[i] = p0 / np.sqrt(l0) if l0 > MIN_SQUARED_NORM else np.float32(0)
        out[i + 1] = p1 / np.sqrt(l1) if l1 > MIN_SQUARED_NORM else np.float32(0)
        out[i + 2] = p2 / np.sqrt(l2) if l2 > MIN_SQUARED_NORM else np.float32(0)
        out[i + 3] = p3 / np.sqrt(l3) if l3 > MIN_SQUARED_NORM else np.float32(0)
    for i in range(whole, n):
        out[i] = _one(rows[i], scale, bias, query, normed, m)


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _one(
    row: NDArray[np.float32],
    scale: NDArray[np.float32],
    bias: NDArray[np.float32],
    query: NDArray[np.float32],
    normed: bool,
    m: int,
) -> np.float32:
    product = length = np.float32(0)
    for j in range(m):
        y = scale[j] * row[j] + bias[j]
        product += query[j] * y
        length += y * y
    if normed:
        total = np.float32(0)
        for j in range(m):
            total += scale[j] * row[j] + bias[j]
        length -= total * total / np.float32(m)
    return product / np.sqrt(length) if length > MIN_SQUARED_NORM else np.float32(0)
