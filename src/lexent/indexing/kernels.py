"""The Numba kernels of exact top-k search over packed segments. Their slow twin is `lexent.indexing.reference`.

A posting's weight is `curve[2 code + shift of its document]` (see `lexent.indexing.scale`). What it adds to a score is
a whole number: the weight times the query's weight, which is scaled up so that all sums fit 31 bits. Whole numbers make
a sum the same in any order, so pruning cannot change a score; and each is at least 1 (at most -1 for a negative
weight), so every document that shares a latent with a query of positive weights scores above 0.

A chunk is searched the MaxScore way, in four steps. Lists that few documents are in are added whole, those that lower
the bound most for their length first, until what the rest of them could add is a small share of the score to reach.
Lists with bitmaps, which most postings are in, are only asked what each document can get from them at most (see
`lexent.indexing.hopes`). Documents that can still reach the score are chosen. They are then looked up in one list after
the other, and given up as soon as they cannot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bitmaps, hopes
from lexent.indexing.bits import WIDE, fetch, reaching, trailing_zeros
from lexent.indexing.gains import gain_of
from lexent.indexing.heap import arrange as arrange
from lexent.indexing.heap import offer
from lexent.indexing.packing import CHUNK, DENSE, Lists, known_in, locate, row_of
from lexent.indexing.reading import DAMAGED, Chunk, Hope, Scratch, foresee, look_up, scan, settle
from lexent.indexing.scale import NEUTRAL, ONE

NEGATIVE = -2
"""What kernels say of a query with negative weights instead of giving a result; DAMAGED says that a list is."""
SHARE = 0.05
"""Lists are added until the rest could add this share of the score to reach: more is less to read, more to look up."""
FAINT = 0.01
"""Lists with bitmaps are not added. Of those that can add this share of the score to reach, documents are asked."""
STRONG = 0.03
"""Of those that can add this share, it is asked how strongly they are in it."""
GUESS = 0.28
"""The score to reach in a first chunk, as a share of what all lists could add. Nothing hangs on it but time."""
FIRST = 0.65
"""Documents that hope for this share of the guess are looked for first."""
SEEDS = 24
"""So many of them, or 5/4 k if more, are scored, for a score to reach that is none."""
FEW = 70
"""Where fewer documents than this were chosen in a chunk, fewer lists are asked how strongly in the next one."""
CROWD = 400
"""Where more than this, or 4 k if more, can reach the score, all is done again with smaller shares."""
MANY, SHARE_OF_MANY = 100, 0.5
"""Above this k, it is cheaper to add lists with bitmaps too, more of them, and to take the score to reach from sums
that are still growing."""
CARE = 64
"""What `state` begins with in its last place: shares are multiplied by it over 64."""


class Weights(NamedTuple):
    """How the postings of a segment weigh; all of it follows from the recipe and the collection's average length."""

    curve: NDArray[np.float32]  # [768]
    shifts: NDArray[np.uint8]  # [n_documents + CHUNK]
    halves: NDArray[np.uint8]  # [n_documents + CHUNK]: of the shifts, rounded up
    rises: NDArray[np.int64]  # [n_chunks]: the most that a shift rose since the chunk was packed


class Asked(NamedTuple):
    """A query's lists in a chunk."""

    rows: NDArray[np.int64]  # [n, 5]: see `locate`; and the highest place in the curve
    weights: NDArray[np.float32]
    bounds: NDArray[np.int64]  # the most that each can add


class Hoped(NamedTuple):
    """What documents were credited with for some lists."""

    unit: int
    most: NDArray[np.int64]  # [n]
    bases: NDArray[np.int64]  # [n], of the tables
    tables: NDArray[np.uint8]  # [n + 1, hopes.STEPS]


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
        n_chosen = _search(here, Asked(rows[:n], row_weights[:n], bounds[:n]), live, k, state, scratch)
        scratch.scores[:] = 0
        if n_chosen == DAMAGED:
            return DAMAGED
        for one in range(n_chosen):
            offer(best, who, state, k, np.int32(scratch.sums[one]), base + first + scratch.chosen[one])
    return 0


