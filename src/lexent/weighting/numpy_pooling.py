"""Pooling with NumPy: the twin of `kernels`, for few texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def pool(
    ids: NDArray[np.int32], values: NDArray[np.float32], offsets: NDArray[np.int64], size: int, maximum: bool
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]:
    """The entries of all texts, ids ascending within each, and how many entries each text has."""
    n_texts = len(offsets) - 1
    owners = np.repeat(np.arange(n_texts), np.diff(offsets))
    ids, values = ids[offsets[0] : offsets[-1]], values[offsets[0] : offsets[-1]]
    kept = values > 0
    keys = (owners[:, None] * size + ids)[kept]
    known, place = np.unique(keys, return_inverse=True)
    if maximum:
        pooled = np.zeros(len(known), np.float32)
        np.maximum.at(pooled, place, values[kept])
    else:  # in float64, one after the other, as the kernel adds
        pooled = np.bincount(place, values[kept], minlength=len(known)).astype(np.float32)
    return (known % size).astype(np.int32), pooled, np.bincount(known // size, minlength=n_texts).astype(np.int64)


def strongest(values: NDArray[np.float32], offsets: NDArray[np.int64], cap: int) -> NDArray[np.int64]:
    """The entries to keep, ascending: of each vector the `cap` of largest value, earlier entries first among equals."""
    counts = np.diff(offsets)
    owners = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((-values, owners))  # which is stable
    ranks = np.arange(len(values)) - np.repeat(offsets[:-1], counts)
    return np.sort(order[ranks < cap])
