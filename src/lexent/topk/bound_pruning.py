"""Top-k of one chunk: filter documents by 8-bit upper bounds, then score the survivors exactly.

Short posting lists are accumulated, except those that can add next to nothing. Long lists are not read: their bitmaps
and code tables give each document an upper bound (see `upper_bounds`). Documents whose bound reaches the threshold are
candidates. They are probed in one list after the other, and dropped as soon as they cannot reach the threshold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings.descriptor import ENCODING, ENTRIES, START
from lexent.indexing.postings.layout import BITMAP, CODE_ARRAY
from lexent.indexing.postings.simd import AVX512, bytes_at_least, prefetch, trailing_zeros
from lexent.jit import njit
from lexent.topk import upper_bounds
from lexent.topk.maxscore import suffix_sums
from lexent.topk.posting_lists import accumulate, score_candidates
from lexent.topk.upper_bounds import UpperBounds, score_bound
from lexent.topk.workspace import AGGRESSIVENESS, DAMAGED, THRESHOLD, Chunk, QueryTerms, Workspace

RESIDUAL_SHARE = 0.05
"""Stop accumulating short lists once the rest could add at most this share of the threshold."""
NEGLIGIBLE_SHARE = 0.01
"""Long lists whose upper bound is below this share of the threshold add no bounds to documents."""
CODE_TABLE_SHARE = 0.003 if AVX512 else 0.012
"""Long lists whose upper bound, averaged over all documents, is at least this share of the threshold add bounds by
code; others add their maximum. Lists with a code for each document always add bounds by code."""
INITIAL_THRESHOLD_SHARE = 0.28
"""The threshold assumed in the first chunk, as a share of the sum of all upper bounds. It affects speed only."""
THRESHOLD_UNITS = 204
"""The threshold in units of the quantised upper bounds."""
MIN_SEEDS = 24
"""This many documents, or 5/4 k if that is more, are scored to replace an assumed threshold by a true one."""
FEW_CANDIDATES = 70
"""With fewer candidates than this in a chunk, pruning is less exact and cheaper in the next one; with more than four
times as many, more exact."""
MAX_CANDIDATES = 1000
"""With more candidates than this, and than 4 k, the bounds are computed again with smaller shares."""
PREFETCHED_ENTRIES = 512
"""Entries of the next list that are prefetched while a list is read."""
NEUTRAL_AGGRESSIVENESS = 64
"""The initial pruning aggressiveness in the state. The shares are multiplied by the aggressiveness over this."""


@njit(cache=True, nogil=True)
def search(
    chunk: Chunk,
    terms: QueryTerms,
    live: NDArray[np.bool_],
    k: int,
    state: NDArray[np.int64],
    workspace: Workspace,
) -> int:
    """Finds the documents of a chunk that may be among the k best; returns how many, or DAMAGED.

    Documents and exact scores are left in the workspace's candidates. Raises the threshold in the state.
    """
    # Counts are no literals here and below: Numba would compile the functions they are passed to once more for those.
    aggressiveness, n_accumulated = state[AGGRESSIVENESS] / NEUTRAL_AGGRESSIVENESS, np.int64(0)
    # The threshold, or where it is not known yet, a guess of it.
    guess = np.int64(INITIAL_THRESHOLD_SHARE * terms.upper_bounds.sum()) + 1
    target = state[THRESHOLD] if state[THRESHOLD] > 1 else guess
    short, long = _split_by_length(terms)
    while True:
        residual_target = min(aggressiveness, 1.0) * RESIDUAL_SHARE * target
        n_accumulated = _accumulate_short(chunk, terms, short, n_accumulated, residual_target, workspace)
        if n_accumulated == DAMAGED:
            workspace.accumulators[:] = 0
            return DAMAGED
        least_bound = min(aggressiveness, 1.0) * NEGLIGIBLE_SHARE * target
        n_bounded = _move_to_front(long, terms.upper_bounds[long] >= least_bound)
        least_sum = aggressiveness * CODE_TABLE_SHARE * target * chunk.n_documents
        n_by_code = _move_to_front(long[:n_bounded], _worth_code_tables(terms, long[:n_bounded], least_sum))
        # Lists that are neither accumulated nor in the bounds.
        left_out = np.concatenate((long[n_bounded:], short[n_accumulated:]))
        residual = suffix_sums(terms.upper_bounds[left_out])
        unit = target // THRESHOLD_UNITS + 1
        least_units = (state[THRESHOLD] - residual[0]) // unit
        bounds = upper_bounds.compute(chunk, _select(terms, long[:n_bounded]), n_by_code, unit, least_units, workspace)
        order = np.concatenate((long, short[n_accumulated:]))
        n_candidates, seeds, seed_scores = _find_candidates(
            chunk, terms, order, residual[0], bounds, target, live, k, state, workspace
        )
        target = max(state[THRESHOLD], 1)
        residual_suffices = 0 < residual[0] >= state[THRESHOLD]  # documents without a bound could be among the best
        if not residual_suffices and (n_candidates <= max(MAX_CANDIDATES, 4 * k) or aggressiveness < 0.1):
            break
        aggressiveness = 0.0 if residual_suffices else aggressiveness / 2
        state[AGGRESSIVENESS] = max(state[AGGRESSIVENESS] // 2, 8)
    workspace.accumulators[:] = 0  # all: a damaged list may name documents that the chunk does not have
    if n_candidates < FEW_CANDIDATES:
        state[AGGRESSIVENESS] = min(state[AGGRESSIVENESS] * 5 // 4, 256)
    elif n_candidates > 4 * FEW_CANDIDATES:
        state[AGGRESSIVENESS] = max(state[AGGRESSIVENESS] * 4 // 5, 8)
    # Probe the lists that added their maximum first, since their bounds are the loosest; then the residual lists.
    threshold, n = max(state[THRESHOLD], 1), len(order)
    places = np.arange(n_by_code, n_by_code + n) % n
    bounded, required = np.where(places < n_bounded, places, -1), np.full(n, threshold - residual[0])
    required[n_bounded - n_by_code : n - n_by_code] = threshold - residual[1:]
    required[n - n_by_code :] = threshold
    n_candidates = score_candidates(chunk, terms, order[places], bounded, required, bounds, n_candidates, workspace)
    for seed in range(len(seeds)):
        workspace.candidates[n_candidates], workspace.candidate_scores[n_candidates] = seeds[seed], seed_scores[seed]
        n_candidates += seed_scores[seed] >= threshold
    return n_candidates


@njit(cache=True, nogil=True)
def _split_by_length(terms: QueryTerms) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Terms with short lists, by upper bound per posting; terms with long lists, by upper bound. Highest first."""
    n, n_short = len(terms.upper_bounds), 0
    keys = np.empty(n, np.int64)  # sort key << 20 | term
    for term in range(n):
        encoding, bound = terms.descriptors[term, ENCODING], terms.upper_bounds[term]
        if encoding in (BITMAP, CODE_ARRAY):
            keys[n - 1 - term + n_short] = (2**31 - bound) << 20 | term
        else:
            keys[n_short] = (2**41 - (bound << 10) // terms.descriptors[term, ENTRIES]) << 20 | term
            n_short += 1
    return np.sort(keys[:n_short]) & 0xFFFFF, np.sort(keys[n_short:]) & 0xFFFFF


@njit(cache=True, nogil=True)
def _accumulate_short(
    chunk: Chunk, terms: QueryTerms, short: NDArray[np.int64], done: int, residual_target: float, workspace: Workspace
) -> int:
    """Accumulates short lists until the rest can add little; returns how many are done, or DAMAGED."""
    residual = terms.upper_bounds[short[done:]].sum()
    while done < len(short) and residual > residual_target:
        term = short[done]
        next_start = terms.descriptors[short[min(done + 1, len(short) - 1)], START]
        for ahead in range(0, PREFETCHED_ENTRIES, 32):
            prefetch(chunk.lists.shorts, next_start + ahead)
        if accumulate(chunk, terms.descriptors[term], terms.weights[term], workspace) == DAMAGED:
            return DAMAGED
        residual -= terms.upper_bounds[term]
        done += 1
    return done


@njit(cache=True, nogil=True)
def _worth_code_tables(terms: QueryTerms, long: NDArray[np.int64], least: float) -> NDArray[np.bool_]:
    """Which lists can add at least so much to all of their documents together, or have a code for each document."""
    found = np.empty(len(long), np.bool_)
    for place in range(len(long)):
        encoding, count = terms.descriptors[long[place], ENCODING], terms.descriptors[long[place], ENTRIES]
        found[place] = encoding == CODE_ARRAY or terms.upper_bounds[long[place]] * count >= least
    return found


@njit(cache=True, nogil=True)
def _move_to_front(long: NDArray[np.int64], selected: NDArray[np.bool_]) -> int:
    """Moves the selected terms to the front, a stable partition in place; returns how many."""
    n, others = 0, np.empty(len(long), np.int64)
    for place in range(len(long)):
        if selected[place]:
            long[n] = long[place]
            n += 1
        else:
            others[place - n] = long[place]
    long[n:] = others[: len(long) - n]
    return n


@njit(cache=True, nogil=True)
def _select(terms: QueryTerms, which: NDArray[np.int64]) -> QueryTerms:
    return QueryTerms(terms.descriptors[which], terms.weights[which], terms.upper_bounds[which])


@njit(cache=True, nogil=True)
def _find_candidates(
    chunk: Chunk,
    terms: QueryTerms,
    order: NDArray[np.int64],
    residual: int,
    bounds: UpperBounds,
    target: int,
    live: NDArray[np.bool_],
    k: int,
    state: NDArray[np.int64],
    workspace: Workspace,
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Collects the documents whose bound reaches the threshold, with their bounds without the residual lists.

    Where the threshold is a guess, the documents of the highest bounds are scored first, to raise it. Those seeds are
    returned beside the number of candidates, with their scores, and are no candidates.
    """
    threshold, nobody = max(state[THRESHOLD], 1), np.empty(0, np.int64)
    if target <= threshold:
        return _collect(chunk, threshold - residual, bounds, live, workspace), nobody, nobody
    wanted = max(MIN_SEEDS, k + k // 4)
    counts, cut = np.zeros(upper_bounds.SATURATED + 1, np.int64), upper_bounds.SATURATED
    for maximum in workspace.block_maxima[: (chunk.n_documents + 63) // 64]:
        counts[maximum] += 1
    while cut > 1 and counts[cut:].sum() < wanted:
        cut -= 1
    n = _collect(chunk, cut * bounds.unit, bounds, live, workspace)
    while n < k and cut > 1:
        cut //= 2
        n = _collect(chunk, cut * bounds.unit, bounds, live, workspace)
    if n < k:
        return _collect(chunk, threshold - residual, bounds, live, workspace), nobody, nobody
    n_seeds = _score_seeds(chunk, terms, order, min(wanted, n), n, workspace)
    seeds, seed_scores = workspace.candidates[:n_seeds].copy(), workspace.candidate_scores[:n_seeds].copy()
    state[THRESHOLD] = threshold = max(threshold, np.partition(seed_scores, n_seeds - k)[n_seeds - k])
    n, n_candidates, seed = _collect(chunk, threshold - residual, bounds, live, workspace), 0, 0
    for place in range(n):
        document = workspace.candidates[place]
        while seed < n_seeds and seeds[seed] < document:
            seed += 1
        workspace.candidates[n_candidates] = document
        workspace.candidate_scores[n_candidates] = workspace.candidate_scores[place]
        n_candidates += not (seed < n_seeds and seeds[seed] == document)
    return n_candidates, seeds, seed_scores


@njit(cache=True, nogil=True)
def _collect(chunk: Chunk, required: int, bounds: UpperBounds, live: NDArray[np.bool_], workspace: Workspace) -> int:
    """Collects the documents whose quantised bound reaches a score, with their bounds; returns how many."""
    n = 0
    cut = np.uint8(max(min((required + bounds.unit - 1) // bounds.unit, upper_bounds.SATURATED), 1))
    for place in range(0, chunk.n_documents, 64):
        if workspace.block_maxima[place // 64] < cut:
            continue
        bits = bytes_at_least(workspace.upper_bounds, place, cut)
        while bits != 0:
            document = place + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            if document < chunk.n_documents and (len(live) == 0 or live[document]):
                bound = np.int64(workspace.upper_bounds[document])
                workspace.candidates[n] = document
                workspace.candidate_scores[n] = score_bound(bounds, workspace.accumulators[document], bound)
                n += 1
    return n


@njit(cache=True, nogil=True)
def _score_seeds(
    chunk: Chunk, terms: QueryTerms, order: NDArray[np.int64], wanted: int, n: int, workspace: Workspace
) -> int:
    """Keeps the candidates of the highest bounds and scores them in the lists not accumulated; returns how many."""
    least, kept = np.partition(workspace.candidate_scores[:n], n - wanted)[n - wanted], np.int64(0)
    for place in range(n):
        document, bound = workspace.candidates[place], workspace.candidate_scores[place]
        workspace.candidates[kept], workspace.candidate_scores[kept] = document, workspace.accumulators[document]
        kept += bound >= least and kept < wanted
    n = len(order)
    return score_candidates(
        chunk, terms, order, np.full(n, -1), np.zeros(n, np.int64), upper_bounds.no_bounds(), kept, workspace
    )
