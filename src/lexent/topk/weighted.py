"""Exact top-k over the weighted posting lists of a segment. The slow twin is `lexent.topk.reference`.

The impact of a posting is `curve[2 code + shift of its document]` (see `quantisation`). Its contribution to a score is
an integer: the impact times the query weight, which is scaled up so that all sums fit 31 bits. An integer sum does not
depend on the order, so pruning cannot change a score. A contribution is at least 1 (at most -1 for a negative weight),
so every document that shares a latent with a query of positive weights scores above 0.

A chunk is searched by `lexent.topk.bound_pruning`; by `lexent.topk.maxscore` for binary posting lists, for large k, and
on processors without table lookups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings.descriptor import COLUMNS, MAX_POSITION
from lexent.indexing.postings.layout import CHUNK_DOCUMENTS, PostingLists
from lexent.indexing.postings.packing import find_list, known_in, locate
from lexent.indexing.postings.quantisation import CODE_OF_ONE, NARROW_NEUTRAL_SHIFT, NARROW_SHIFT_OFFSET
from lexent.indexing.postings.simd import prefetch
from lexent.jit import njit
from lexent.topk import bound_pruning, maxscore
from lexent.topk.heap import COUNT, push
from lexent.topk.impacts import contribution
from lexent.topk.posting_lists import score_candidates
from lexent.topk.upper_bounds import HAS_TABLE_LOOKUP, no_bounds
from lexent.topk.workspace import DAMAGED, THRESHOLD, Chunk, QueryTerms, Workspace

NEGATIVE_WEIGHT = -2
"""Returned by `top_k` instead of a result: the query has negative weights, so no upper bound holds."""
BOUND_PRUNING_MAX_K = 100
"""Above this k, MaxScore is faster than bound pruning."""


class SegmentImpacts(NamedTuple):
    """What the impacts of a segment's postings follow from, given the recipe and the collection's average length."""

    curve: NDArray[np.float32]  # [CURVE_SIZE]
    shifts: NDArray[np.uint16]  # [n_documents + CHUNK_DOCUMENTS]
    half_shifts: NDArray[np.uint8]  # [n_documents + CHUNK_DOCUMENTS]: see `quantisation.half_shifts`
    shift_rises: NDArray[np.int64]  # [n_chunks]: the most that a shift is above the one the chunk was packed with
    lowest_shifts: NDArray[np.int64]  # [n_chunks]


@njit(cache=True, nogil=True)
def prepare_terms(
    ids: NDArray[np.int32], weights: NDArray[np.float32], scale: float, size: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32], bool]:
    """A query's latents below `size` of non-zero weight, ascending; their scaled weights; whether any is negative."""
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
def top_k(
    ids: NDArray[np.int32],
    weights: NDArray[np.float32],
    scale: float,
    size: int,
    lists: PostingLists,
    impacts: SegmentImpacts,
    allowed: NDArray[np.bool_],
    few: NDArray[np.int64],
    base: int,
    heap_scores: NDArray[np.int32],
    heap_documents: NDArray[np.int64],
    state: NDArray[np.int64],
    workspace: Workspace,
) -> int:
    """Pushes a segment's best documents to a heap; returns 0, DAMAGED or NEGATIVE_WEIGHT.

    ids, weights, scale, size: of the query's terms, see `prepare_terms`. allowed: which documents may be found, empty
    for all. few: those documents, ascending, where each is to be probed in every posting list; else empty. base: the
    position of the segment's first document. state: documents in the heap, a threshold known to be reached, and
    NEUTRAL_AGGRESSIVENESS at first; it is handed on to the next segment. Nothing is pushed where a weight is negative.
    """
    latents, scaled, negative = prepare_terms(ids, weights, scale, size)
    if negative:
        return NEGATIVE_WEIGHT
    k = len(heap_scores)
    for number in range(len(lists.chunks) - 1):
        first = lists.chunks[number, 0]
        n_documents = lists.chunks[number + 1, 0] - first
        live = allowed[first : first + n_documents] if len(allowed) else allowed
        whole, terms = _find_lists(latents, scaled, lists, number, impacts)
        if not whole:
            return DAMAGED
        if state[COUNT] == k:
            state[THRESHOLD] = max(state[THRESHOLD], np.int64(heap_scores[0]) + 1)
        if terms.upper_bounds.sum() < max(state[THRESHOLD], 1):
            continue
        chunk = Chunk(
            lists,
            n_documents,
            impacts.shifts[first : first + CHUNK_DOCUMENTS],
            impacts.lowest_shifts[number],
            impacts.half_shifts[first : first + CHUNK_DOCUMENTS],
            impacts.curve,
        )
        if len(few):
            low, high = np.searchsorted(few, first), np.searchsorted(few, first + n_documents)
            n_candidates = _probe_all(chunk, terms, few[low:high] - first, workspace)
        elif HAS_TABLE_LOOKUP and lists.records.shape[1] > 1 and k <= BOUND_PRUNING_MAX_K:
            n_candidates = bound_pruning.search(chunk, terms, live, k, state, workspace)
        else:
            n_candidates = maxscore.search(chunk, terms, live, k, state, workspace)
        if n_candidates == DAMAGED:
            return DAMAGED
        for place in range(n_candidates):
            score, document = np.int32(workspace.candidate_scores[place]), base + first + workspace.candidates[place]
            push(heap_scores, heap_documents, state, k, score, document)
    return 0


