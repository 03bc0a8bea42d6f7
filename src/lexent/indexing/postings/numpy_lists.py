"""Weighted posting lists read with NumPy, many lists at a time: the twin of the kernels in `packing` that read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings.layout import (
    BITMAP,
    CHUNK_DOCUMENTS,
    CODE_ARRAY,
    DOC_IDS,
    GAPS,
    GROUP_DOCUMENTS,
    PADDING_BYTES,
    SKIP_INTERVAL,
    PostingLists,
    damaged,
)

FLAGS_AT_A_TIME = 1 << 24
"""Bytes of the largest array that a step makes: lists of a long chunk are decoded some at a time."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of some lists, one list after the other; documents ascend in each."""

    offsets: NDArray[np.int64]  # [n_lists + 1]
    documents: NDArray[np.uint16]  # [n_postings], counted from the start of the chunk
    codes: NDArray[np.uint8]  # [n_postings]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def owners(self) -> Places:
        """int64[n_postings]: the list of each posting."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def take(self, lists: Places) -> Postings:
        """Some of the lists, in that order."""
        counts = np.diff(self.offsets)[lists]
        where = ranges(self.offsets[lists], counts)
        return Postings(ends(counts), self.documents[where], self.codes[where])


@dataclass(frozen=True, slots=True)
class _Records:
    """What the records say of some lists. Places count from the start of the segment's arrays."""

    encodings: Places
    counts: Places
    starts: Places
    code_starts: Places


def latents_in(lists: PostingLists, chunk: int) -> Places:
    """int64[n_lists]: the latents of a chunk's lists, ascending."""
    per_chunk = len(lists.known) // (len(lists.chunks) - 1)
    words = np.ascontiguousarray(lists.known[chunk * per_chunk : (chunk + 1) * per_chunk, :7])
    found: Places = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    if len(found) < lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1]:
        raise damaged()
    return found[: lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1]]