@njit(cache=True, nogil=True)
def _search(
    here: Chunk, asked: Asked, live: NDArray[np.bool_], k: int, state: NDArray[np.int64], scratch: Scratch
) -> int:
    """Chooses the documents of a chunk that may be among the best, with their scores: how many? Or DAMAGED.

    Scores are left in the scratch; the score to reach is raised in the state.
    """
    n, done, care = len(asked.bounds), 0, state[2] / CARE
    # What the score to reach may become: a guess, where nothing is known of it.
    goal = state[1] if state[1] > 1 or k > MANY else np.int64(GUESS * asked.bounds.sum())
    likely, rates = np.empty(n, np.int64), np.empty(n, np.float64)
    for place in range(n):
        likely[place] = 0 if asked.rows[place, 0] == DENSE and k <= MANY else asked.bounds[place]
        rates[place] = -likely[place] / np.float64(asked.rows[place, 1])
    order, rest = np.argsort(rates), np.empty(n + 1, np.int64)
    while True:
        _sum_up(likely, order, done, rest)
        done, goal = _add(here, asked, order, done, rest, care, goal, live, k, state, scratch)
        if done == DAMAGED:
            return DAMAGED
        left = order[done:]
        left[:] = left[np.argsort(-asked.bounds[left])]
        end = done + _part(left, asked, np.int64(min(care, 1.0) * FAINT * goal))
        strong, hoped = _hope(here, asked, order[done:end], goal, care, scratch)
        _sum_up(asked.bounds, order, end, rest)
        n_chosen, seeds, seed_sums = _choose(here, asked, order[done:], rest[end], hoped, goal, live, k, state, scratch)
        goal, beyond = max(state[1], 1), state[1] <= rest[end] and end < n  # documents of the rest alone may do
        if not beyond and (n_chosen <= max(CROWD, 4 * k) or care < 0.1):
            break
        care = 0.0 if beyond else care / 2
        state[2] = max(state[2] // 2, 8)
        scratch.hopes[:] = 0
        left[:] = left[np.argsort(rates[left])]
    if n_chosen < FEW:
        state[2] = min(state[2] * 5 // 4, 256)
    elif n_chosen > 4 * FEW:
        state[2] = max(state[2] * 4 // 5, 8)
    bar = max(state[1], 1)
    n_strong = done + strong
    # Lists whose documents were credited with most too much come first, those of the rest next.
    turns = np.concatenate((np.arange(n_strong, n), np.arange(done, n_strong)))
    for turn in range(len(turns)):
        if n_chosen == 0:
            break
        place, one = turns[turn], order[turns[turn]]
        if turn + 1 < len(turns):
            foresee(here, asked.rows[order[turns[turn + 1]]], n_chosen, scratch)
        if place >= end:
            n_chosen = look_up(here, asked.rows[one], asked.weights[one], bar - rest[place + 1], n_chosen, scratch)
            continue
        number, base, needed = place - done, np.int64(-1), bar - rest[end]
        if place < n_strong:
            base, needed = hoped.bases[number], bar
        hope = Hope(hoped.unit, hoped.most[number], base, hoped.tables[number])
        n_chosen = settle(here, asked.rows[one], asked.weights[one], hope, needed, n_chosen, scratch)
    if end > done:
        scratch.hopes[:] = 0
    for one in range(len(seeds)):
        scratch.chosen[n_chosen], scratch.sums[n_chosen] = seeds[one], seed_sums[one]
        n_chosen += seed_sums[one] >= bar
    return n_chosen


@njit(cache=True, nogil=True)
def _add(
    here: Chunk,
    asked: Asked,
    order: NDArray[np.int64],
    done: int,
    rest: NDArray[np.int64],
    care: float,
    goal: int,
    live: NDArray[np.bool_],
    k: int,
    state: NDArray[np.int64],
    scratch: Scratch,
) -> tuple[int, int]:
    """Adds lists to the scores until the rest are likely to add little: how many of them, or DAMAGED, and the goal."""
    share, read, check = min(care, 1.0) * (SHARE if k <= MANY else SHARE_OF_MANY), 0, 2 * here.n_documents
    while done < len(order) and not (goal > 1 and rest[done] <= share * goal):
        row = asked.rows[order[done]]
        if scan(here, row, asked.weights[order[done]], scratch) == DAMAGED:
            return DAMAGED, goal
        read += row[1]
        done += 1
        if k > MANY and len(live) == 0 and read >= check:
            check = read + read // 2
            state[1] = max(state[1], _reached(here.n_documents, k, scratch))
            goal = state[1]
    return done, goal


@njit(cache=True, nogil=True)
def _hope(
    here: Chunk, asked: Asked, which: NDArray[np.int64], goal: int, care: float, scratch: Scratch
) -> tuple[int, Hoped]:
    """Credits documents with what they can get from some lists, strongest first: for how many of them by strength?"""
    n, strong, unit, n_groups = len(which), 0, goal // hopes.FULL + 1, bitmaps.n_tops(here.n_documents)
    hoped = Hoped(unit, np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n + 1, hopes.STEPS), np.uint8))
    for place in range(n):
        row, bound, weight = asked.rows[which[place]], asked.bounds[which[place]], asked.weights[which[place]]
        units = hopes.units_of(bound, unit)
        ahead, step = row[2], 0
        if place + 1 < n:
            after = asked.rows[which[place + 1]]
            ahead, step = after[2], (after[3] - after[2]) // n_groups
        hoped.most[place] = max(units * unit, bound)  # a document of FULL hopes is credited with the most
        if WIDE and bound >= care * STRONG * goal:
            table = hoped.tables[place]
            base = hopes.tabulate(here.curve, row[4], weight, unit, table)
            hoped.bases[place] = base
            hopes.add_by_strength(
                here.lists.codes, row, here.n_documents, table, np.uint8(base), here.halves, scratch.hopes, ahead, step
            )
            strong += 1
        else:
            hopes.add(here.lists.codes, row, here.n_documents, np.uint8(units), scratch.hopes, ahead, step)
    return strong, hoped


@njit(cache=True, nogil=True)
def _choose(
    here: Chunk,
    asked: Asked,
    left: NDArray[np.int64],
    rest: int,
    hoped: Hoped,
    goal: int,
    live: NDArray[np.bool_],
    k: int,
    state: NDArray[np.int64],
    scratch: Scratch,
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Chooses the documents that can reach the score to reach, with the most that they can have but for the rest.

    Where that score is a guess, the most promising documents are scored first. Those are given beside the others, with
    their scores.
    """
    bar, nobody = max(state[1], 1), np.empty(0, np.int64)
    if goal <= bar or len(left) == 0:
        return _hopeful(here, bar - rest, hoped, live, scratch), nobody, nobody
    cut, n = np.int64(FIRST * goal), 0
    while True:
        n = _hopeful(here, cut, hoped, live, scratch)
        if n >= k or cut <= bar:
            break
        cut = max(cut // 2, bar)
    if n < k:
        return _hopeful(here, bar - rest, hoped, live, scratch), nobody, nobody
    documents, sums = scratch.chosen[:n].copy(), scratch.sums[:n].copy()
    n_seeds = _seed(here, asked, left, k, n, scratch)
    seeds, seed_sums = scratch.chosen[:n_seeds].copy(), scratch.sums[:n_seeds].copy()
    bar = max(bar, np.partition(seed_sums, n_seeds - k)[n_seeds - k])
    state[1] = bar
    if bar - rest < cut:
        n = _hopeful(here, bar - rest, hoped, live, scratch)
        documents, sums = scratch.chosen[:n].copy(), scratch.sums[:n].copy()
    n_chosen, seed = 0, 0
    for one in range(n):
        while seed < n_seeds and seeds[seed] < documents[one]:
            seed += 1
        scratch.chosen[n_chosen], scratch.sums[n_chosen] = documents[one], sums[one]
        n_chosen += sums[one] >= bar - rest and not (seed < n_seeds and seeds[seed] == documents[one])
    return n_chosen, seeds, seed_sums


@njit(cache=True, nogil=True)
def _hopeful(here: Chunk, needed: int, hoped: Hoped, live: NDArray[np.bool_], scratch: Scratch) -> int:
    """Chooses the documents that hope for at least so much: how many? Their sums are what they hope for."""
    n = choose(max(min(needed, hopes.FULL * hoped.unit), 1), hoped.unit, here.n_documents, live, scratch)
    most = hoped.most.sum()
    for one in range(n):
        hope = np.int64(scratch.hopes[np.uint16(scratch.chosen[one])])
        scratch.sums[one] += hope * hoped.unit if hope < hopes.FULL else most
    return n


@njit(cache=True, nogil=True)
def _seed(here: Chunk, asked: Asked, left: NDArray[np.int64], k: int, n: int, scratch: Scratch) -> int:
    """Scores those of the chosen documents that hope for most, in the lists that are left: how many?"""
    wanted, kept = min(max(SEEDS, k + k // 4), n), 0
    low = np.partition(scratch.sums[:n], n - wanted)[n - wanted]
    for one in range(n):
        document, total = scratch.chosen[one], scratch.sums[one]
        scratch.chosen[kept], scratch.sums[kept] = document, scratch.scores[np.uint16(document)]
        kept += total >= low and kept < wanted
    for turn in range(len(left)):
        if turn + 1 < len(left):
            foresee(here, asked.rows[left[turn + 1]], kept, scratch)
        look_up(here, asked.rows[left[turn]], asked.weights[left[turn]], 0, kept, scratch)
    return kept


@njit(cache=True, nogil=True)
def _part(left: NDArray[np.int64], asked: Asked, least: int) -> int:
    """Brings those lists to the front that have bitmaps and can add at least so much; their order stays. How many?"""
    n, others = 0, np.empty(len(left), np.int64)
    for place in range(len(left)):
        one = left[place]
        if asked.rows[one, 0] == DENSE and asked.bounds[one] >= least:
            left[n] = one
            n += 1
        else:
            others[place - n] = one
    left[n:] = others[: len(left) - n]
    return n


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
        first, stop, n_chosen = lists.chunks[chunk, 0], lists.chunks[chunk + 1, 0], 0
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
        for place in range(n):
            look_up(here, rows[place], row_weights[place], 0, n_chosen, scratch)
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


@njit(cache=True, nogil=True)
def _sum_up(bounds: NDArray[np.int64], order: NDArray[np.int64], start: int, rest: NDArray[np.int64]) -> None:
    """rest[i]: what the lists from place i on can add, at most."""
    rest[len(order)] = 0
    for place in range(len(order) - 1, start - 1, -1):
        rest[place] = rest[place + 1] + bounds[order[place]]


@njit(cache=True, nogil=True)
def _reached(n_documents: int, k: int, scratch: Scratch) -> int:
    """A score that k documents have reached already: the k-th of the highest of each 8 neighbours."""
    n_blocks = (n_documents + 7) // 8
    if n_blocks < k:
        return 0
    highest = np.empty(n_blocks, np.int32)
    for block in range(n_blocks):
        score = scratch.scores[8 * block]
        for document in range(8 * block + 1, 8 * block + 8):
            score = max(score, scratch.scores[document])
        highest[block] = score
    return np.partition(highest, n_blocks - k)[n_blocks - k]


@njit(cache=True, nogil=True)
def choose(needed: int, unit: int, n_documents: int, live: NDArray[np.bool_], scratch: Scratch) -> int:
    """Chooses the documents of at least that score, with what they hope for, in order; gives how many."""
    n, scores = 0, scratch.scores
    for place in range(0, n_documents, 64):
        bits = reaching(scores, scratch.hopes, place, np.int32(unit), np.int32(needed))
        while bits != 0:
            document = place + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            if document < n_documents and (len(live) == 0 or live[document]):
                scratch.chosen[n], scratch.sums[n] = document, scores[document]
                n += 1
    return n
