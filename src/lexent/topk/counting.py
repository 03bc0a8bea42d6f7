"""Exact top-k over binary posting lists by counting, for queries whose terms have few distinct weights.

The score of a document is the number of the query's posting lists that hold it, times the contribution of each; with
several distinct weights, the sum of that over the weights. Counters have 8 bits, or 16 for queries of more than 255
terms. All lists are read whole: to skip the longest and probe them for the best documents was slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings import binary_postings
from lexent.indexing.postings.binary_postings import load_uint16
from lexent.indexing.postings.descriptor import ENCODING, END, ENTRIES, START
from lexent.indexing.postings.layout import CHUNK_DOCUMENTS, PostingLists
from lexent.indexing.postings.packing import find_list, known_in
from lexent.indexing.postings.simd import (
    BLOCK_DOCUMENTS,
    LANES,
    add_bitmaps,
    bytes_at_least,
    load_word,
    prefetch,
    trailing_zeros,
)
from lexent.jit import njit
from lexent.topk.heap import COUNT, push
from lexent.topk.impacts import contribution
from lexent.topk.posting_lists import collect_candidates
from lexent.topk.weighted import prepare_terms
from lexent.topk.workspace import DAMAGED, Workspace

TOO_MANY_WEIGHTS = -3
"""Returned by `top_k` instead of a result: the query has too many distinct weights, or negative ones."""
MAX_DISTINCT_WEIGHTS = 8
"""Distinct weights of a query, at most: of buckets and of steered concepts."""
MAX_TERMS_8BIT = 255
"""Terms of a query, at most, whose counts fit 8 bits."""
BLOCK_BYTES = BLOCK_DOCUMENTS // 8
"""Bytes of a bitmap that are added at a time."""


@njit(cache=True, nogil=True)
def top_k(
    ids: NDArray[np.int32],
    weights: NDArray[np.float32],
    scale: float,
    size: int,
    lists: PostingLists,
    allowed: NDArray[np.bool_],
    base: int,
    heap_scores: NDArray[np.int32],
    heap_documents: NDArray[np.int64],
    state: NDArray[np.int64],
    workspace: Workspace,
    counts: NDArray[np.unsignedinteger],
) -> int:
    """`weighted.top_k` for a binary segment and few distinct weights.

    counts: the workspace's counters of 8 or 16 bits, zero between calls.
    """
    latents, scaled, negative = prepare_terms(ids, weights, scale, size)
    if negative:
        return TOO_MANY_WEIGHTS
    runs = _runs_of_equal_weights(scaled)
    if len(runs) > 2:
        order = np.argsort(scaled, kind="mergesort")
        latents, scaled = latents[order], scaled[order]
        runs = _runs_of_equal_weights(scaled)
    n_runs, k = len(runs) - 1, len(heap_scores)
    if n_runs > MAX_DISTINCT_WEIGHTS:
        return TOO_MANY_WEIGHTS
    contributions = np.empty(n_runs, np.int64)
    for run in range(n_runs):
        contributions[run] = contribution(np.float32(1), scaled[runs[run]])
    descriptors, sizes = np.empty((len(latents), 4), np.int64), np.empty(n_runs, np.int64)
    for chunk in range(len(lists.chunks) - 1):
        first = lists.chunks[chunk, 0]
        n_documents = lists.chunks[chunk + 1, 0] - first
        live = allowed[first : first + n_documents] if len(allowed) else allowed
        upper_bound = 0
        for run in range(n_runs):
            start, end = runs[run], runs[run + 1]
            sizes[run] = _find_lists(latents[start:end], lists, chunk, descriptors[start:end])
            if sizes[run] == DAMAGED:
                return DAMAGED
            upper_bound += sizes[run] * contributions[run]
        # Documents ascend, so one that only equals the worst in the heap does not enter it.
        threshold = np.int64(heap_scores[0]) + 1 if state[COUNT] == k else np.int64(1)
        if upper_bound < threshold:
            continue
        if n_runs == 1:
            count_lists(lists.codes, descriptors[: sizes[0]], counts)
            unit = contributions[0]
            threshold = max((threshold + unit - 1) // unit, _kth_count(counts, n_documents, live, k))
            n_candidates = _collect(threshold, n_documents, live, workspace, counts)
        else:
            unit = np.int64(1)
            for run in range(n_runs):
                count_lists(lists.codes, descriptors[runs[run] : runs[run] + sizes[run]], counts)
                value = np.int32(contributions[run])
                for document in range(CHUNK_DOCUMENTS):
                    workspace.accumulators[document] += np.int32(counts[document]) * value
                    counts[document] = 0
            n_candidates = collect_candidates(
                max(threshold, _kth_score(workspace.accumulators, n_documents, live, k)), n_documents, live, workspace
            )
            workspace.accumulators[:] = 0
        for place in range(n_candidates):
            push(
                heap_scores,
                heap_documents,
                state,
                k,
                np.int32(workspace.candidate_scores[place] * unit),
                base + first + workspace.candidates[place],
            )
        counts[:] = 0
    return 0


@njit(cache=True, nogil=True)
def _runs_of_equal_weights(weights: NDArray[np.float32]) -> NDArray[np.int64]:
    """Where each run of equal weights begins, and the end of the last one."""
    starts, n = np.zeros(len(weights) + 1, np.int64), 0
    for place in range(len(weights)):
        if place == 0 or weights[place] != weights[place - 1]:
            starts[n] = place
            n += 1
    starts[n] = len(weights)
    return starts[: n + 1]


@njit(cache=True, nogil=True)
def _find_lists(latents: NDArray[np.uint32], lists: PostingLists, chunk: int, descriptors: NDArray[np.int64]) -> int:
    """Finds the query's posting lists in a chunk: fills descriptors; returns how many there are, or DAMAGED."""
    n, known = 0, known_in(lists, chunk)
    first, n_lists = lists.chunks[chunk, 1], lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1]
    for latent in latents:
        found = find_list(known, np.uint64(latent), n_lists)
        if found < 0:
            continue
        if not binary_postings.locate(lists, chunk, first + found, descriptors[n]):
            return DAMAGED
        if descriptors[n, ENCODING] != binary_postings.BINARY_BITMAP:  # the processor prefetches bitmaps by itself
            for place in range(descriptors[n, START], descriptors[n, END], 64):
                prefetch(lists.codes, place)
        n += 1
    return n


