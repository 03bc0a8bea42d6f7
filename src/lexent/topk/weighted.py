"""The Numba kernels of exact top-k search over packed segments. Their slow twin is `lexent.indexing.reference`.

A posting's weight is `curve[2 code + shift of its document]` (see `lexent.indexing.scale`). What it adds to a score is
a whole number: the weight times the query's weight, which is scaled up so that all sums fit 31 bits. Whole numbers make
a sum the same in any order, so pruning cannot change a score; and each is at least 1 (at most -1 for a negative
weight), so every document that shares a latent with a query of positive weights scores above 0.

A chunk is searched in one of two ways: `lexent.indexing.hoping`, or `lexent.indexing.adding` on processors that are
slow at it, for binary lists and for very many documents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import adding, hoping
from lexent.indexing.bits import fetch
from lexent.indexing.gains import gain_of
from lexent.indexing.heap import arrange as arrange
from lexent.indexing.heap import offer
from lexent.indexing.hopes import LOOKS, nothing
from lexent.indexing.hoping import CARE as CARE
from lexent.indexing.packing import CHUNK, Lists, known_in, locate, row_of
from lexent.indexing.reading import look_up
from lexent.indexing.scale import NEUTRAL, ONE
from lexent.indexing.workspace import DAMAGED, Asked, Chunk
from lexent.indexing.workspace import Scratch as Scratch

NEGATIVE = -2
"""What kernels say of a query with negative weights instead of giving a result; DAMAGED says that a list is."""
MANY = 100
"""Above this k it is quicker to add scores up."""


class Weights(NamedTuple):
    """How the postings of a segment weigh; all of it follows from the recipe and the collection's average length."""

    curve: NDArray[np.float32]  # [768]
    shifts: NDArray[np.uint8]  # [n_documents + CHUNK]
    halves: NDArray[np.uint8]  # [n_documents + CHUNK]: of the shifts, rounded up
    rises: NDArray[np.int64]  # [n_chunks]: the most that a shift rose since the chunk was packed


@njit(cache=True, nogil=True)
def prepare(
    ids: NDArray[np.int32], weights: NDArray[np.float32], scale: float, size: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32], bool]:
    """A query's known latents that weigh something, ascending; their scaled weights; whether any is negative."""
    latents, scaled = np.empty(len(ids), np.uint32), np.empty(len(ids), np.float32)
    n, negative, ascending = 0, False, True
    for place in range(1, len(ids)):
        ascending &= ids[place - 1] <= ids[place]
    for place in np.arange(len(ids)) if ascending else np.argsort(ids):
        if 0 <= ids[place] < size and weights[place] != 0:
            latents[n], scaled[n] = ids[place], weights[place] * np.float32(scale)
            negative |= weights[place] < 0
            n += 1
    return latents[:n], scaled[:n], negative


@njit(cache=True, nogil=True)
def top(
    ids: NDArray[np.int32],
    query: NDArray[np.float32],
    scale: float,
    size: int,
    lists: Lists,
    weights: Weights,
    allowed: NDArray[np.bool_],
    base: int,
    best: NDArray[np.int32],
    who: NDArray[np.int64],
    state: NDArray[np.int64],
    scratch: Scratch,
) -> int:
    """Adds a segment's best documents to the heap `best`, `who`.

    state: how many it holds, a score known reached, and CARE at first; it goes on to the next segment. ids, query: the
    query's latents and weights; scale, size: see `prepare`. allowed: which documents count, empty for all. base: what
    the segment's first document is called. NEGATIVE says that a weight is, and nothing was done.
    """
    query_ids, query_weights, negative = prepare(ids, query, scale, size)
    if negative:
        return NEGATIVE
    n_query, k = len(query_ids), len(best)
    rows = np.empty((n_query, 5), np.int64)
    row_weights = np.empty(n_query, np.float32)
    bounds = np.empty(n_query, np.int64)
    for chunk in range(len(lists.chunks) - 1):
        first = lists.chunks[chunk, 0]
        n_documents = lists.chunks[chunk + 1, 0] - first
        here = Chunk(
            lists,
            n_documents,
            weights.shifts[first : first + CHUNK],
            weights.halves[first : first + CHUNK],
            weights.curve,
        )
        live = allowed[first : first + n_documents] if len(allowed) else allowed
        n = _resolve(query_ids, query_weights, lists, chunk, weights, rows, row_weights, bounds)
        if n == DAMAGED:
            return DAMAGED
        if state[0] == k:
            state[1] = max(state[1], np.int64(best[0]) + 1)
        if bounds[:n].sum() < max(state[1], 1):
            continue
        asked = Asked(rows[:n], row_weights[:n], bounds[:n])
        if LOOKS and lists.records.shape[1] > 1 and k <= MANY:
            n_chosen = hoping.search(here, asked, live, k, state, scratch)
        else:
            n_chosen = adding.search(here, asked, live, k, state, scratch)
        if n_chosen == DAMAGED:
            return DAMAGED
        for one in range(n_chosen):
            offer(best, who, state, k, np.int32(scratch.sums[one]), base + first + scratch.chosen[one])
    return 0


