"""The cosine of a query and of every document under a diagonal modulation, in one pass over the documents.

With y = scale d + bias, made on the way and never stored: product = query . y, length = y . y, and with a layer norm
less the square of y's sum over its width. The query is centred already where there is a layer norm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.jit import njit

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
    """The scores of all rows."""
    n, m = rows.shape
    for i in range(n):
        row = rows[i]
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
        out[i] = product / np.sqrt(length) if length > MIN_SQUARED_NORM else np.float32(0)
