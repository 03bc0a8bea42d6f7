"""The Numba kernels of the index: invert, exact top-k, scores, lookup. Their slow twins stand in `reference`.

A document number out of range means a damaged file: the kernels stop with DAMAGED instead of writing astray.
Latents that the index does not know, and query weights of 0, match nothing.
Scores are sums of float64 products of the stored float32 weights, latent by latent in the query's order.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

DAMAGED = -1


@njit(cache=True, nogil=True)
def invert(
    ids: NDArray[np.int32], values: NDArray[np.float32], offsets: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Document-major entries to term-major postings, documents ascending within a term: a counting sort."""
    starts = np.zeros(size + 1, np.int64)
    for latent in ids:
        starts[latent + 1] += 1
    for latent in range(size):
        starts[latent + 1] += starts[latent]
    free = starts[:-1].copy()
    documents = np.empty(len(ids), np.int32)
    weights = np.empty(len(ids), np.float32)
    for document in range(len(offsets) - 1):
        for entry in range(offsets[document], offsets[document + 1]):
            place = free[ids[entry]]
            free[ids[entry]] += 1
            documents[place] = document
            weights[place] = values[entry]
    return starts, documents, weights


@njit(cache=True, nogil=True)
def accumulate(
    offsets: NDArray[np.int64],
    documents: NDArray[np.int32],
    weights: NDArray[np.float32],
    query_ids: NDArray[np.int32],
    query_weights: NDArray[np.float32],
    scores: NDArray[np.float64],
    matched: NDArray[np.bool_],
) -> int:
    """Adds one query's products to `scores` and marks the documents that share a latent with it in `matched`."""
    for place in range(len(query_ids)):
        latent, weight = query_ids[place], np.float64(query_weights[place])
        if weight == 0.0 or latent < 0 or latent >= len(offsets) - 1:
            continue
        for posting in range(offsets[latent], offsets[latent + 1]):
            document = documents[posting]
            if document < 0 or document >= len(scores):
                return DAMAGED
            scores[document] += weight * weights[posting]
            matched[document] = True
    return 0


@njit(cache=True, nogil=True)
def top(
    offsets: NDArray[np.int64],
    documents: NDArray[np.int32],
    weights: NDArray[np.float32],
    query_offsets: NDArray[np.int64],
    query_ids: NDArray[np.int32],
    query_weights: NDArray[np.float32],
    n_documents: int,
    out_documents: NDArray[np.int64],
    out_scores: NDArray[np.float64],
) -> int:
    """The best documents of each query into the rows of out_documents and out_scores; places left over are untouched.

    Higher scores first; equal scores in document order.
    """
    k = out_documents.shape[1]
    scores = np.zeros(n_documents, np.float64)
    matched = np.zeros(n_documents, np.bool_)
    for query in range(len(query_offsets) - 1):
        part = slice(query_offsets[query], query_offsets[query + 1])
        if accumulate(offsets, documents, weights, query_ids[part], query_weights[part], scores, matched) == DAMAGED:
            return DAMAGED
        # A heap whose root is the weakest kept. Documents come in order, so an equal score never displaces one.
        best, who = out_scores[query], out_documents[query]
        count = 0
        for document in range(n_documents):
            if not matched[document]:
                continue
            score = scores[document]
            scores[document] = 0.0
            matched[document] = False
            if count < k:
                _rise(best, who, count, score, document)
                count += 1
            elif count > 0 and score > best[0]:
                _sink(best, who, count, score, document)
        for last in range(count - 1, 0, -1):  # take the weakest out, again and again: strongest first remains
            score, document = best[last], who[last]
            best[last], who[last] = best[0], who[0]
            _sink(best, who, last, score, document)
    return 0


@njit(cache=True, nogil=True)
def _weaker(score: float, document: int, other_score: float, other_document: int) -> bool:
    return score < other_score or (score == other_score and document > other_document)


@njit(cache=True, nogil=True)
def _rise(best: NDArray[np.float64], who: NDArray[np.int64], place: int, score: float, document: int) -> None:
    while place > 0:
        parent = (place - 1) // 2
        if not _weaker(score, document, best[parent], who[parent]):
            break
        best[place], who[place] = best[parent], who[parent]
        place = parent
    best[place], who[place] = score, document


@njit(cache=True, nogil=True)
def _sink(best: NDArray[np.float64], who: NDArray[np.int64], count: int, score: float, document: int) -> None:
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
def lookup(
    offsets: NDArray[np.int64],
    documents: NDArray[np.int32],
    weights: NDArray[np.float32],
    document: int,
    latents: NDArray[np.int32],
) -> NDArray[np.float32]:
    """The weights of one document for the given latents, 0 where it lacks one: a binary search in each list."""
    found = np.zeros(len(latents), np.float32)
    for place in range(len(latents)):
        latent = latents[place]
        if latent < 0 or latent >= len(offsets) - 1:
            continue
        low, high = offsets[latent], offsets[latent + 1]
        stop = high
        while low < high:
            middle = (low + high) // 2
            if documents[middle] < document:
                low = middle + 1
            else:
                high = middle
        if low < stop and documents[low] == document:
            found[place] = weights[low]
    return found