@njit(cache=True, nogil=True)
def count_lists(data: NDArray[np.uint8], descriptors: NDArray[np.int64], counts: NDArray[np.unsignedinteger]) -> None:
    """Adds whole posting lists to the counts; bitmaps several at a time."""
    starts, n, bitmap_bytes, at = np.empty(len(descriptors), np.int64), 0, 0, 0
    for descriptor in descriptors:
        if descriptor[ENCODING] == binary_postings.BINARY_BITMAP and counts.itemsize == 1:
            starts[n], bitmap_bytes = descriptor[START], descriptor[END] - descriptor[START]
            n += 1
        else:
            count_list(data, descriptor, counts)
    # The more bitmaps at a time, the less each costs. With 2^b - 1 of them, a sum uses its b bits fully.
    while n - at >= 31:
        for place in range(0, bitmap_bytes, BLOCK_BYTES):
            add_bitmaps(counts, data, starts, at, 31, place)
        at += 31
    while n - at >= 15:
        for place in range(0, bitmap_bytes, BLOCK_BYTES):
            add_bitmaps(counts, data, starts, at, 15, place)
        at += 15
    while n - at >= 7:
        for place in range(0, bitmap_bytes, BLOCK_BYTES):
            add_bitmaps(counts, data, starts, at, 7, place)
        at += 7
    while n - at >= 3:
        for place in range(0, bitmap_bytes, BLOCK_BYTES):
            add_bitmaps(counts, data, starts, at, 3, place)
        at += 3
    while n - at >= 1:
        for place in range(0, bitmap_bytes, BLOCK_BYTES):
            add_bitmaps(counts, data, starts, at, 1, place)
        at += 1


