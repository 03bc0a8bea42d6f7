"""The search of a chunk by hopes: what each of its documents can get at most is added up, and few of them are scored.

Lists that few documents are in are added to scores, but those that can add next to nothing; of long lists it is asked
which documents are in them, and how strongly (see `lexent.indexing.hopes`). Documents that can reach the score to reach
are chosen. They are then looked up in one list after the other, and given up as soon as they cannot.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import hopes
from lexent.indexing.adding import sums_from
from lexent.indexing.bits import WIDE, at_least, fetch, trailing_zeros
from lexent.indexing.hopes import Hoped, hope_of
from lexent.indexing.packing import DENSE, EVERY
from lexent.indexing.reading import look_up, scan
from lexent.indexing.workspace import DAMAGED, Asked, Chunk, Scratch

SHARE = 0.05
"""Thin lists are read until the rest could add this share of the score to reach."""
FAINT = 0.01
"""Of long lists that can add this share of the score to reach, documents are asked."""
STRONG = 0.003 if WIDE else 0.012
"""Of those with bitmaps that can add this share on average over all documents, it is asked how strongly they are in it;
of the longest always."""
GUESS = 0.28
"""The score to reach in a first chunk, as a share of what all lists could add. Nothing hangs on it but time."""
SPAN = 204
"""The score to reach, in units of hope."""
SEEDS = 24
"""So many documents, or 5/4 k if more, are scored at first, for a score to reach that is no guess."""
FEW = 70
"""Where fewer documents than this were chosen in a chunk, fewer lists are asked how strongly in the next one."""
CROWD = 1000
"""Where more than this, or 4 k if more, can reach the score, all is done again with smaller shares."""
FETCHED = 512
"""Entries of a list that are asked for while the one before is read."""
CARE = 64
"""What the state begins with in its last place: shares are multiplied by that over this."""


@njit(cache=True, nogil=True)
def search(
    here: Chunk, asked: Asked, live: NDArray[np.bool_], k: int, state: NDArray[np.int64], scratch: Scratch
) -> int:
    """Chooses the documents of a chunk that may be among the best, with their scores: how many? Or DAMAGED.

    Scores are left in the scratch; the score to reach is raised in the state.
    """
    # Counts are no literals here and below: Numba would compile what they are passed to once more for those.
    care, done, bounds = state[2] / CARE, np.int64(0), asked.bounds
    # What the score to reach may become: a guess, where nothing is known of it.
    goal = state[1] if state[1] > 1 else np.int64(GUESS * bounds.sum()) + 1
    thin, long = _sort(asked)
    while True:
        done = _add(here, asked, thin, done, min(care, 1.0) * SHARE * goal, scratch)
        if done == DAMAGED:
            scratch.scores[:] = 0
            return DAMAGED
        end = _part(long, asked.bounds[long] >= min(care, 1.0) * FAINT * goal)
        strong = _part(long[:end], _strong(asked, long[:end], care * STRONG * goal * here.n_documents))
        rest = sums_from(np.concatenate((bounds[long[end:]], bounds[thin[done:]])))
        unit = goal // SPAN + 1
        hoped = hopes.add_up(here, _some(asked, long[:end]), strong, unit, (state[1] - rest[0]) // unit, scratch)
        order = np.concatenate((long, thin[done:]))
        n_chosen, seeds, seed_sums = _choose(here, asked, order, rest[0], hoped, goal, live, k, state, scratch)
        goal, beyond = max(state[1], 1), 0 < rest[0] >= state[1]  # documents of the rest alone may do
        if not beyond and (n_chosen <= max(CROWD, 4 * k) or care < 0.1):
            break
        care = 0.0 if beyond else care / 2
        state[2] = max(state[2] // 2, 8)
    scratch.scores[:] = 0  # all: a damaged list may name documents that there are not
    if n_chosen < FEW:
        state[2] = min(state[2] * 5 // 4, 256)
    elif n_chosen > 4 * FEW:
        state[2] = max(state[2] * 4 // 5, 8)
    # Lists whose documents were credited with most too much come first, those of the rest next.
    bar, n = max(state[1], 1), len(order)
    turns = np.arange(strong, strong + n) % n
    numbers, needed = np.where(turns < end, turns, -1), np.full(n, bar - rest[0])
    needed[end - strong : n - strong] = bar - rest[1:]
    needed[n - strong :] = bar
    n_chosen = look_up(here, asked, order[turns], numbers, needed, hoped, n_chosen, scratch)
    for one in range(len(seeds)):
        scratch.chosen[n_chosen], scratch.sums[n_chosen] = seeds[one], seed_sums[one]
        n_chosen += seed_sums[one] >= bar
    return n_chosen


@njit(cache=True, nogil=True)
def _sort(asked: Asked) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Thin lists, those that can add most for their length first; long lists, those that can add most first."""
    n, n_thin = len(asked.bounds), 0
    keys = np.empty(n, np.int64)  # what they are sorted by, and which they are
    for one in range(n):
        form, bound = asked.rows[one, 0], asked.bounds[one]
        if form in (DENSE, EVERY):
            keys[n - 1 - one + n_thin] = (2**31 - bound) << 20 | one
        else:
            keys[n_thin] = (2**41 - (bound << 10) // asked.rows[one, 1]) << 20 | one
            n_thin += 1
    return np.sort(keys[:n_thin]) & 0xFFFFF, np.sort(keys[n_thin:]) & 0xFFFFF


@njit(cache=True, nogil=True)
def _add(here: Chunk, asked: Asked, thin: NDArray[np.int64], done: int, enough: float, scratch: Scratch) -> int:
    """Adds thin lists to the scores until the rest can add little: how many are done? DAMAGED says that one is."""
    left = asked.bounds[thin[done:]].sum()
    while done < len(thin) and left > enough:
        one = thin[done]
        after = asked.rows[thin[min(done + 1, len(thin) - 1)], 2]
        for ahead in range(0, FETCHED, 32):
            fetch(here.lists.shorts, after + ahead)
        if scan(here, asked.rows[one], asked.weights[one], scratch) == DAMAGED:
            return DAMAGED
        left -= asked.bounds[one]
        done += 1
    return done


@njit(cache=True, nogil=True)
def _strong(asked: Asked, long: NDArray[np.int64], least: float) -> NDArray[np.bool_]:
    """Which lists can add at least so much to all of their documents; and all that have a code for each document."""
    found = np.empty(len(long), np.bool_)
    for place in range(len(long)):
        form, count = asked.rows[long[place], 0], asked.rows[long[place], 1]
        found[place] = form == EVERY or asked.bounds[long[place]] * count >= least
    return found


@njit(cache=True, nogil=True)
def _part(long: NDArray[np.int64], wanted: NDArray[np.bool_]) -> int:
    """Brings the wanted lists to the front; their order stays. How many?"""
    n, others = 0, np.empty(len(long), np.int64)
    for place in range(len(long)):
        if wanted[place]:
            long[n] = long[place]
            n += 1
        else:
            others[place - n] = long[place]
    long[n:] = others[: len(long) - n]
    return n


@njit(cache=True, nogil=True)
def _some(asked: Asked, which: NDArray[np.int64]) -> Asked:
    return Asked(asked.rows[which], asked.weights[which], asked.bounds[which])


@njit(cache=True, nogil=True)
def _choose(
    here: Chunk,
    asked: Asked,
    order: NDArray[np.int64],
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
    if goal <= bar:
        return _hopeful(here, bar - rest, hoped, live, scratch), nobody, nobody
    wanted, counts, cut = max(SEEDS, k + k // 4), np.zeros(hopes.FULL + 1, np.int64), hopes.FULL
    for top in scratch.peaks[: (here.n_documents + 63) // 64]:
        counts[top] += 1
    while cut > 1 and counts[cut:].sum() < wanted:
        cut -= 1
    n = _hopeful(here, cut * hoped.unit, hoped, live, scratch)
    while n < k and cut > 1:
        cut //= 2
        n = _hopeful(here, cut * hoped.unit, hoped, live, scratch)
    if n < k:
        return _hopeful(here, bar - rest, hoped, live, scratch), nobody, nobody
    n_seeds = _seed(here, asked, order, min(wanted, n), n, scratch)
    seeds, seed_sums = scratch.chosen[:n_seeds].copy(), scratch.sums[:n_seeds].copy()
    state[1] = bar = max(bar, np.partition(seed_sums, n_seeds - k)[n_seeds - k])
    n, n_chosen, seed = _hopeful(here, bar - rest, hoped, live, scratch), 0, 0
    for one in range(n):
        document = scratch.chosen[one]
        while seed < n_seeds and seeds[seed] < document:
            seed += 1
        scratch.chosen[n_chosen], scratch.sums[n_chosen] = document, scratch.sums[one]
        n_chosen += not (seed < n_seeds and seeds[seed] == document)
    return n_chosen, seeds, seed_sums


@njit(cache=True, nogil=True)
def _hopeful(here: Chunk, needed: int, hoped: Hoped, live: NDArray[np.bool_], scratch: Scratch) -> int:
    """Chooses the documents that hope for at least so much: how many? Their sums are what they hope for."""
    n = 0
    cut = np.uint8(max(min((needed + hoped.unit - 1) // hoped.unit, hopes.FULL), 1))
    for place in range(0, here.n_documents, 64):
        if scratch.peaks[place // 64] < cut:
            continue
        bits = at_least(scratch.hopes, place, cut)
        while bits != 0:
            document = place + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            if document < here.n_documents and (len(live) == 0 or live[document]):
                hope = np.int64(scratch.hopes[document])
                scratch.chosen[n], scratch.sums[n] = document, hope_of(hoped, scratch.scores[document], hope)
                n += 1
    return n


@njit(cache=True, nogil=True)
def _seed(here: Chunk, asked: Asked, order: NDArray[np.int64], wanted: int, n: int, scratch: Scratch) -> int:
    """Scores those of the chosen documents that hope for most, in the lists that were not added: how many?"""
    low, kept = np.partition(scratch.sums[:n], n - wanted)[n - wanted], np.int64(0)
    for one in range(n):
        document, total = scratch.chosen[one], scratch.sums[one]
        scratch.chosen[kept], scratch.sums[kept] = document, scratch.scores[document]
        kept += total >= low and kept < wanted
    n = len(order)
    return look_up(here, asked, order, np.full(n, -1), np.zeros(n, np.int64), hopes.nothing(), kept, scratch)
