"""The k best documents as a heap whose root is the weakest: scores in `best`, documents in `who`."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def offer(
    best: NDArray[np.integer], who: NDArray[np.int64], state: NDArray[np.int64], k: int, score: int, document: int
) -> None:
    """Puts a document into the heap of the k best, if it belongs there."""
    if state[0] < k:
        _rise(best, who, state[0], score, document)
        state[0] += 1
    elif _weaker(best[0], who[0], score, document):
        _sink(best, who, k, score, document)


@njit(cache=True, nogil=True, inline="always")
def _weaker(score: int, document: int, other_score: int, other_document: int) -> bool:
    return score < other_score or (score == other_score and document > other_document)


@njit(cache=True, nogil=True)
def _rise(best: NDArray[np.integer], who: NDArray[np.int64], place: int, score: int, document: int) -> None:
    while place > 0:
        parent = (place - 1) // 2
        if not _weaker(score, document, best[parent], who[parent]):
            break
        best[place], who[place] = best[parent], who[parent]
        place = parent
    best[place], who[place] = score, document


@njit(cache=True, nogil=True)
def _sink(best: NDArray[np.integer], who: NDArray[np.int64], count: int, score: int, document: int) -> None:
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and _weaker(best[child + 1], who[child + 1], best[child], who[child]):
            child += 1
        if not _weaker(best[child], who[child], score, document):
            break
        best[place], who[place] = best[child], who[child]
        place = child
    best[place], who[place] = score, document


@njit(cache=True, nogil=True)
def arrange(best: NDArray[np.integer], who: NDArray[np.int64], count: int) -> None:
    """The heap in order: the strongest first, equal scores in document order."""
    for last in range(count - 1, 0, -1):  # take the weakest out, again and again
        score, document = best[last], who[last]
        best[last], who[last] = best[0], who[0]
        _sink(best, who, last, score, document)
