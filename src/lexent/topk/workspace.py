"""What a search works on: a chunk, a query's lists in it, and working memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.packing import CHUNK, Lists
from lexent.indexing.scale import CURVE

DAMAGED = -1
"""What kernels say of a damaged list instead of giving a result."""


class Chunk(NamedTuple):
    """A chunk that is searched. Arrays have a place for each document that a chunk can name."""

    lists: Lists
    n_documents: int
    shifts: NDArray[np.uint8]
    halves: NDArray[np.uint8]  # of the shifts, rounded up
    curve: NDArray[np.float32]


class Asked(NamedTuple):
    """A query's lists in a chunk."""

    rows: NDArray[np.int64]  # [n, 5]: see `locate`; and the highest place in the curve
    weights: NDArray[np.float32]
    bounds: NDArray[np.int64]  # the most that each can add


class Scratch(NamedTuple):
    """Working memory of one search at a time."""

    scores: NDArray[np.int32]  # [CHUNK], zero between searches
    gains: NDArray[np.int32]  # [768]
    chosen: NDArray[np.int64]  # [CHUNK]: documents that are looked up
    sums: NDArray[np.int64]  # [CHUNK]: what they have, or can have
    which: NDArray[np.int64]  # [CHUNK]: those of the chosen that are in a list
    codes: NDArray[np.int64]  # [CHUNK]: theirs
    hopes: NDArray[np.uint8]  # [CHUNK]
    peaks: NDArray[np.uint8]  # [CHUNK / 64]: the highest hope of each 64 documents
    documents: NDArray[np.uint16]  # [bare.MOST], of one list
    narrow: NDArray[np.uint8]  # [CHUNK] in a binary index, zero between searches: counts
    wide: NDArray[np.uint16]  # the same for queries of many latents


def scratch(*, binary: bool) -> Scratch:
    return Scratch(
        scores=np.zeros(CHUNK, np.int32),
        gains=np.zeros(CURVE, np.int32),
        chosen=np.zeros(CHUNK, np.int64),
        sums=np.zeros(CHUNK, np.int64),
        which=np.zeros(CHUNK, np.int64),
        codes=np.zeros(CHUNK, np.int64),
        hopes=aligned(CHUNK),
        peaks=np.zeros(CHUNK // 64, np.uint8),
        documents=np.zeros(2 * CHUNK, np.uint16),
        narrow=np.zeros(CHUNK if binary else 0, np.uint8),
        wide=np.zeros(CHUNK if binary else 0, np.uint16),
    )


def aligned(size: int) -> NDArray[np.uint8]:
    """Bytes that are 0, from the start of a line of memory on: they are read 64 at a time."""
    room = np.zeros(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size]
