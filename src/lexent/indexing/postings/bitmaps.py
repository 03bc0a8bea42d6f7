"""Bitmaps of posting lists that many documents of a chunk are in, compressed by leaving out their zero bytes.

A list begins with a 64-bit word for each group of 512 documents: which bytes of the group's bitmap are not zero. For
each group but the first follows a rank sample of two 16-bit numbers: how many bytes, and how many documents, stand
before the group. Then come the non-zero bytes, and then the codes, one a document.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings.binary_postings import load_uint16
from lexent.indexing.postings.descriptor import CODES, ENTRIES, START
from lexent.indexing.postings.layout import GROUP_DOCUMENTS
from lexent.indexing.postings.simd import expand_bytes, load_word, popcount, trailing_zeros_or_64
from lexent.jit import njit


@njit(cache=True, nogil=True, inline="always")
def n_groups(n_documents: int) -> int:
    """Groups of GROUP_DOCUMENTS of a chunk."""
    return (n_documents + GROUP_DOCUMENTS - 1) // GROUP_DOCUMENTS


@njit(cache=True, nogil=True, inline="always")
def header_bytes(n_documents: int) -> int:
    """Bytes of the words and rank samples before the bitmap."""
    return 12 * n_groups(n_documents) - 4


@njit(cache=True, nogil=True)
def write(documents: NDArray[np.uint16], n_documents: int, out: NDArray[np.uint8], place: int) -> None:
    """Writes a list without its codes to a place in zeroed bytes."""
    ranks, low = place + 8 * n_groups(n_documents), place + header_bytes(n_documents)
    at, last, rank_place = low - 1, np.int64(-1), ranks
    for n in range(len(documents)):
        document = np.int64(documents[n])
        while rank_place < ranks + 4 * (document // GROUP_DOCUMENTS):
            _write_rank(out, rank_place, at + 1 - low, n)
            rank_place += 4
        byte = document >> 3
        if byte != last:
            out[place + (byte >> 3)] |= np.uint8(1 << (byte & 7))
            at, last = at + 1, byte
        out[at] |= np.uint8(1 << (document & 7))
    for rest in range(rank_place, low, 4):
        _write_rank(out, rest, at + 1 - low, len(documents))


@njit(cache=True, nogil=True)
def _write_rank(out: NDArray[np.uint8], place: int, n_bytes: int, n_documents: int) -> None:
    out[place], out[place + 1] = n_bytes & 255, n_bytes >> 8
    out[place + 2], out[place + 3] = n_documents & 255, n_documents >> 8


@njit(cache=True, nogil=True)
def unpack(data: NDArray[np.uint8], descriptor: NDArray[np.int64], n_documents: int, out: NDArray[np.uint16]) -> int:
    """Decodes the documents of a list, ascending; returns how many. The output has room for 8 more than a chunk has."""
    at, document, n = descriptor[START] + header_bytes(n_documents), 0, 0
    for group in range(n_groups(n_documents)):
        nonzero, at = load_word(data, descriptor[START] + 8 * group), min(at, descriptor[CODES])
        for _ in range(8):
            bits = expand_bytes(data, at, nonzero & np.uint64(255))
            first, count = n, popcount(bits)
            n += count
            # Always write 8, without branches; the next documents overwrite those beyond the count.
            for place in range(8):
                out[np.uint64(first + place)] = document + trailing_zeros_or_64(bits)
                bits &= bits - np.uint64(1)
            first += 8
            while bits != 0:
                out[np.uint64(first)] = document + trailing_zeros_or_64(bits)
                bits &= bits - np.uint64(1)
                first += 1
            at += popcount(nonzero & np.uint64(255))
            nonzero >>= np.uint64(8)
            document += 64
    return n


@njit(cache=True, nogil=True, forceinline=True)
def probe_many(
    data: NDArray[np.uint8],
    descriptors: NDArray[np.int64],
    term: int,
    n_documents: int,
    candidates: NDArray[np.int64],
    n: int,
    matches: NDArray[np.int64],
    places: NDArray[np.int64],
) -> int:
    """Finds which of the first n candidates are in a list, and where their codes stand; returns how many."""
    start, codes, last, found = descriptors[term, START], descriptors[term, CODES], descriptors[term, ENTRIES] - 1, 0
    ranks, low = start + 8 * n_groups(n_documents), start + header_bytes(n_documents)
    for place in range(n):  # without branches, so that cache misses overlap
        document = candidates[place]
        group, byte = document // GROUP_DOCUMENTS, np.uint64(document >> 3 & 63)
        nonzero, rank_place = load_word(data, start + 8 * group), ranks + 4 * max(group - 1, 0)
        before = np.int64(load_uint16(data, rank_place)) * (group > 0)
        at = min(low + before + popcount(nonzero & ((np.uint64(1) << byte) - np.uint64(1))), codes)
        bit = (nonzero >> byte) & (np.uint64(data[at]) >> np.uint64(document & 7)) & np.uint64(1)
        matches[found], places[found] = place, at
        found += np.int64(bit)
    for place in range(found):
        document, rank, first = candidates[matches[place]], 0, low
        if document >= GROUP_DOCUMENTS:
            rank_place = ranks + 4 * (document // GROUP_DOCUMENTS - 1)
            first = min(low + np.int64(load_uint16(data, rank_place)), codes)
            rank = np.int64(load_uint16(data, rank_place + 2))
        rank += _documents_before(data, first, places[place], np.uint64(document & 7))
        places[place] = codes + min(rank, last)
    return found


@njit(cache=True, nogil=True, forceinline=True)
def _documents_before(data: NDArray[np.uint8], first: int, at: int, bit: np.uint64) -> int:
    """Number of set bits from the byte at `first` up to a bit of the byte at `at`."""
    count = popcount(np.uint64(data[at]) & ((np.uint64(1) << bit) - np.uint64(1)))
    while first + 8 <= at:
        count += popcount(load_word(data, first))
        first += 8
    return count + popcount(load_word(data, first) & ((np.uint64(1) << np.uint64(8 * (at - first))) - np.uint64(1)))


@njit(cache=True, nogil=True, forceinline=True)
def probe(data: NDArray[np.uint8], descriptor: NDArray[np.int64], n_documents: int, document: int) -> int:
    """Where the code of a document stands; -1 if it is not in the list."""
    start, codes = descriptor[START], descriptor[CODES]
    group, byte = document // GROUP_DOCUMENTS, np.uint64(document >> 3 & 63)
    nonzero = load_word(data, start + 8 * group)
    if (nonzero >> byte) & np.uint64(1) == 0:
        return -1
    low, rank = start + header_bytes(n_documents), 0
    if group > 0:
        rank_place = start + 8 * n_groups(n_documents) + 4 * (group - 1)
        low = min(low + np.int64(load_uint16(data, rank_place)), codes)
        rank = np.int64(load_uint16(data, rank_place + 2))
    at = min(low + popcount(nonzero & ((np.uint64(1) << byte) - np.uint64(1))), codes)
    bit = np.uint64(document & 7)
    if (np.uint64(data[at]) >> bit) & np.uint64(1) == 0:
        return -1
    return codes + min(rank + _documents_before(data, low, at, bit), descriptor[ENTRIES] - 1)
