"""The Numba kernels that read lists whole: every score, the codes of one document, counts among some documents."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing.kernels import DAMAGED, Weights, gain_of, place_of
from lexent.indexing.packing import CHUNK, Lists, unpack_latent


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
