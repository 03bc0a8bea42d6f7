"""What a posting adds to a score."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def place_of(code: np.int64, shift: np.uint8) -> np.uint16:
    """Where the weight of a code stands in the curve, for a document of that shift."""
    return np.uint16((code << 1) + np.int64(shift))


@njit(cache=True, nogil=True, inline="always")
def gain_of(weight: np.float32, query_weight: np.float32) -> np.int32:
    gain = np.int32(weight * query_weight)
    return max(gain, np.int32(1)) if query_weight > 0 else min(gain, np.int32(-1))