def decode(lists: PostingLists, chunk: int, rows: Places) -> Postings:
    """The postings of some lists of a chunk, by their numbers there. Lists that lie outside of it are refused."""
    records = _located(lists, chunk, rows)
    n_documents = int(lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0])
    pieces: list[tuple[Places, Postings]] = []
    for encoding, read in ((DOC_IDS, _doc_ids), (GAPS, _gaps), (CODE_ARRAY, _code_arrays), (BITMAP, _bitmaps)):
        own = np.flatnonzero(records.encodings == encoding)
        step = max(1, FLAGS_AT_A_TIME // n_documents) if encoding in (CODE_ARRAY, BITMAP) else max(1, len(own))
        for start in range(0, len(own), step):
            part = own[start : start + step]
            one = _Records(*(getattr(records, name)[part] for name in _Records.__slots__))
            pieces.append((part, read(lists, one, n_documents)))
    return joined(pieces, len(rows), n_documents)


def joined(pieces: Sequence[tuple[Places, Postings]], n_lists: int, n_documents: int) -> Postings:
    """All lists in their order, from pieces that say which lists they hold; refused where a document is not there."""
    counts = np.zeros(n_lists, np.int64)
    for part, found in pieces:
        counts[part] = np.diff(found.offsets)
    offsets = ends(counts)
    documents, codes = np.empty(offsets[-1], np.uint16), np.empty(offsets[-1], np.uint8)
    for part, found in pieces:
        where = ranges(offsets[part], counts[part])
        documents[where], codes[where] = found.documents, found.codes
    if len(documents) and int(documents.max()) >= n_documents:
        raise damaged()
    return Postings(offsets, documents, codes)


def ranges(starts: Places, counts: Places) -> Places:
    """starts[0], starts[0] + 1, ... counts[0] times, then so from starts[1] on, and so on."""
    offsets = ends(counts)
    found: Places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
    return found


def ends(counts: Places) -> Places:
    """int64[n + 1]: where each list begins, and the end of the last."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _located(lists: PostingLists, chunk: int, rows: Places) -> _Records:
    """As `packing.locate`, for many lists."""
    start, stop = lists.chunks[chunk].tolist(), lists.chunks[chunk + 1].tolist()
    held = lists.records[start[1] + rows].astype(np.int64)
    encodings, counts = held[:, 0] & 3, held[:, 0] >> 2 & 0x3FFFF
    starts = held[:, 1] + np.where(encodings == BITMAP, start[3], start[2])
    codes = held[:, 2] + start[3]
    ends = starts + counts
    gaps_end = ends + -(-counts // SKIP_INTERVAL)
    good = (counts > 0) & (counts <= 2 * CHUNK_DOCUMENTS)
    good &= np.where(encodings == GAPS, gaps_end <= stop[2], True)
    array_end = codes + (stop[0] - start[0]) + PADDING_BYTES
    good &= np.where(encodings == CODE_ARRAY, array_end <= stop[3], True)
    good &= np.where(encodings == DOC_IDS, (codes + counts <= stop[3]) & (ends <= stop[2]), True)
    low = starts + 12 * (-(-(stop[0] - start[0]) // GROUP_DOCUMENTS)) - 4
    good &= np.where(encodings == BITMAP, (low < codes) & (codes + counts + PADDING_BYTES <= stop[3]), True)
    if not good.all():
        raise damaged()
    return _Records(encodings, counts, starts, codes)


def _doc_ids(lists: PostingLists, records: _Records, n_documents: int) -> Postings:
    del n_documents
    documents = lists.shorts[ranges(records.starts, records.counts)]
    return Postings(ends(records.counts), documents, lists.codes[ranges(records.code_starts, records.counts)])


def _gaps(lists: PostingLists, records: _Records, n_documents: int) -> Postings:
    del n_documents
    entries = lists.shorts[ranges(records.starts, records.counts)].astype(np.int64)
    sums = np.cumsum(entries & 255)
    first = ends(records.counts)[:-1]
    skips = lists.shorts[records.starts + records.counts].astype(np.int64)  # the number of the first document
    documents = sums + np.repeat(skips - sums[first], records.counts)
    kept = entries > 255
    counts = np.add.reduceat(kept, first, dtype=np.int64) if len(first) else np.zeros(0, np.int64)
    codes = (entries[kept] >> 8).astype(np.uint8)
    return Postings(ends(counts), (documents[kept] & 0xFFFF).astype(np.uint16), codes)


def _code_arrays(lists: PostingLists, records: _Records, n_documents: int) -> Postings:
    n = len(records.starts)
    held = lists.codes[ranges(records.code_starts, np.full(n, n_documents))].reshape(n, n_documents)
    owners, documents = np.nonzero(held)
    counts = np.bincount(owners, minlength=n).astype(np.int64)
    return Postings(ends(counts), documents.astype(np.uint16), held[owners, documents])


def _bitmaps(lists: PostingLists, records: _Records, n_documents: int) -> Postings:
    n, groups = len(records.starts), -(-n_documents // GROUP_DOCUMENTS)
    words = lists.codes[ranges(records.starts, np.full(n, 8 * groups))].reshape(n, 8 * groups)
    owners, byte = np.nonzero(np.unpackbits(words, axis=1, bitorder="little"))
    sizes = np.bincount(owners, minlength=n).astype(np.int64)
    low = records.starts + 12 * groups - 4
    if (low + sizes > records.code_starts).any():
        raise damaged()
    bits = np.unpackbits(lists.codes[ranges(low, sizes)][:, None], axis=1, bitorder="little")
    place, bit = np.nonzero(bits)
    if (np.bincount(owners[place], minlength=n) != records.counts).any():
        raise damaged()
    codes = lists.codes[ranges(records.code_starts, records.counts)]
    return Postings(ends(records.counts), (8 * byte[place] + bit).astype(np.uint16), codes)
