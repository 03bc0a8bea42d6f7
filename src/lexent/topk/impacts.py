"""Impacts of postings, and their integer contributions to scores."""

from __future__ import annotations

import numpy as np

from lexent.jit import njit


@njit(cache=True, nogil=True, inline="always")
def curve_position(code: np.int64, shift: np.uint16) -> np.uint16:
    """Position in the impact curve of a code, in a document of that shift."""
    return np.uint16((code << 1) + np.int64(shift))


@njit(cache=True, nogil=True, inline="always")
def contribution(impact: np.float32, query_weight: np.float32) -> np.int32:
    """Integer contribution of a posting to a score: impact times scaled query weight, truncated, never 0."""
    product = np.int32(impact * query_weight)
    return max(product, np.int32(1)) if query_weight > 0 else min(product, np.int32(-1))
