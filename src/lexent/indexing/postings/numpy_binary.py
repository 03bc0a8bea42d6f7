"""Binary posting lists read with NumPy, many at a time: the twin of the kernels in `binary_postings` that read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings.layout import PostingLists, damaged
from lexent.indexing.postings.numpy_lists import Places, Postings, ends, joined, ranges
from lexent.indexing.postings.quantisation import CODE_OF_ONE

IDS, BLOCKS, GAPS, BITMAP = 0, 1, 2, 3
"""The lowest bits of a record. Also in `binary_postings`, from 4 on; that module needs Numba."""
LINE_BYTES, SKIP_GAP, BLOCK_DOCUMENTS = 64, 255, 512
MIN_DOCUMENTS_IN_BLOCKS, MAX_LIST_ENTRIES = 8, 2 * 65_536


def decode(lists: PostingLists, chunk: int, rows: Places) -> Postings:
    """The postings of some lists of a chunk, by their numbers there; each has the code of 1."""
    first, stop, n_documents = (int(one) for one in (*lists.chunks[chunk : chunk + 2, 3], _documents(lists, chunk)))
    records = lists.records[lists.chunks[chunk, 1] : lists.chunks[chunk + 1, 1], 0].astype(np.int64)
    begins = np.append(first + (records >> 2), stop)
    starts, sizes, encodings = begins[rows], begins[rows + 1] - begins[rows], records[rows] & 3
    if not _fit(encodings, sizes, n_documents).all() or (starts + sizes > stop).any():
        raise damaged()
    readers = ((IDS, _ids), (GAPS, _gaps), (BITMAP, _bitmaps))
    pieces = []
    for encoding, read in readers:
        own = np.flatnonzero(encodings == encoding)
        pieces.append((own, *read(lists.codes, starts[own], sizes[own])))
    own = np.flatnonzero(encodings == BLOCKS)
    pieces.append((own, *_blocks(lists.codes, starts[own], sizes[own], -(-n_documents // 256))))
    whole = [(own, Postings(ends(counts), found, _ones(found))) for own, counts, found in pieces]
    return joined(whole, len(rows), n_documents)


def _documents(lists: PostingLists, chunk: int) -> int:
    return int(lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0])


def _ones(documents: NDArray[np.uint16]) -> NDArray[np.uint8]:
    return np.full(len(documents), CODE_OF_ONE, np.uint8)


def _fit(encodings: Places, sizes: Places, n_documents: int) -> NDArray[np.bool_]:
    """Whether each list has a length that its encoding can have: as `binary_postings.locate`."""
    blocks = -(-n_documents // 256)
    in_lines = sizes // LINE_BYTES * (LINE_BYTES - 1) + np.maximum(sizes % LINE_BYTES - 1, 0)
    n = (8 * sizes - blocks) // 9
    in_blocks = (n >= MIN_DOCUMENTS_IN_BLOCKS) & (n <= MAX_LIST_ENTRIES) & (n + (n + blocks + 7) // 8 == sizes)
    good: NDArray[np.bool_] = (sizes >= 2) & np.select(
        [encodings == IDS, encodings == GAPS, encodings == BITMAP],
        [
            (sizes % 2 == 0) & (sizes // 2 <= MAX_LIST_ENTRIES),
            (sizes % LINE_BYTES != 1) & (in_lines <= MAX_LIST_ENTRIES),
            sizes == -(-n_documents // BLOCK_DOCUMENTS) * BLOCK_DOCUMENTS // 8,
        ],
        in_blocks,
    )
    return good


def _ids(data: NDArray[np.uint8], starts: Places, sizes: Places) -> tuple[Places, NDArray[np.uint16]]:
    return sizes // 2, data[ranges(starts, sizes)].view("<u2")


def _gaps(data: NDArray[np.uint8], starts: Places, sizes: Places) -> tuple[Places, NDArray[np.uint16]]:
    owners = np.repeat(np.arange(len(starts)), sizes)
    held = data[ranges(starts, sizes)].astype(np.int64)
    within = (np.arange(len(held)) - np.repeat(ends(sizes)[:-1], sizes)) % LINE_BYTES
    first = np.flatnonzero(within == 0)
    numbers = held[first] | held[first + 1] << 8
    reached = np.cumsum(np.where(within < 2, 0, held))
    lengths = np.diff(np.append(first, len(held)))
    documents = reached + np.repeat(numbers - reached[first], lengths)
    kept = (within == 0) | ((within > 1) & (held != SKIP_GAP))
    return np.bincount(owners[kept], minlength=len(starts)), (documents[kept] & 0xFFFF).astype(np.uint16)


def _bitmaps(data: NDArray[np.uint8], starts: Places, sizes: Places) -> tuple[Places, NDArray[np.uint16]]:
    owners, places = _bits(data, starts, sizes)
    return np.bincount(owners, minlength=len(starts)), places.astype(np.uint16)


def _blocks(data: NDArray[np.uint8], starts: Places, sizes: Places, blocks: int) -> tuple[Places, NDArray[np.uint16]]:
    counts = (8 * sizes - blocks) // 9
    owners, places = _bits(data, starts, sizes - counts)
    rank = np.arange(len(owners)) - ends(np.bincount(owners, minlength=len(starts)))[:-1][owners]
    kept = rank < counts[owners]
    owners, places, rank = owners[kept], places[kept], rank[kept]
    low = data[(starts + sizes - counts)[owners] + rank].astype(np.int64)
    found = np.bincount(owners, minlength=len(starts))
    return found, ((places - rank) << 8 | low).astype(np.uint16)


def _bits(data: NDArray[np.uint8], starts: Places, sizes: Places) -> tuple[Places, Places]:
    """The list and the place in it of each bit that is set."""
    place = np.flatnonzero(np.unpackbits(data[ranges(starts, sizes)], bitorder="little"))
    owners = np.repeat(np.arange(len(starts)), sizes)[place >> 3]
    return owners, place - 8 * ends(sizes)[:-1][owners]
