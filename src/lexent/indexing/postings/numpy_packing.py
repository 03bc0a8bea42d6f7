"""Weighted posting lists written with NumPy: the twin of the kernels in `packing`. The bytes are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings.layout import (
    BITMAP,
    BITMAP_MAX_MEAN_GAP,
    CODE_ARRAY,
    CODE_ARRAY_MAX_MEAN_GAP,
    DOC_IDS,
    GAPS,
    GROUP_DOCUMENTS,
    LATENTS_PER_LINE,
    PADDING_BYTES,
    SKIP_INTERVAL,
)
from lexent.indexing.postings.numpy_lists import ends, ranges

Places = NDArray[np.int64]
MAX_GAP = 255


def document_sums(codes: NDArray[np.uint8], offsets: Places, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of the values of each document's codes."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.bincount(owners, values[codes], minlength=len(offsets) - 1).astype(np.float64)  # added in that order


def invert(
    ids: NDArray[np.int32], codes: NDArray[np.uint8], offsets: Places, size: int
) -> tuple[Places, NDArray[np.uint16], NDArray[np.uint8]]:
    """Inverts documents to posting lists, documents ascending in each; also where each begins."""
    order = np.argsort(ids, kind="stable")
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return ends(np.bincount(ids, minlength=size)), owners[order].astype(np.uint16), codes[order]


def build_known(latents: NDArray[np.uint32], size: int) -> NDArray[np.uint64]:
    """Builds the lines of `known` for a chunk that has lists of these latents, which ascend."""
    lines = -(-size // LATENTS_PER_LINE)
    flags = np.zeros(lines * LATENTS_PER_LINE, np.uint8)
    flags[latents] = 1
    by_line = flags.reshape(lines, LATENTS_PER_LINE)
    known = np.zeros((lines, 8), np.uint64)
    known[:, :7] = np.packbits(by_line, axis=1, bitorder="little").view(np.uint64)
    known[:, 7] = ends(by_line.sum(axis=1, dtype=np.int64))[:-1]
    return known


def pack(
    starts: Places, documents: NDArray[np.uint16], codes: NDArray[np.uint8], shifts: NDArray[np.uint16]
) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
    """Packs the lists of a chunk: their latents, and their part of each array. The arguments come from `invert`."""
    counts = np.diff(starts)
    latents = np.flatnonzero(counts)
    counts, starts = counts[latents], starts[latents]
    every, n = documents.astype(np.int64), len(shifts)
    if not len(latents):
        nothing = np.empty((0, 3), np.uint32), np.zeros(0, np.uint16), np.zeros(PADDING_BYTES, np.uint8)
        return latents.astype(np.uint32), dict(zip(("records", "shorts", "codes"), nothing, strict=True))
    first = np.zeros(len(every), np.bool_)
    first[starts] = True
    before = np.where(first, every, np.concatenate([every[:1], every[:-1]]))  # the first document follows itself
    bridges = np.maximum(every - before - 1, 0) // MAX_GAP
    new_bytes = first | (every >> 3 != before >> 3)
    encodings, entries, bitmap_bytes = _plan(counts, starts, bridges, new_bytes, n)
    sizes = _sizes(encodings, counts, entries, bitmap_bytes, n)
    shorts, held = np.zeros(sizes[0].sum(), np.uint16), np.zeros(sizes[1].sum() + PADDING_BYTES, np.uint8)
    in_shorts, in_codes = (ends(size)[:-1] for size in sizes)
    # Where the list begins, and where its codes do; a bitmap is before them.
    places = np.where(encodings == BITMAP, in_codes, np.where(encodings == CODE_ARRAY, 0, in_shorts))
    code_places = np.where(encodings == GAPS, 0, in_codes + np.where(encodings == BITMAP, bitmap_bytes, 0))
    own = np.repeat(encodings, counts)
    arrays = own == CODE_ARRAY
    held[np.repeat(code_places, counts)[arrays] + every[arrays]] = codes[arrays]
    for encoding in (DOC_IDS, BITMAP):
        which = encodings == encoding
        held[ranges(code_places[which], counts[which])] = codes[own == encoding]
    which = encodings == DOC_IDS
    shorts[ranges(places[which], counts[which])] = documents[own == DOC_IDS]
    gaps = own == GAPS
    _write_gaps(shorts, places[encodings == GAPS], counts[encodings == GAPS], every[gaps], codes[gaps], before[gaps])
    bitmaps = own == BITMAP
    which = encodings == BITMAP
    _write_bitmaps(held, places[which], counts[which], every[bitmaps], new_bytes[bitmaps], n)
    positions = np.maximum.reduceat(2 * codes.astype(np.int64) + shifts[documents], starts)
    records = np.stack([positions << 20 | entries << 2 | encodings, places, code_places], axis=1)
    return latents.astype(np.uint32), {"records": records.astype(np.uint32), "shorts": shorts, "codes": held}


def _plan(
    counts: Places, starts: Places, bridges: Places, new_bytes: NDArray[np.bool_], n_documents: int
) -> tuple[Places, Places, Places]:
    """Encoding and entries of each list, and the bytes of its bitmap: as `packing.plan` chooses them."""
    entries = counts + np.add.reduceat(bridges, starts)
    header = 12 * (-(-n_documents // GROUP_DOCUMENTS)) - 4
    bitmap = header + np.add.reduceat(new_bytes, starts, dtype=np.int64)
    in_gaps, in_ids = 2 * (entries + -(-entries // SKIP_INTERVAL)), 3 * counts
    in_bitmap = counts + bitmap
    smallest = np.minimum(np.minimum(in_bitmap, in_gaps), in_ids)
    as_array = n_documents <= np.maximum(CODE_ARRAY_MAX_MEAN_GAP * counts, smallest)
    frequent = counts * BITMAP_MAX_MEAN_GAP >= n_documents
    as_bitmap = in_bitmap <= np.where(frequent, in_ids, np.minimum(in_ids, in_gaps))
    encodings = np.select([as_array, as_bitmap, in_gaps <= in_ids], [CODE_ARRAY, BITMAP, GAPS], DOC_IDS)
    return encodings, np.where(encodings == GAPS, entries, counts), bitmap


def _sizes(
    encodings: Places, counts: Places, entries: Places, bitmap_bytes: Places, n_documents: int
) -> tuple[Places, Places]:
    """Elements of each list in `shorts` and in `codes`."""
    kinds = [encodings == one for one in (DOC_IDS, GAPS, BITMAP, CODE_ARRAY)]
    shorts = np.select(kinds[:2], [counts, entries + -(-entries // SKIP_INTERVAL)], 0)
    codes = np.select([kinds[0], kinds[2], kinds[3]], [counts, counts + bitmap_bytes, n_documents], 0)
    return shorts, codes


def _write_gaps(
    shorts: NDArray[np.uint16], places: Places, counts: Places, documents: Places, codes: Places, before: Places
) -> None:
    """The entries of lists and their skip pointers."""
    gaps = documents - before
    bridges = np.maximum(gaps - 1, 0) // MAX_GAP
    owners = np.repeat(np.arange(len(counts)), counts)
    totals = np.bincount(owners, bridges + 1, minlength=len(counts)).astype(np.int64)
    last = np.cumsum(bridges + 1) - 1  # the entry of each posting, after those that bridge its gap
    entries = np.full(int(totals.sum()), MAX_GAP, np.int64)
    entries[last] = codes.astype(np.int64) << 8 | (gaps - MAX_GAP * bridges)
    shorts[ranges(places, totals)] = entries
    # The document that each entry has reached: the first one of the list, and all gaps up to the entry.
    reached, starts = np.cumsum(entries & MAX_GAP), ends(totals)[:-1]
    firsts = documents[ends(counts)[:-1]]
    reached += np.repeat(firsts - (reached[starts] - (entries[starts] & MAX_GAP)), totals)
    within = np.arange(len(entries)) - np.repeat(starts, totals)
    marked = within % SKIP_INTERVAL == 0
    skips = np.repeat(places + totals, totals)[marked] + within[marked] // SKIP_INTERVAL
    shorts[skips] = reached[marked]


def _write_bitmaps(
    held: NDArray[np.uint8], places: Places, counts: Places, documents: Places, new_bytes: NDArray[np.bool_], n: int
) -> None:
    """The words, the rank samples and the bytes of lists, without their codes."""
    groups = -(-n // GROUP_DOCUMENTS)
    owners = np.repeat(np.arange(len(counts)), counts)
    bytes_before = np.cumsum(new_bytes)
    sizes = np.bincount(owners[new_bytes], minlength=len(counts)).astype(np.int64)
    at = bytes_before - 1 - np.repeat(ends(sizes)[:-1], counts)  # the byte of each document among its list's
    low = places + 12 * groups - 4
    np.bitwise_or.at(held, low[owners] + at, (1 << (documents & 7)).astype(np.uint8))
    byte = documents[new_bytes] >> 3
    np.bitwise_or.at(held, places[owners[new_bytes]] + (byte >> 3), (1 << (byte & 7)).astype(np.uint8))
    if groups < 2:
        return
    # How many bytes, and how many documents, of each list stand before each group but the first.
    group = documents // GROUP_DOCUMENTS
    in_documents, in_bytes = (
        np.bincount(owners[which] * groups + group[which], minlength=len(counts) * groups).reshape(-1, groups)
        for which in (slice(None), new_bytes)
    )
    ranks = np.stack([in_bytes.cumsum(axis=1)[:, :-1], in_documents.cumsum(axis=1)[:, :-1]], axis=2).astype("<u2")
    where = ranges(places + 8 * groups, np.full(len(places), 4 * (groups - 1)))
    held[where] = ranks.reshape(-1).view(np.uint8)
