"""The search of a chunk by adding up scores, the MaxScore way.

Lists are added whole, those that lower the bound most for their length first, until what the rest could add is a share
of the score to reach. Documents that can still reach it are looked up in the rest.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import hopes
from lexent.indexing.reading import choose, look_up, scan
from lexent.indexing.workspace import DAMAGED, Asked, Chunk, Scratch

SHARE = 0.5
"""Lists are added until the rest could add this share of the score to reach: more is less to read, more to look up."""
CROWD = 400
"""Where more documents than this, or 4 k if more, can reach the score, more lists are added."""


@njit(cache=True, nogil=True)
def search(
    here: Chunk, asked: Asked, live: NDArray[np.bool_], k: int, state: NDArray[np.int64], scratch: Scratch
) -> int:
    """Chooses the documents of a chunk that may be among the best, with their scores: how many? Or DAMAGED.

    Scores are left in the scratch; the score to reach is raised in the state.
    """
    n, done, share, n_chosen, n_documents = len(asked.bounds), 0, SHARE, np.int64(0), here.n_documents
    order = np.argsort(-asked.bounds / asked.rows[:, 1])
    rest = sums_from(asked.bounds[order])
    read, check = 0, 2 * n_documents
    while True:
        while done < n and not (state[1] > 1 and rest[done] <= share * state[1]):
            row = asked.rows[order[done]]
            if scan(here, row, asked.weights[order[done]], scratch) == DAMAGED:
                scratch.scores[:] = 0
                return DAMAGED
            read += row[1]
            done += 1
            if len(live) == 0 and read >= check:
                check = read + read // 2
                state[1] = max(state[1], _reached(n_documents, k, scratch))
        n_chosen = choose(max(state[1] - rest[done], 1), n_documents, live, scratch)
        if n_chosen <= max(CROWD, 4 * k) or done == n:
            break
        share /= 2
    scratch.scores[:] = 0
    left = order[done:]
    left[:] = left[np.argsort(-asked.bounds[left])]
    needed = max(state[1], 1) - sums_from(asked.bounds[left])[1:]
    return look_up(here, asked, left, np.full(len(left), -1), needed, hopes.nothing(), n_chosen, scratch)


@njit(cache=True, nogil=True)
def sums_from(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n + 1]: what the lists from each place on can add, at most."""
    rest = np.zeros(len(bounds) + 1, np.int64)
    for place in range(len(bounds) - 1, -1, -1):
        rest[place] = rest[place + 1] + bounds[place]
    return rest


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
