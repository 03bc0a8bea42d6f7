"""Numba kernels of pooling, imported when first used. Their slow twins are in `tests/test_weighting.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.jit import njit


@njit(cache=True, nogil=True)
def pool(
    ids: NDArray[np.int32], values: NDArray[np.float32], offsets: NDArray[np.int64], size: int, maximum: bool
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]:
    """The entries of all texts, ids ascending within each, and how many entries each text has."""
    n_texts = len(offsets) - 1
    dense = np.zeros(size, np.float64)
    out_ids = np.empty(ids.size, np.int32)
    out_values = np.empty(ids.size, np.float32)
    counts = np.zeros(n_texts, np.int64)
    end = 0
    for text in range(n_texts):
        start = end
        for row in range(offsets[text], offsets[text + 1]):
            for place in range(ids.shape[1]):
                value = values[row, place]
                if value <= 0:
                    continue
                latent = ids[row, place]
                if dense[latent] == 0.0:
                    out_ids[end] = latent
                    end += 1
                if maximum:
                    dense[latent] = max(dense[latent], value)
                else:
                    dense[latent] += value
        out_ids[start:end].sort()
        for entry in range(start, end):
            out_values[entry] = dense[out_ids[entry]]
            dense[out_ids[entry]] = 0.0
        counts[text] = end - start
    return out_ids[:end].copy(), out_values[:end].copy(), counts


@njit(cache=True, nogil=True)
def strongest(values: NDArray[np.float32], offsets: NDArray[np.int64], cap: int) -> NDArray[np.int64]:
    """The entries to keep, ascending: of each vector the `cap` of largest value, earlier entries first among equals."""
    kept = np.empty(len(values), np.int64)
    end = 0
    for vector in range(len(offsets) - 1):
        start, stop = offsets[vector], offsets[vector + 1]
        if stop - start <= cap:
            for entry in range(start, stop):
                kept[end] = entry
                end += 1
            continue
        # The value of the weakest that stays; those above it all stay, those equal to it while there is room.
        threshold = np.partition(values[start:stop], stop - start - cap)[stop - start - cap]
        room = cap
        for entry in range(start, stop):
            if values[entry] > threshold:
                room -= 1
        for entry in range(start, stop):
            if values[entry] > threshold:
                kept[end] = entry
                end += 1
            elif values[entry] == threshold and room > 0:
                kept[end] = entry
                end += 1
                room -= 1
    return kept[:end].copy()
