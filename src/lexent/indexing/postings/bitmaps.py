"""The bitmaps of lists that many documents of a chunk are in, without the bytes of them that are 0.

A list begins with its tops: a bit for each byte of the bitmap (8 documents), which says whether it is other than 0, in
words of 64 bits. For each of those but the first there follows a mark: how many bytes and how many documents stand
before it (16 bits each). Then come the bytes that are not 0, and then the codes, one a document.

A row is what `packing.locate` finds: form, documents, where the list begins, where its codes begin.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing.bare import short_at
from lexent.indexing.bits import first_one, popcount, spread, word_at

GROUP = 512
"""Documents of a top, and between two marks."""
ROOM = 640
"""Bytes behind the lists of a chunk: what is read at a time may begin in the last one and end there. The tops of a
damaged list may promise more than it has, by a group at most."""


@njit(cache=True, nogil=True, inline="always")
def n_tops(n_documents: int) -> int:
    return (n_documents + GROUP - 1) // GROUP


@njit(cache=True, nogil=True, inline="always")
def head(n_documents: int) -> int:
    """Bytes of tops and marks."""
    return 12 * n_tops(n_documents) - 4


@njit(cache=True, nogil=True)
def fill(documents: NDArray[np.uint16], n_documents: int, out: NDArray[np.uint8], place: int) -> None:
    """Writes a list without its codes to a place in bytes that are 0."""
    marks, low = place + 8 * n_tops(n_documents), place + head(n_documents)
    at, last, mark = low - 1, np.int64(-1), marks
    for n in range(len(documents)):
        document = np.int64(documents[n])
        while mark < marks + 4 * (document // GROUP):
            _mark(out, mark, at + 1 - low, n)
            mark += 4
        byte = document >> 3
        if byte != last:
            out[place + (byte >> 3)] |= np.uint8(1 << (byte & 7))
            at, last = at + 1, byte
        out[at] |= np.uint8(1 << (document & 7))
    for left in range(mark, low, 4):
        _mark(out, left, at + 1 - low, len(documents))


@njit(cache=True, nogil=True)
def _mark(out: NDArray[np.uint8], mark: int, n_bytes: int, n_documents: int) -> None:
    out[mark], out[mark + 1] = n_bytes & 255, n_bytes >> 8
    out[mark + 2], out[mark + 3] = n_documents & 255, n_documents >> 8


@njit(cache=True, nogil=True)
def unpack(data: NDArray[np.uint8], row: NDArray[np.int64], n_documents: int, out: NDArray[np.uint16]) -> int:
    """The documents of a list, ascending: how many? The output has places for all of a chunk and 8 more."""
    at, document, n = row[2] + head(n_documents), 0, 0
    for group in range(n_tops(n_documents)):
        top, at = word_at(data, row[2] + 8 * group), min(at, row[3])
        for _ in range(8):
            bits = spread(data, at, top & np.uint64(255))
            here, count = n, popcount(bits)
            n += count
            # The first 8 whether there are so many or not: what comes next is written over those that are none.
            for place in range(8):
                out[np.uint64(here + place)] = document + first_one(bits)
                bits &= bits - np.uint64(1)
            here += 8
            while bits != 0:
                out[np.uint64(here)] = document + first_one(bits)
                bits &= bits - np.uint64(1)
                here += 1
            at += popcount(top & np.uint64(255))
            top >>= np.uint64(8)
            document += 64
    return n


@njit(cache=True, nogil=True, forceinline=True)
def find_many(
    data: NDArray[np.uint8],
    rows: NDArray[np.int64],
    row: int,
    n_documents: int,
    documents: NDArray[np.int64],
    n: int,
    which: NDArray[np.int64],
    places: NDArray[np.int64],
) -> int:
    """Which of the first n of some documents are in a list, and where their codes stand: how many?"""
    start, codes, most, found = rows[row, 2], rows[row, 3], rows[row, 1] - 1, 0
    marks, low = start + 8 * n_tops(n_documents), start + head(n_documents)
    for one in range(n):  # without branches, so that the waits for memory of several overlap
        document = documents[one]
        group, byte = document // GROUP, np.uint64(document >> 3 & 63)
        top, mark = word_at(data, start + 8 * group), marks + 4 * max(group - 1, 0)
        before = np.int64(short_at(data, mark)) * (group > 0)
        at = min(low + before + popcount(top & ((np.uint64(1) << byte) - np.uint64(1))), codes)
        bit = (top >> byte) & (np.uint64(data[at]) >> np.uint64(document & 7)) & np.uint64(1)
        which[found], places[found] = one, at
        found += np.int64(bit)
    for one in range(found):
        document, at = documents[which[one]], places[one]
        group, bits, rank, first = document // GROUP, np.uint64(document & 7), 0, low
        if group > 0:
            mark = marks + 4 * (group - 1)
            first, rank = min(low + np.int64(short_at(data, mark)), codes), np.int64(short_at(data, mark + 2))
        rank += popcount(np.uint64(data[at]) & ((np.uint64(1) << bits) - np.uint64(1)))
        while first + 8 <= at:
            rank += popcount(word_at(data, first))
            first += 8
        rank += popcount(word_at(data, first) & ((np.uint64(1) << np.uint64(8 * (at - first))) - np.uint64(1)))
        places[one] = codes + min(rank, most)
    return found


@njit(cache=True, nogil=True, forceinline=True)
def find(data: NDArray[np.uint8], row: NDArray[np.int64], n_documents: int, document: int) -> int:
    """Where the code of a document stands, or -1 if it is not in the list."""
    start, codes = row[2], row[3]
    group, byte = document // GROUP, np.uint64(document >> 3 & 63)
    top = word_at(data, start + 8 * group)
    if (top >> byte) & np.uint64(1) == 0:
        return -1
    low, rank = start + head(n_documents), 0
    if group > 0:
        mark = start + 8 * n_tops(n_documents) + 4 * (group - 1)
        low = min(low + np.int64(short_at(data, mark)), codes)
        rank = np.int64(short_at(data, mark + 2))
    at = min(low + popcount(top & ((np.uint64(1) << byte) - np.uint64(1))), codes)
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
