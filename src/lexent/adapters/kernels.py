"""The cosine of a query and of every document under a diagonal modulation, in one pass over the documents."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True, fastmath=True)
def diagonal_scores(
    rows: NDArray[np.float32],
    linear: NDArray[np.float32],
    square: NDArray[np.float32],
    twice: NDArray[np.float32],
    mean: NDArray[np.float32],
    constants: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """out[i] = (linear.d + c0) / sqrt(sum (square d + twice) d + c1 - (mean.d + c2)^2), where d is row i.

    linear = scale * q, square = scale^2, twice = 2 scale bias; mean is scale / sqrt(m) with a layer norm, or empty
    without. d squared is made on the way: it costs no memory and no second pass.
    """
    n, m = rows.shape
    normed = len(mean) > 0
    for i in range(n):
        product = np.float32(0)
        length = np.float32(0)
        for j in range(m):
            x = rows[i, j]
            product += linear[j] * x
            length += (square[j] * x + twice[j]) * x
        length += constants[1]
        if normed:
            middle = constants[2]
            for j in range(m):
                middle += mean[j] * rows[i, j]
            length -= middle * middle
        out[i] = (product + constants[0]) / np.sqrt(length) if length > np.float32(1e-12) else np.float32(0)
