"""Encodings of binary posting lists, of documents without codes: what a binary index keeps.

A chunk's lists stand one after the other in one array of bytes, each in the smallest of four encodings. A record has 32
bits: where the list begins in its chunk, and its encoding. A list ends where the next one begins; its length gives its
number of documents.

- BINARY_DOC_IDS: document numbers, 16 bits each. For a few documents.
- BINARY_BLOCKS: the low byte of each document number. Before them stand the high bytes in unary: a 0 for each block of
  256 documents that ends, a 1 for each document.
- BINARY_GAPS: lines of 64 bytes. A line is a document number of 16 bits, then the gaps to the next ones, 8 bits each. A
  gap of 255 lands on no document and bridges gaps above 254.
- BINARY_BITMAP: a bit a document.

Whatever the bytes of a damaged file, a document number has 16 bits, so a kernel whose arrays have 65,536 elements stays
inside them. Where a list begins and ends is checked before it is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings.descriptor import ENCODING, END, ENTRIES, START
from lexent.indexing.postings.simd import BLOCK_DOCUMENTS, load_word, popcount, trailing_zeros
from lexent.jit import njit

BINARY_DOC_IDS, BINARY_BLOCKS, BINARY_GAPS, BINARY_BITMAP = 4, 5, 6, 7
"""Encodings, numbered after those of `packing`. A record holds the lowest two bits."""
LINE_BYTES = 64
"""Bytes of a line of BINARY_GAPS."""
SKIP_GAP = 255
"""The gap that lands on no document."""
BLOCKS_MIN_DOCUMENTS = 8
"""Documents of a list in BINARY_BLOCKS, at least, so that a 64-bit load from its bits ends inside the list."""
BITMAP_BUDGET_BYTES_PER_POSTING = 1.25
"""Lists get bitmaps that are larger than their other encodings while the chunk has at most so many bytes a posting."""
LIST_OVERHEAD_BYTES, DOCUMENT_OVERHEAD_BYTES = 12, 2
"""Counted in that budget: the record and document frequency of a list, the length of a document."""
BITMAP_MAX_MEAN_GAP = 32
"""A bitmap is the fastest encoding where a list has at least one in so many documents."""
MAX_CHUNK_BYTES = 2**30
"""Bytes of a chunk's lists, at most: what a record can address."""
MAX_LIST_ENTRIES = 2 * 65_536
"""Entries of a list, documents or gaps, at most."""


@njit(cache=True, nogil=True, inline="always")
def bitmap_bytes(n_documents: int) -> int:
    """Bytes of a bitmap, rounded up to blocks of BLOCK_DOCUMENTS."""
    return (n_documents + BLOCK_DOCUMENTS - 1) // BLOCK_DOCUMENTS * BLOCK_DOCUMENTS // 8


@njit(cache=True, nogil=True, inline="always")
def n_blocks(n_documents: int) -> int:
    """Blocks of 256 documents of a chunk."""
    return (n_documents + 255) // 256


@njit(cache=True, nogil=True, inline="always")
def load_uint16(data: NDArray[np.uint8], place: int) -> np.uint32:
    """Loads a little-endian uint16 from a place."""
    at = np.uint64(place)  # unsigned, so that Numba omits the test for negative indices
    return np.uint32(data[at]) | np.uint32(data[at + np.uint64(1)]) << np.uint32(8)


# --- packing -----------------------------------------------------------------------------------------------------


def pack(
    starts: NDArray[np.int64], documents: NDArray[np.uint16], n_documents: int
) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]] | None:
    """Packs the lists of a chunk: their latents, and their part of each array; None where they exceed MAX_CHUNK_BYTES.

    starts, documents: see `packing.invert`.
    """
    latents = np.flatnonzero(np.diff(starts)).astype(np.uint32)
    encodings, list_starts = plan(starts, documents, latents, n_documents)
    if list_starts[-1] > MAX_CHUNK_BYTES:
        return None
    data = np.zeros(list_starts[-1], np.uint8)
    write(starts, documents, latents, encodings, list_starts, n_documents, data)
    records = (list_starts[:-1] << 2 | encodings - BINARY_DOC_IDS).astype(np.uint32)[:, None]
    return latents, {"records": records, "codes": data, "shorts": np.empty(0, np.uint16)}


