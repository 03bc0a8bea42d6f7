"""The bitmaps of lists that many documents of a chunk are in, without the bytes of them that are 0.

A list begins with its tops: a bit for each byte of the bitmap (8 documents), which says whether it is other than 0, in
words of 64 bits. For each 1,024 documents but the first there follow marks: how many bytes and how many documents stand
before (16 bits each). Then come the bytes that are not 0, and then the codes, one a document.

A row is what `packing.locate` finds: form, documents, where the list begins, where its codes begin.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing.bare import short_at
from lexent.indexing.bits import popcount, spread, word_at

GROUP = 512
"""Documents of a top."""
LEAP = 1024
"""Documents between two marks."""
WORDS = 65_536 // 64
"""Words of a bitmap, at most."""
ROOM = 640
"""Bytes behind the lists of a chunk: what is read at a time may begin in the last one and end there. The tops of a
damaged list may promise more than it has, by a group at most."""


@njit(cache=True, nogil=True, inline="always")
def n_tops(n_documents: int) -> int:
    return (n_documents + GROUP - 1) // GROUP


@njit(cache=True, nogil=True, inline="always")
def head(n_documents: int) -> int:
    """Bytes of tops and marks."""
    return 8 * n_tops(n_documents) + 4 * ((n_documents - 1) // LEAP)


@njit(cache=True, nogil=True)
def fill(documents: NDArray[np.uint16], n_documents: int, out: NDArray[np.uint8], place: int) -> None:
    """Writes a list without its codes to a place in bytes that are 0."""
    marks, low = place + 8 * n_tops(n_documents), place + head(n_documents)
    at, last = low - 1, np.int64(-1)
    leap = 0
    for n in range(len(documents)):
        document = np.int64(documents[n])
        while leap < document // LEAP:
            before = at + 1 - low
            mark = marks + 4 * leap
            out[mark], out[mark + 1], out[mark + 2], out[mark + 3] = before & 255, before >> 8, n & 255, n >> 8
            leap += 1
        byte = document >> 3
        if byte != last:
            out[place + (byte >> 3)] |= np.uint8(1 << (byte & 7))
            at, last = at + 1, byte
        out[at] |= np.uint8(1 << (document & 7))
    before, n = at + 1 - low, len(documents)
    for mark in range(marks + 4 * leap, low, 4):
        out[mark], out[mark + 1], out[mark + 2], out[mark + 3] = before & 255, before >> 8, n & 255, n >> 8


@njit(cache=True, nogil=True)
def read(data: NDArray[np.uint8], row: NDArray[np.int64], n_documents: int, out: NDArray[np.uint64]) -> int:
    """The whole bitmap of a list: how many words?"""
    at, n = row[2] + head(n_documents), 0
    for group in range(n_tops(n_documents)):
        top, at = word_at(data, row[2] + 8 * group), min(at, row[3])
        for _ in range(8):
            out[n] = spread(data, at, top & np.uint64(255))
            at += popcount(top & np.uint64(255))
            top >>= np.uint64(8)
            n += 1
    return n


@njit(cache=True, nogil=True, forceinline=True)
def find(data: NDArray[np.uint8], row: NDArray[np.int64], n_documents: int, document: int) -> int:
    """Where the code of a document stands, or -1 if it is not in the list."""
    start, codes = row[2], row[3]
    group, byte = document // GROUP, np.uint64(document >> 3 & 63)
    top = word_at(data, start + 8 * group)
    if (top >> byte) & np.uint64(1) == 0:
        return -1
    low, rank = start + head(n_documents), 0
    leap = document // LEAP
    if leap > 0:
        mark = start + 8 * n_tops(n_documents) + 4 * (leap - 1)
        low = min(low + np.int64(short_at(data, mark)), codes)
        rank = np.int64(short_at(data, mark + 2))
    at = low + popcount(top & ((np.uint64(1) << byte) - np.uint64(1)))
    for before in range(leap * (LEAP // GROUP), group):
        at += popcount(word_at(data, start + 8 * before))
    at = min(at, codes)
    own = np.uint64(data[at])
    bit = np.uint64(document & 7)
    if (own >> bit) & np.uint64(1) == 0:
        return -1
    rank += popcount(own & ((np.uint64(1) << bit) - np.uint64(1)))
    while low + 8 <= at:
        rank += popcount(word_at(data, low))
        low += 8
    rank += popcount(word_at(data, low) & ((np.uint64(1) << np.uint64(8 * (at - low))) - np.uint64(1)))
    return codes + min(rank, row[1] - 1)