@njit(cache=True, nogil=True)
def _probe_all(chunk: Chunk, terms: QueryTerms, documents: NDArray[np.int64], workspace: Workspace) -> int:
    """Scores some documents of a chunk by probing every posting list; returns how many score above 0."""
    n, n_terms = len(documents), len(terms.upper_bounds)
    workspace.candidates[:n], workspace.candidate_scores[:n] = documents, 0
    required = np.zeros(n_terms, np.int64)
    required[n_terms - 1] = 1
    return score_candidates(chunk, terms, np.arange(n_terms), np.full(n_terms, -1), required, no_bounds(), n, workspace)


@njit(cache=True, nogil=True)
def _find_lists(
    latents: NDArray[np.uint32], weights: NDArray[np.float32], lists: PostingLists, chunk: int, impacts: SegmentImpacts
) -> tuple[bool, QueryTerms]:
    """The query's posting lists in a chunk, and whether none of them is damaged."""
    n, rise, known = 0, impacts.shift_rises[chunk], known_in(lists, chunk)
    first, n_lists = lists.chunks[chunk, 1], lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1]
    found, descriptors = np.empty(len(latents), np.int64), np.empty((len(latents), COLUMNS), np.int64)
    term_weights, term_bounds = np.empty(len(latents), np.float32), np.empty(len(latents), np.int64)
    for place in range(len(latents)):  # prefetch all records before the first is read
        found[place] = find_list(known, np.uint64(latents[place]), n_lists)
        prefetch(lists.records[first:].reshape(-1), max(found[place], 0) * lists.records.shape[1])
    for place in range(len(latents)):
        if found[place] < 0:
            continue
        row = first + found[place]
        if not locate(lists, chunk, row, descriptors[n]):
            return False, QueryTerms(descriptors[:0], term_weights[:0], term_bounds[:0])
        binary = lists.records.shape[1] == 1
        packed = 2 * CODE_OF_ONE + NARROW_NEUTRAL_SHIFT if binary else np.int64(lists.records[row, 0]) >> 20
        position = min(max(packed + NARROW_SHIFT_OFFSET + rise, 0), len(impacts.curve) - 1)
        descriptors[n, MAX_POSITION] = position
        term_weights[n] = weights[place]
        term_bounds[n] = contribution(impacts.curve[position], weights[place])
        n += 1
    return True, QueryTerms(descriptors[:n], term_weights[:n], term_bounds[:n])