@njit(cache=True, nogil=True)
def count_list(data: NDArray[np.uint8], descriptor: NDArray[np.int64], counts: NDArray[np.unsignedinteger]) -> None:
    """Adds a whole posting list to the counts."""
    encoding = descriptor[ENCODING]
    count = descriptor[ENTRIES]
    start = np.uint64(descriptor[START])
    end = np.uint64(descriptor[END])
    n = np.uint64(0)
    # Indices are unsigned, so that Numba omits the test for negative ones.
    if encoding == binary_postings.BINARY_GAPS:
        for line in range(start, end, np.uint64(binary_postings.LINE_BYTES)):
            if line + np.uint64(binary_postings.LINE_BYTES) <= end:  # a constant length compiles to faster code
                _count_line(data, line, np.uint64(binary_postings.LINE_BYTES), counts)
            else:
                _count_line(data, line, end - line, counts)
    elif encoding == binary_postings.BINARY_BITMAP:
        for place in range(end - start):
            byte = data[start + place]
            for bit in range(np.uint64(8)):
                counts[place << np.uint64(3) | bit] += (byte >> bit) & 1
    elif encoding == binary_postings.BINARY_DOC_IDS:
        for entry in range(np.uint64(count)):
            place = start + (entry << np.uint64(1))
            counts[np.uint16(load_uint16(data, place))] += 1
    else:
        low_bytes = end - np.uint64(count)
        for place in range(start, low_bytes, np.uint64(8)):
            bits: Any = load_word(data, np.int64(place))
            while bits != 0 and n < np.uint64(count):
                block = 8 * np.int64(place - start) + trailing_zeros(bits) - np.int64(n)
                bits &= bits - np.uint64(1)
                counts[np.uint16(block << 8 | np.int64(data[low_bytes + n]))] += 1
                n += np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def _count_line(data: NDArray[np.uint8], line: np.uint64, size: np.uint64, counts: NDArray[np.unsignedinteger]) -> None:
    document = load_uint16(data, line)
    counts[np.uint16(document)] += 1
    for place in range(np.uint64(2), size):
        gap = np.uint32(data[line + place])
        document += gap
        counts[np.uint16(document)] += gap != np.uint32(binary_postings.SKIP_GAP)


@njit(cache=True, nogil=True)
def _column_maxima(
    values: NDArray[np.integer], n_documents: int, live: NDArray[np.bool_], k: int
) -> NDArray[np.integer]:
    """The highest value in each of at least k columns of documents; empty where k is too large for that."""
    width = 2048 if k <= 128 else 16_384
    maxima = np.zeros(width if k <= width else 0, values.dtype)
    if k > width:
        return maxima
    if len(live):
        for document in range(n_documents):
            column = document % width
            maxima[column] = max(maxima[column], values[document] * live[document])
    else:
        for start in range(np.uint64(0), np.uint64(n_documents), np.uint64(width)):
            for column in range(np.uint64(width)):
                maxima[column] = max(maxima[column], values[start + column])
    return maxima


@njit(cache=True, nogil=True)
def _kth_score(scores: NDArray[np.int32], n_documents: int, live: NDArray[np.bool_], k: int) -> int:
    """A score that at least k documents reach, or 0."""
    maxima = _column_maxima(scores, n_documents, live, k)
    return np.int64(np.partition(maxima, len(maxima) - k)[len(maxima) - k]) if 0 < k <= len(maxima) else np.int64(0)


@njit(cache=True, nogil=True)
def _kth_count(counts: NDArray[np.unsignedinteger], n_documents: int, live: NDArray[np.bool_], k: int) -> int:
    """A count that at least k documents reach, or 0."""
    maxima = _column_maxima(counts, n_documents, live, k)
    if len(maxima) == 0:
        return 0
    histogram = np.zeros(int(maxima.max()) + 1, np.int64)
    for count in maxima:
        histogram[count] += 1
    reached, count = 0, len(histogram)
    while count > 0 and reached < k:
        count -= 1
        reached += histogram[count]
    return count


@njit(cache=True, nogil=True)
def _collect(
    required: int, n_documents: int, live: NDArray[np.bool_], workspace: Workspace, counts: NDArray[np.unsignedinteger]
) -> int:
    """Collects the documents of at least that count, ascending, with their counts; returns how many."""
    n = 0
    for first in range(0, n_documents, LANES):
        bits: Any = np.uint64(0)
        if counts.itemsize == 1:
            bits = bytes_at_least(counts, first, np.uint8(required))
        else:
            for place in range(LANES):
                bits |= np.uint64(counts[first + place] >= required) << np.uint64(place)
        while bits != 0:
            document = first + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            if document < n_documents and (len(live) == 0 or live[document]):
                workspace.candidates[n], workspace.candidate_scores[n] = document, counts[document]
                n += 1
    return n
