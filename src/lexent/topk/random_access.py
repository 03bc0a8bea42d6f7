"""The Numba kernels beside search: every score, the codes of one document, its latents, counts among some documents."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bare, bitmaps
from lexent.indexing.gains import gain_of, place_of
from lexent.indexing.kernels import Weights
from lexent.indexing.packing import (
    CHUNK,
    DENSE,
    EVERY,
    SPARSE,
    STRIDE,
    Lists,
    latents_in,
    locate,
    unpack,
    unpack_latent,
)
from lexent.indexing.scale import ONE
from lexent.indexing.workspace import DAMAGED


@njit(cache=True, nogil=True)
def all_scores(
    query_ids: NDArray[np.uint32],
    query_weights: NDArray[np.float32],
    lists: Lists,
    weights: Weights,
    scores: NDArray[np.int32],
    matched: NDArray[np.bool_],
) -> int:
    """The score of every document of a segment, and whether it shares a latent. Weights may be negative."""
    documents, codes = np.empty(2 * CHUNK, np.uint16), np.empty(2 * CHUNK, np.uint8)
    for chunk in range(len(lists.chunks) - 1):
        first = lists.chunks[chunk, 0]
        shifts = weights.shifts[first : first + CHUNK]
        for place in range(len(query_ids)):
            n = unpack_latent(lists, chunk, query_ids[place], documents, codes)
            if n < 0:
                return DAMAGED
            for posting in range(n):
                d = documents[posting]
                weight = weights.curve[place_of(np.int64(codes[posting]), shifts[d])]
                scores[first + np.int64(d)] += gain_of(weight, query_weights[place])
                matched[first + np.int64(d)] = True
    return 0


@njit(cache=True, nogil=True)
def codes_of(latents: NDArray[np.uint32], lists: Lists, document: int, out: NDArray[np.uint8]) -> int:
    """The codes of one document of a segment for some latents; 0 for those that it lacks."""
    documents, codes = np.empty(2 * CHUNK, np.uint16), np.empty(2 * CHUNK, np.uint8)
    chunk = np.searchsorted(lists.chunks[:, 0], document, side="right") - 1
    local = document - lists.chunks[chunk, 0]
    for place in range(len(latents)):
        n = unpack_latent(lists, chunk, latents[place], documents, codes)
        if n < 0:
            return DAMAGED
        at = np.searchsorted(documents[:n], np.uint16(local))
        if at < n and np.int64(documents[at]) == local:
            out[place] = codes[at]
    return 0


@njit(cache=True, nogil=True)
def latents_of(
    lists: Lists, chunk: int, document: int, out_ids: NDArray[np.int32], out_codes: NDArray[np.uint8]
) -> int:
    """All latents of one document of a segment, which lies in that chunk; ascending, with their codes: how many?

    Every list of the chunk is asked, none is read whole. The outputs have a place for each of them.
    """
    n_documents = lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]
    local = document - lists.chunks[chunk, 0]
    found, n = np.empty(4, np.int64), 0
    latents, first = latents_in(lists, chunk), lists.chunks[chunk, 1]
    if first + len(latents) < lists.chunks[chunk + 1, 1]:
        return DAMAGED
    for place in range(len(latents)):
        if not locate(lists, chunk, first + place, found):
            return DAMAGED
        code = _code_in(lists, found, local, n_documents)
        if code:
            out_ids[n], out_codes[n] = latents[place], code
            n += 1
    return n


@njit(cache=True, nogil=True)
def _code_in(lists: Lists, row: NDArray[np.int64], document: int, n_documents: int) -> int:
    """The code of a document of a chunk in one of its lists, which was located; 0 where it is not in it."""
    form, count, start, codes = row[0], row[1], row[2], row[3]
    if form >= bare.PLAIN:
        return ONE if bare.holds(lists.codes, row, document) else 0
    if form == EVERY:
        return np.int64(lists.codes[codes + document])
    if form == DENSE:
        place = bitmaps.find(lists.codes, row, n_documents, document)
        return np.int64(lists.codes[place]) if place >= 0 else 0
    if form == SPARSE:
        at = np.searchsorted(lists.shorts[start : start + count], np.uint16(document))
        if at < count and np.int64(lists.shorts[start + at]) == document:
            return np.int64(lists.codes[codes + at])
        return 0
    marks, stop = start + count, start + count + (count + STRIDE - 1) // STRIDE
    mark = max(np.searchsorted(lists.shorts[marks:stop], np.uint16(document), side="right") - 1, 0)
    entry, at = start + mark * STRIDE, np.int64(lists.shorts[marks + mark])
    while at < document and entry + 1 < marks:
        entry += 1
        at += np.int64(lists.shorts[entry]) & 255
    return np.int64(lists.shorts[entry]) >> 8 if at == document else 0


@njit(cache=True, nogil=True)
def count_within(latents: NDArray[np.uint32], lists: Lists, allowed: NDArray[np.bool_], out: NDArray[np.int64]) -> int:
    """Adds how many allowed documents have each of some latents; all are allowed where the mask is empty."""
    documents, codes = np.empty(2 * CHUNK, np.uint16), np.empty(2 * CHUNK, np.uint8)
    for chunk in range(len(lists.chunks) - 1):
        first = lists.chunks[chunk, 0]
        for place in range(len(latents)):
            n = unpack_latent(lists, chunk, latents[place], documents, codes)
            if n < 0:
                return DAMAGED
            for document in documents[:n]:
                out[place] += len(allowed) == 0 or allowed[first + np.int64(document)]
    return 0


@njit(cache=True, nogil=True)
def count_latents(lists: Lists, chunk: int, wanted: NDArray[np.bool_], df: NDArray[np.int64]) -> int:
    """Adds how many of the wanted documents of a chunk have each latent; DAMAGED says that it is."""
    documents, codes = np.empty(2 * CHUNK, np.uint16), np.empty(2 * CHUNK, np.uint8)
    latents, first = latents_in(lists, chunk), lists.chunks[chunk, 1]
    if first + len(latents) < lists.chunks[chunk + 1, 1]:
        return DAMAGED
    for place in range(len(latents)):
        n = unpack(lists, chunk, first + place, documents, codes)
        if n < 0 or latents[place] >= len(df):
            return DAMAGED
        for document in documents[:n]:
            df[latents[place]] += wanted[document]
    return 0