@njit(cache=True, nogil=True)
def top_of_few(
    ids: NDArray[np.int32],
    query: NDArray[np.float32],
    scale: float,
    size: int,
    lists: Lists,
    weights: Weights,
    documents: NDArray[np.int64],
    base: int,
    best: NDArray[np.int32],
    who: NDArray[np.int64],
    state: NDArray[np.int64],
    scratch: Scratch,
) -> int:
    """What `top` does, for a few documents of a segment, which ascend: each is looked up in every list."""
    query_ids, query_weights, negative = prepare(ids, query, scale, size)
    if negative:
        return NEGATIVE
    n_query, k, start = len(query_ids), len(best), 0
    rows = np.empty((n_query, 5), np.int64)
    row_weights = np.empty(n_query, np.float32)
    bounds = np.empty(n_query, np.int64)
    for chunk in range(len(lists.chunks) - 1):
        first, stop, n_chosen = lists.chunks[chunk, 0], lists.chunks[chunk + 1, 0], np.int64(0)
        while start < len(documents) and documents[start] < stop:
            scratch.chosen[n_chosen], scratch.sums[n_chosen] = documents[start] - first, 0
            start += 1
            n_chosen += 1
        if n_chosen == 0:
            continue
        n = _resolve(query_ids, query_weights, lists, chunk, weights, rows, row_weights, bounds)
        if n == DAMAGED:
            return DAMAGED
        here = Chunk(
            lists,
            stop - first,
            weights.shifts[first : first + CHUNK],
            weights.halves[first : first + CHUNK],
            weights.curve,
        )
        asked, order = Asked(rows[:n], row_weights[:n], bounds[:n]), np.arange(n)
        look_up(here, asked, order, np.full(n, -1), np.zeros(n, np.int64), nothing(), n_chosen, scratch)
        for one in range(n_chosen):
            if scratch.sums[one] > 0:
                offer(best, who, state, k, np.int32(scratch.sums[one]), base + first + scratch.chosen[one])
    return 0


@njit(cache=True, nogil=True)
def _resolve(
    query_ids: NDArray[np.uint32],
    query_weights: NDArray[np.float32],
    lists: Lists,
    chunk: int,
    weights: Weights,
    rows: NDArray[np.int64],  # [n_query, 5]: see `locate`; and the highest place in the curve
    row_weights: NDArray[np.float32],
    bounds: NDArray[np.int64],
) -> int:
    """The query's lists in a chunk, their weights and the most that each can add; gives how many there are."""
    n, rise, known = 0, weights.rises[chunk], known_in(lists, chunk)
    first, n_lists = lists.chunks[chunk, 1], lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1]
    found = np.empty(len(query_ids), np.int64)
    for place in range(len(query_ids)):  # all are asked for before the first is read
        found[place] = row_of(known, np.uint64(query_ids[place]), n_lists)
        fetch(lists.records[first:].reshape(-1), max(found[place], 0) * lists.records.shape[1])
    for place in range(len(query_ids)):
        if found[place] < 0:
            continue
        row = first + found[place]
        if not locate(lists, chunk, row, rows[n]):
            return DAMAGED
        packed = 2 * ONE + NEUTRAL if lists.records.shape[1] == 1 else np.int64(lists.records[row, 0]) >> 20
        highest = min(max(packed + rise, 0), len(weights.curve) - 1)
        rows[n, 4] = highest
        row_weights[n] = query_weights[place]
        bounds[n] = gain_of(weights.curve[highest], query_weights[place])
        n += 1
    return n