@njit(cache=True, nogil=True)
def plan(
    starts: NDArray[np.int64], documents: NDArray[np.uint16], latents: NDArray[np.uint32], n_documents: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Encoding of the list of each latent; and where each begins, with the end of the last."""
    n_lists = len(latents)
    encodings, counts, sizes = np.empty(n_lists, np.uint8), np.empty(n_lists, np.int64), np.empty(n_lists, np.int64)
    list_starts, nothing = np.zeros(n_lists + 1, np.int64), np.empty(0, np.uint8)
    for row in range(n_lists):
        own = documents[starts[latents[row]] : starts[latents[row] + 1]]
        n = len(own)
        encoding, size = BINARY_DOC_IDS, 2 * n
        size_in_blocks = n + (n + n_blocks(n_documents) + 7) // 8
        if n >= BLOCKS_MIN_DOCUMENTS and size_in_blocks < size:
            encoding, size = BINARY_BLOCKS, size_in_blocks
        size_in_gaps = _write_gaps(own, nothing)
        if size_in_gaps <= size + size // 16:  # a little larger is fine, as it is faster to read
            encoding, size = BINARY_GAPS, size_in_gaps
        if bitmap_bytes(n_documents) <= size:
            encoding, size = BINARY_BITMAP, bitmap_bytes(n_documents)
        encodings[row], counts[row], sizes[row] = encoding, n, size
    _promote_to_bitmaps(encodings, counts, sizes, n_documents)
    list_starts[1:] = np.cumsum(sizes)
    return encodings, list_starts


@njit(cache=True, nogil=True)
def _promote_to_bitmaps(
    encodings: NDArray[np.uint8], counts: NDArray[np.int64], sizes: NDArray[np.int64], n_documents: int
) -> None:
    """Gives bitmaps, which are faster, to more lists, the longest first, while the chunk stays within its budget."""
    budget = (
        np.int64(BITMAP_BUDGET_BYTES_PER_POSTING * counts.sum())
        - sizes.sum()
        - LIST_OVERHEAD_BYTES * len(encodings)
        - DOCUMENT_OVERHEAD_BYTES * n_documents
    )
    for row in np.argsort(-counts):
        if encodings[row] == BINARY_BITMAP:
            continue
        budget -= bitmap_bytes(n_documents) - sizes[row]
        if budget < 0 or counts[row] * BITMAP_MAX_MEAN_GAP < n_documents:
            break
        encodings[row], sizes[row] = BINARY_BITMAP, bitmap_bytes(n_documents)


@njit(cache=True, nogil=True)
def write(
    starts: NDArray[np.int64],
    documents: NDArray[np.uint16],
    latents: NDArray[np.uint32],
    encodings: NDArray[np.uint8],
    list_starts: NDArray[np.int64],
    n_documents: int,
    out: NDArray[np.uint8],
) -> None:
    """Writes the lists to where `plan` placed them, in zeroed bytes."""
    for row in range(len(latents)):
        own = documents[starts[latents[row]] : starts[latents[row] + 1]]
        data, encoding = out[list_starts[row] : list_starts[row + 1]], encodings[row]
        if encoding == BINARY_DOC_IDS:
            for entry in range(len(own)):
                data[2 * entry], data[2 * entry + 1] = own[entry] & 255, own[entry] >> 8
        elif encoding == BINARY_BLOCKS:
            low_bytes = len(data) - len(own)
            for entry in range(len(own)):
                bit = (np.int64(own[entry]) >> 8) + entry
                data[bit >> 3] |= np.uint8(1 << (bit & 7))
                data[low_bytes + entry] = own[entry] & 255
        elif encoding == BINARY_GAPS:
            _write_gaps(own, data)
        else:
            for document in own:
                data[document >> 3] |= np.uint8(1 << (document & 7))


@njit(cache=True, nogil=True)
def _write_gaps(documents: NDArray[np.uint16], data: NDArray[np.uint8]) -> int:
    """Writes a list of BINARY_GAPS and returns its bytes; only counts them where `data` is empty."""
    size, last, writing = 0, np.int64(0), len(data) > 0
    for document in documents:
        gap = np.int64(document) - last
        last = np.int64(document)
        at = size % LINE_BYTES
        needed = gap // 255 + 1  # a gap of 255 is SKIP_GAP and a gap of 0
        if at != 0 and at + needed <= LINE_BYTES:
            size += needed
            if writing:
                data[size - needed : size - 1] = SKIP_GAP
                data[size - 1] = gap % 255
        else:
            padding = (LINE_BYTES - at) % LINE_BYTES
            size += padding + 2
            if writing:
                data[size - padding - 2 : size - 2] = SKIP_GAP
                data[size - 2], data[size - 1] = document & 255, document >> 8
    return size


# --- reading -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def locate(lists: Any, chunk: int, row: int, descriptor: NDArray[np.int64]) -> bool:
    """Fills the descriptor of a list; its entries are an upper limit of its documents.

    False where the list does not lie inside its chunk, or has a length that its encoding cannot have.
    """
    record, first, stop = np.int64(lists.records[row, 0]), lists.chunks[chunk, 3], lists.chunks[chunk + 1, 3]
    end = stop
    if row + 1 < lists.chunks[chunk + 1, 1]:
        end = first + (np.int64(lists.records[row + 1, 0]) >> 2)
    start = first + (record >> 2)
    encoding, size = BINARY_DOC_IDS + (record & 3), end - start
    descriptor[ENCODING], descriptor[START], descriptor[END] = encoding, start, end
    if size < 2 or end > stop:
        return False
    n_documents = lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]
    if encoding == BINARY_DOC_IDS:
        descriptor[ENTRIES] = size // 2
        return size % 2 == 0 and descriptor[ENTRIES] <= MAX_LIST_ENTRIES
    if encoding == BINARY_GAPS:
        descriptor[ENTRIES] = size // LINE_BYTES * (LINE_BYTES - 1) + max(size % LINE_BYTES - 1, 0)
        return size % LINE_BYTES != 1 and descriptor[ENTRIES] <= MAX_LIST_ENTRIES
    if encoding == BINARY_BITMAP:
        descriptor[ENTRIES] = n_documents
        return size == bitmap_bytes(n_documents)
    blocks = n_blocks(n_documents)
    n = (8 * size - blocks) // 9
    descriptor[ENTRIES] = n
    return BLOCKS_MIN_DOCUMENTS <= n <= MAX_LIST_ENTRIES and n + (n + blocks + 7) // 8 == size


@njit(cache=True, nogil=True)
def decode(data: NDArray[np.uint8], descriptor: NDArray[np.int64], out: NDArray[np.uint16]) -> int:
    """Decodes the documents of a list, ascending; returns how many. The output has MAX_LIST_ENTRIES places."""
    encoding, count, start, end, n = descriptor[ENCODING], descriptor[ENTRIES], descriptor[START], descriptor[END], 0
    if encoding == BINARY_DOC_IDS:
        for entry in range(count):
            out[entry] = load_uint16(data, start + 2 * entry)
        return count
    if encoding == BINARY_GAPS:
        for line in range(start, end, LINE_BYTES):
            document = load_uint16(data, line)
            out[n] = np.uint16(document)
            n += 1
            for gap in data[line + 2 : min(line + LINE_BYTES, end)]:
                document += np.int64(gap)
                out[n] = np.uint16(document)
                n += gap != SKIP_GAP
        return n
    if encoding == BINARY_BITMAP:
        for place in range(start, end, 8):
            bits: Any = load_word(data, place)
            while bits != 0:
                out[n] = np.uint16(8 * (place - start) + trailing_zeros(bits))
                bits &= bits - np.uint64(1)
                n += 1
        return n
    low_bytes = end - count
    for place in range(start, low_bytes, 8):
        bits = load_word(data, place)
        while bits != 0 and n < count:
            block = 8 * (place - start) + trailing_zeros(bits) - n
            bits &= bits - np.uint64(1)
            out[n] = np.uint16(block << 8 | np.int64(data[low_bytes + n]))
            n += 1
    return n


@njit(cache=True, nogil=True)
def contains(data: NDArray[np.uint8], descriptor: NDArray[np.int64], document: int) -> bool:
    """Whether a list holds a document of its chunk; it is not decoded whole."""
    encoding, count, start, end = descriptor[ENCODING], descriptor[ENTRIES], descriptor[START], descriptor[END]
    if encoding == BINARY_BITMAP:
        return (data[start + (document >> 3)] >> (document & 7)) & 1 != 0
    if encoding == BINARY_DOC_IDS:
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if load_uint16(data, start + 2 * middle) < document:
                low = middle + 1
            else:
                high = middle
        return low < count and load_uint16(data, start + 2 * low) == document
    if encoding == BINARY_GAPS:
        low, high = 0, (end - start - 1) // LINE_BYTES
        while low < high:  # find the last line that does not begin after the document
            middle = (low + high + 1) >> 1
            if load_uint16(data, start + LINE_BYTES * middle) <= document:
                low = middle
            else:
                high = middle - 1
        line = start + LINE_BYTES * low
        at, found = load_uint16(data, line), False
        if at >= document:
            return at == document
        for gap in data[line + 2 : min(line + LINE_BYTES, end)]:
            at += np.int64(gap)
            found |= at == document and gap != SKIP_GAP
        return found
    block, byte, n, low = document >> 8, document & 255, 0, end - count
    for place in range(start, low, 8):
        bits: Any = load_word(data, place)
        ones = popcount(bits)
        if 8 * (place + 8 - start) - n - ones < block:  # zeros so far are blocks that ended: skip this word
            n += ones
            continue
        while bits != 0 and n < count:
            current = 8 * (place - start) + trailing_zeros(bits) - n
            if current > block:
                return False
            if current == block and np.int64(data[low + n]) == byte:
                return True
            bits &= bits - np.uint64(1)
            n += 1
    return False
