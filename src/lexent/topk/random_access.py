"""Kernels beside top-k search: scores of all documents, codes and latents of one document, document frequencies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings import binary_postings, bitmaps
from lexent.indexing.postings.descriptor import CODES, ENCODING, ENTRIES, START
from lexent.indexing.postings.layout import BITMAP, CHUNK_DOCUMENTS, CODE_ARRAY, DOC_IDS, SKIP_INTERVAL, PostingLists
from lexent.indexing.postings.packing import find_list, known_in, latents_in, locate, unpack, unpack_latent
from lexent.indexing.postings.quantisation import CODE_OF_ONE
from lexent.jit import njit
from lexent.topk.impacts import contribution, curve_position
from lexent.topk.weighted import SegmentImpacts
from lexent.topk.workspace import DAMAGED


@njit(cache=True, nogil=True)
def all_scores(
    latents: NDArray[np.uint32],
    weights: NDArray[np.float32],
    lists: PostingLists,
    impacts: SegmentImpacts,
    scores: NDArray[np.int32],
    matched: NDArray[np.bool_],
) -> int:
    """Scores all documents of a segment, and marks those that share a latent. Weights may be negative."""
    documents, codes = np.empty(2 * CHUNK_DOCUMENTS, np.uint16), np.empty(2 * CHUNK_DOCUMENTS, np.uint8)
    for chunk in range(len(lists.chunks) - 1):
        first = lists.chunks[chunk, 0]
        shifts = impacts.shifts[first : first + CHUNK_DOCUMENTS]
        for place in range(len(latents)):
            n = unpack_latent(lists, chunk, latents[place], documents, codes)
            if n < 0:
                return DAMAGED
            for posting in range(n):
                d = documents[posting]
                impact = impacts.curve[curve_position(np.int64(codes[posting]), shifts[d])]
                scores[first + np.int64(d)] += contribution(impact, weights[place])
                matched[first + np.int64(d)] = True
    return 0


@njit(cache=True, nogil=True)
def _probe(lists: PostingLists, descriptor: NDArray[np.int64], document: int, n_documents: int) -> int:
    """Probes a posting list for one document of the chunk: its code, or 0 where the list does not hold it."""
    encoding, count, start, codes = descriptor[ENCODING], descriptor[ENTRIES], descriptor[START], descriptor[CODES]
    if encoding >= binary_postings.BINARY_DOC_IDS:
        return CODE_OF_ONE if binary_postings.contains(lists.codes, descriptor, document) else 0
    if encoding == CODE_ARRAY:
        return np.int64(lists.codes[codes + document])
    if encoding == BITMAP:
        place = bitmaps.probe(lists.codes, descriptor, n_documents, document)
        return np.int64(lists.codes[place]) if place >= 0 else 0
    if encoding == DOC_IDS:
        at = np.searchsorted(lists.shorts[start : start + count], np.uint16(document))
        if at < count and np.int64(lists.shorts[start + at]) == document:
            return np.int64(lists.codes[codes + at])
        return 0
    skips, stop = start + count, start + count + (count + SKIP_INTERVAL - 1) // SKIP_INTERVAL
    skip = max(np.searchsorted(lists.shorts[skips:stop], np.uint16(document), side="right") - 1, 0)
    entry, at = start + skip * SKIP_INTERVAL, np.int64(lists.shorts[skips + skip])
    while at < document and entry + 1 < skips:
        entry += 1
        at += np.int64(lists.shorts[entry]) & 255
    return np.int64(lists.shorts[entry]) >> 8 if at == document else 0


@njit(cache=True, nogil=True)
def codes_of(latents: NDArray[np.uint32], lists: PostingLists, document: int, out: NDArray[np.uint8]) -> int:
    """Codes of one document of a segment for some latents; 0 for those that it lacks."""
    chunk = np.searchsorted(lists.chunks[:, 0], document, side="right") - 1
    local, n_documents = document - lists.chunks[chunk, 0], lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]
    descriptor, known = np.empty(4, np.int64), known_in(lists, chunk)
    first, n_lists = lists.chunks[chunk, 1], lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1]
    for place in range(len(latents)):
        row = find_list(known, np.uint64(latents[place]), n_lists)
        if row < 0:
            continue
        if not locate(lists, chunk, first + row, descriptor):
            return DAMAGED
        out[place] = _probe(lists, descriptor, local, n_documents)
    return 0


@njit(cache=True, nogil=True)
def latents_of(
    lists: PostingLists, chunk: int, document: int, out_ids: NDArray[np.int32], out_codes: NDArray[np.uint8]
) -> int:
    """All latents of one document of a chunk, ascending, with their codes; returns how many, or DAMAGED.

    Every posting list of the chunk is probed. The outputs have a place for each of them.
    """
    n_documents = lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]
    local = document - lists.chunks[chunk, 0]
    descriptor, n = np.empty(4, np.int64), 0
    latents, first = latents_in(lists, chunk), lists.chunks[chunk, 1]
    if first + len(latents) < lists.chunks[chunk + 1, 1]:
        return DAMAGED
    for row in range(len(latents)):
        if not locate(lists, chunk, first + row, descriptor):
            return DAMAGED
        code = _probe(lists, descriptor, local, n_documents)
        if code:
            out_ids[n], out_codes[n] = latents[row], code
            n += 1
    return n


@njit(cache=True, nogil=True)
def count_within(
    latents: NDArray[np.uint32], lists: PostingLists, allowed: NDArray[np.bool_], df: NDArray[np.int64]
) -> int:
    """Adds the document frequencies of some latents among the allowed documents; all where the mask is empty."""
    documents, codes = np.empty(2 * CHUNK_DOCUMENTS, np.uint16), np.empty(2 * CHUNK_DOCUMENTS, np.uint8)
    for chunk in range(len(lists.chunks) - 1):
        first = lists.chunks[chunk, 0]
        for place in range(len(latents)):
            n = unpack_latent(lists, chunk, latents[place], documents, codes)
            if n < 0:
                return DAMAGED
            for document in documents[:n]:
                df[place] += len(allowed) == 0 or allowed[first + np.int64(document)]
    return 0


@njit(cache=True, nogil=True)
def count_latents(lists: PostingLists, chunk: int, selected: NDArray[np.bool_], df: NDArray[np.int64]) -> int:
    """Adds the document frequencies of all latents among the selected documents of a chunk; returns DAMAGED, or 0."""
    documents, codes = np.empty(2 * CHUNK_DOCUMENTS, np.uint16), np.empty(2 * CHUNK_DOCUMENTS, np.uint8)
    latents, first = latents_in(lists, chunk), lists.chunks[chunk, 1]
    if first + len(latents) < lists.chunks[chunk + 1, 1]:
        return DAMAGED
    for place in range(len(latents)):
        n = unpack(lists, chunk, first + place, documents, codes)
        if n < 0 or latents[place] >= len(df):
            return DAMAGED
        for document in documents[:n]:
            df[latents[place]] += selected[document]
    return 0
