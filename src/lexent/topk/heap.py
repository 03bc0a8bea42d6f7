"""A binary heap of the k best documents, the worst at the root: arrays `scores` and `documents`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.jit import njit

COUNT = 0
"""Place in a search's state: how many documents the heap holds."""


@njit(cache=True, nogil=True)
def push(
    scores: NDArray[np.integer],
    documents: NDArray[np.int64],
    state: NDArray[np.int64],
    k: int,
    score: int,
    document: int,
) -> None:
    """Inserts a document if it is among the k best; equal scores rank by document number."""
    if state[COUNT] < k:
        _sift_up(scores, documents, state[COUNT], score, document)
        state[COUNT] += 1
    elif _ranks_below(scores[0], documents[0], score, document):
        _sift_down(scores, documents, k, score, document)


@njit(cache=True, nogil=True, inline="always")
def _ranks_below(score: int, document: int, other_score: int, other_document: int) -> bool:
    return score < other_score or (score == other_score and document > other_document)


@njit(cache=True, nogil=True)
def _sift_up(scores: NDArray[np.integer], documents: NDArray[np.int64], place: int, score: int, document: int) -> None:
    while place > 0:
        parent = (place - 1) // 2
        if not _ranks_below(score, document, scores[parent], documents[parent]):
            break
        scores[place], documents[place] = scores[parent], documents[parent]
        place = parent
    scores[place], documents[place] = score, document


@njit(cache=True, nogil=True)
def _sift_down(
    scores: NDArray[np.integer], documents: NDArray[np.int64], count: int, score: int, document: int
) -> None:
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and _ranks_below(scores[child + 1], documents[child + 1], scores[child], documents[child]):
            child += 1
        if not _ranks_below(scores[child], documents[child], score, document):
            break
        scores[place], documents[place] = scores[child], documents[child]
        place = child
    scores[place], documents[place] = score, document


@njit(cache=True, nogil=True)
def sort_heap(scores: NDArray[np.integer], documents: NDArray[np.int64], count: int) -> None:
    """Sorts the heap in place: highest scores first, equal scores by document number."""
    for last in range(count - 1, 0, -1):  # move the root, which is the worst of those left, to the end
        score, document = scores[last], documents[last]
        scores[last], documents[last] = scores[0], documents[0]
        _sift_down(scores, documents, last, score, document)
