"""The Numba kernels that pack bare lists, of documents without codes: what a binary index keeps.

A chunk's lists stand one after the other in one array of bytes, each in whichever of four forms is smallest. A record
is 32 bits: where the list begins in its chunk, and its form; it ends where the next one begins, and how many documents
it has follows from its length.

- PLAIN: document numbers, 16 bits each. For a few documents.
- BLOCKS: the low byte of each number; before them a bit a document and a bit a block of 256 documents, in which a
  document's 1 comes after a 0 for each block that ended before it.
- STEPS: lines of 64 bytes: a number of 16 bits, then the distances to the next ones, 8 bits each. 255 is a step that
  lands on no document, for distances above 254.
- BITMAP: a bit a document.

Whatever the bytes of a damaged file say, a document number has 16 bits, so a kernel whose arrays have 65,536 places
stays inside them; where a list begins and ends is checked before it is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing.bits import BLOCK, popcount, trailing_zeros, word_at

PLAIN, BLOCKS, STEPS, BITMAP = 4, 5, 6, 7
"""Forms, after those of `packing`. A record holds the lowest two bits."""
LINE = 64
"""Bytes of a line of STEPS."""
SKIP = 255
"""The step that lands on no document."""
FEWEST = 8
"""Documents of a list in BLOCKS, at least: a word of 64 bits that begins in its bits then ends in the list."""
BUDGET = 1.25
"""Bytes a posting up to which lists get bitmaps that are larger than their other forms."""
OF_A_LIST, OF_A_DOCUMENT = 12, 2
"""Bytes beside those: a record and a count; a length."""
PAYS = 32
"""Of so many documents a list must have one for its bitmap to be the quicker form."""
ROOM = 2**30
"""Bytes that the lists of a chunk can have."""
MOST = 2 * 65_536
"""Entries of a list: documents, or steps."""


@njit(cache=True, nogil=True, inline="always")
def bitmap_bytes(n_documents: int) -> int:
    """Whole blocks, as they are counted."""
    return (n_documents + BLOCK - 1) // BLOCK * BLOCK // 8


@njit(cache=True, nogil=True, inline="always")
def blocks_of(n_documents: int) -> int:
    return (n_documents + 255) // 256


@njit(cache=True, nogil=True, inline="always")
def short_at(data: NDArray[np.uint8], place: int) -> np.uint32:
    """The number of 16 bits at a place."""
    at = np.uint64(place)  # unsigned: Numba then leaves out the test for counting from the end
    return np.uint32(data[at]) | np.uint32(data[at + np.uint64(1)]) << np.uint32(8)


# --- packing -----------------------------------------------------------------------------------------------------


def pack(
    starts: NDArray[np.int64], documents: NDArray[np.uint16], n_documents: int
) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]] | None:
    """The lists of a chunk: their latents, and their part of each array; None where they have no room in one.

    starts, documents: see `packing.invert`.
    """
    latents, forms, places = plan(starts, documents, n_documents)
    if places[-1] > ROOM:
        return None
    data = np.zeros(places[-1], np.uint8)
    fill(starts, documents, latents, forms, places, n_documents, data)
    records = (places[:-1] << 2 | forms - PLAIN).astype(np.uint32)[:, None]
    return latents, {"records": records, "codes": data, "shorts": np.empty(0, np.uint16)}


@njit(cache=True, nogil=True)
def plan(
    starts: NDArray[np.int64], documents: NDArray[np.uint16], n_documents: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.int64]]:
    """For each list that is not empty: latent and form; and where each begins, with the end of the last."""
    n_lists = 0
    for latent in range(len(starts) - 1):
        n_lists += starts[latent + 1] > starts[latent]
    latents, forms = np.empty(n_lists, np.uint32), np.empty(n_lists, np.uint8)
    counts, sizes = np.empty(n_lists, np.int64), np.empty(n_lists, np.int64)
    places = np.zeros(n_lists + 1, np.int64)
    row = 0
    for latent in range(len(starts) - 1):
        own = documents[starts[latent] : starts[latent + 1]]
        n = len(own)
        if n == 0:
            continue
        form, size = PLAIN, 2 * n
        in_blocks = n + (n + blocks_of(n_documents) + 7) // 8
        if n >= FEWEST and in_blocks < size:
            form, size = BLOCKS, in_blocks
        in_steps = _size_in_steps(own)
        if in_steps <= size + size // 16:  # a little more, as it is quicker to read
            form, size = STEPS, in_steps
        if bitmap_bytes(n_documents) <= size:
            form, size = BITMAP, bitmap_bytes(n_documents)
        latents[row], forms[row], counts[row], sizes[row] = latent, form, n, size
        row += 1
    _promote(forms, counts, sizes, n_documents)
    for row in range(n_lists):
        places[row + 1] = places[row] + sizes[row]
    return latents, forms, places


@njit(cache=True, nogil=True)
def _promote(forms: NDArray[np.uint8], counts: NDArray[np.int64], sizes: NDArray[np.int64], n_documents: int) -> None:
    """Gives bitmaps to more lists, the longest first, while the chunk stays within BUDGET: those are quicker."""
    spare = np.int64(BUDGET * counts.sum()) - sizes.sum() - OF_A_LIST * len(forms) - OF_A_DOCUMENT * n_documents
    for row in np.argsort(-counts):
        if forms[row] == BITMAP:
            continue
        spare -= bitmap_bytes(n_documents) - sizes[row]
        if spare < 0 or counts[row] * PAYS < n_documents:
            break
        forms[row], sizes[row] = BITMAP, bitmap_bytes(n_documents)


@njit(cache=True, nogil=True)
def _size_in_steps(documents: NDArray[np.uint16]) -> int:
    size, last = 0, np.int64(0)
    for document in documents:
        gap = np.int64(document) - last
        last = np.int64(document)
        at = size % LINE
        needed = gap // 255 + 1  # a distance of 255 is a skip and a step of 0
        if at != 0 and at + needed <= LINE:
            size += needed
        else:
            size += (LINE - at) % LINE + 2
    return size


@njit(cache=True, nogil=True)
def fill(
    starts: NDArray[np.int64],
    documents: NDArray[np.uint16],
    latents: NDArray[np.uint32],
    forms: NDArray[np.uint8],
    places: NDArray[np.int64],
    n_documents: int,
    out: NDArray[np.uint8],
) -> None:
    """Writes the lists to the places that `plan` gave them, in bytes that are 0."""
    for row in range(len(latents)):
        own = documents[starts[latents[row]] : starts[latents[row] + 1]]
        data, form = out[places[row] : places[row + 1]], forms[row]
        if form == PLAIN:
            for entry in range(len(own)):
                data[2 * entry], data[2 * entry + 1] = own[entry] & 255, own[entry] >> 8
        elif form == BLOCKS:
            low = len(data) - len(own)
            for entry in range(len(own)):
                bit = (np.int64(own[entry]) >> 8) + entry
                data[bit >> 3] |= np.uint8(1 << (bit & 7))
                data[low + entry] = own[entry] & 255
        elif form == STEPS:
            _fill_steps(own, data)
        else:
            for document in own:
                data[document >> 3] |= np.uint8(1 << (document & 7))


@njit(cache=True, nogil=True)
def _fill_steps(documents: NDArray[np.uint16], data: NDArray[np.uint8]) -> None:
    size, last = 0, np.int64(0)
    for document in documents:
        gap = np.int64(document) - last
        last = np.int64(document)
        at = size % LINE
        needed = gap // 255 + 1
        if at != 0 and at + needed <= LINE:
            data[size : size + needed - 1] = SKIP
            data[size + needed - 1] = gap % 255
            size += needed
            continue
        rest = (LINE - at) % LINE
        data[size : size + rest] = SKIP
        size += rest + 2
        data[size - 2], data[size - 1] = document & 255, document >> 8


# --- reading -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def locate(lists: Any, chunk: int, row: int, found: NDArray[np.int64]) -> bool:
    """Form, entries, start and end of a list, counted from the start of the segment; no more documents than entries.

    False where the list does not lie inside its chunk, or has a length that its form cannot have.
    """
    record, first, stop = np.int64(lists.records[row, 0]), lists.chunks[chunk, 3], lists.chunks[chunk + 1, 3]
    end = stop
    if row + 1 < lists.chunks[chunk + 1, 1]:
        end = first + (np.int64(lists.records[row + 1, 0]) >> 2)
    start = first + (record >> 2)
    form, size = PLAIN + (record & 3), end - start
    found[0], found[2], found[3] = form, start, end
    if size < 2 or end > stop:
        return False
    n_documents = lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]
    if form == PLAIN:
        found[1] = size // 2
        return size % 2 == 0 and found[1] <= MOST
    if form == STEPS:
        found[1] = size // LINE * (LINE - 1) + max(size % LINE - 1, 0)
        return size % LINE != 1 and found[1] <= MOST
    if form == BITMAP:
        found[1] = n_documents
        return size == bitmap_bytes(n_documents)
    blocks = blocks_of(n_documents)
    n = (8 * size - blocks) // 9
    found[1] = n
    return FEWEST <= n <= MOST and n + (n + blocks + 7) // 8 == size


@njit(cache=True, nogil=True)
def read(data: NDArray[np.uint8], row: NDArray[np.int64], out: NDArray[np.uint16]) -> int:
    """The documents of a list that was located, ascending; gives how many. The output has MOST places."""
    form, count, start, end, n = row[0], row[1], row[2], row[3], 0
    if form == PLAIN:
        for entry in range(count):
            out[entry] = short_at(data, start + 2 * entry)
        return count
    if form == STEPS:
        for line in range(start, end, LINE):
            document = short_at(data, line)
            out[n] = np.uint16(document)
            n += 1
            for step in data[line + 2 : min(line + LINE, end)]:
                document += np.int64(step)
                out[n] = np.uint16(document)
                n += step != SKIP
        return n
    if form == BITMAP:
        for place in range(start, end, 8):
            bits: Any = word_at(data, place)
            while bits != 0:
                out[n] = np.uint16(8 * (place - start) + trailing_zeros(bits))
                bits &= bits - np.uint64(1)
                n += 1
        return n
    low = end - count
    for place in range(start, low, 8):
        bits = word_at(data, place)
        while bits != 0 and n < count:
            block = 8 * (place - start) + trailing_zeros(bits) - n
            bits &= bits - np.uint64(1)
            out[n] = np.uint16(block << 8 | np.int64(data[low + n]))
            n += 1
    return n


@njit(cache=True, nogil=True)
def holds(data: NDArray[np.uint8], row: NDArray[np.int64], document: int) -> bool:
    """Whether a list that was located has a document of its chunk; it is not read whole."""
    form, count, start, end = row[0], row[1], row[2], row[3]
    if form == BITMAP:
        return (data[start + (document >> 3)] >> (document & 7)) & 1 != 0
    if form == PLAIN:
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if short_at(data, start + 2 * middle) < document:
                low = middle + 1
            else:
                high = middle
        return low < count and short_at(data, start + 2 * low) == document
    if form == STEPS:
        low, high = 0, (end - start - 1) // LINE
        while low < high:  # the last line that does not begin after it
            middle = (low + high + 1) >> 1
            if short_at(data, start + LINE * middle) <= document:
                low = middle
            else:
                high = middle - 1
        line = start + LINE * low
        at, there = short_at(data, line), False
        if at >= document:
            return at == document
        for step in data[line + 2 : min(line + LINE, end)]:
            at += np.int64(step)
            there |= at == document and step != SKIP
        return there
    block, byte, n, low = document >> 8, document & 255, 0, end - count
    for place in range(start, low, 8):
        bits: Any = word_at(data, place)
        ones = popcount(bits)
        if 8 * (place + 8 - start) - n - ones < block:  # zeros so far: all of its documents are in blocks before
            n += ones
            continue
        while bits != 0 and n < count:
            here = 8 * (place - start) + trailing_zeros(bits) - n
            if here > block:
                return False
            if here == block and np.int64(data[low + n]) == byte:
                return True
            bits &= bits - np.uint64(1)
            n += 1
    return False
