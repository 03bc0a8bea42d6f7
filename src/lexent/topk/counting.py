"""The Numba kernels that count: exact top-k over bare lists, for queries whose concepts have few different weights.

A document's score is how many of the query's lists it is in, times what each adds; where weights differ, the sum of
that over the weights. Counts are kept in 8 bits, in 16 for queries of more than 255 concepts. All lists are read whole:
to leave out the longest, and look the best documents up in them, takes longer than it spares.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bare
from lexent.indexing.bare import short_at
from lexent.indexing.bits import BLOCK, LANES, add_bitmaps, at_least, fetch, trailing_zeros, word_at
from lexent.indexing.gains import gain_of
from lexent.indexing.heap import offer
from lexent.indexing.kernels import prepare
from lexent.indexing.packing import CHUNK, Lists, known_in, row_of
from lexent.indexing.reading import choose
from lexent.indexing.workspace import DAMAGED, Scratch

UNEQUAL = -3
"""What `top` says of a query of too many different weights, or negative ones."""
GROUPS = 8
"""Different weights, at most: of buckets, and of steered concepts."""
NARROW = 255
"""Latents of a query that are counted in 8 bits, at most."""
STRETCH = BLOCK // 8
"""Bytes of bitmaps that are added at a time."""


@njit(cache=True, nogil=True)
def top(
    ids: NDArray[np.int32],
    query: NDArray[np.float32],
    scale: float,
    size: int,
    lists: Lists,
    allowed: NDArray[np.bool_],
    base: int,
    best: NDArray[np.int32],
    who: NDArray[np.int64],
    state: NDArray[np.int64],
    scratch: Scratch,
    counts: NDArray[np.unsignedinteger],
) -> int:
    """What `kernels.top` does, for a binary segment and few different weights. counts: [CHUNK], zero between calls."""
    latents, weights, negative = prepare(ids, query, scale, size)
    if negative:
        return UNEQUAL
    ends = _groups(weights)
    if len(ends) > 2:
        order = np.argsort(weights, kind="mergesort")
        latents, weights = latents[order], weights[order]
        ends = _groups(weights)
    n_groups, k = len(ends) - 1, len(best)
    if n_groups > GROUPS:
        return UNEQUAL
    gains = np.empty(n_groups, np.int64)
    for group in range(n_groups):
        gains[group] = gain_of(np.float32(1), weights[ends[group]])
    rows, sizes = np.empty((len(latents), 4), np.int64), np.empty(n_groups, np.int64)
    for chunk in range(len(lists.chunks) - 1):
        first = lists.chunks[chunk, 0]
        n_documents = lists.chunks[chunk + 1, 0] - first
        live = allowed[first : first + n_documents] if len(allowed) else allowed
        most = 0
        for group in range(n_groups):
            start, end = ends[group], ends[group + 1]
            sizes[group] = _resolve(latents[start:end], lists, chunk, rows[start:end])
            if sizes[group] == DAMAGED:
                return DAMAGED
            most += sizes[group] * gains[group]
        # Documents come in order: one that is only as good as the weakest so far is not among the best.
        bar = np.int64(best[0]) + 1 if state[0] == k else np.int64(1)
        if most < bar:
            continue
        if n_groups == 1:
            add_all(lists.codes, rows[: sizes[0]], counts)
            gain = gains[0]
            bar = max((bar + gain - 1) // gain, _kth_count(counts, n_documents, live, k))
            n_chosen = _at_least(bar, n_documents, live, scratch, counts)
        else:
            gain = np.int64(1)
            for group in range(n_groups):
                add_all(lists.codes, rows[ends[group] : ends[group] + sizes[group]], counts)
                worth = np.int32(gains[group])
                for document in range(CHUNK):
                    scratch.scores[document] += np.int32(counts[document]) * worth
                    counts[document] = 0
            n_chosen = choose(max(bar, _kth_score(scratch.scores, n_documents, live, k)), n_documents, live, scratch)
            scratch.scores[:] = 0
        for one in range(n_chosen):
            offer(best, who, state, k, np.int32(scratch.sums[one] * gain), base + first + scratch.chosen[one])
        counts[:] = 0
    return 0


@njit(cache=True, nogil=True)
def _groups(weights: NDArray[np.float32]) -> NDArray[np.int64]:
    """Where each run of equal weights begins, and the end of the last."""
    ends, n = np.zeros(len(weights) + 1, np.int64), 0
    for place in range(len(weights)):
        if place == 0 or weights[place] != weights[place - 1]:
            ends[n] = place
            n += 1
    ends[n] = len(weights)
    return ends[: n + 1]


@njit(cache=True, nogil=True)
def _resolve(latents: NDArray[np.uint32], lists: Lists, chunk: int, rows: NDArray[np.int64]) -> int:
    """The query's lists in a chunk; gives how many there are."""
    n, known = 0, known_in(lists, chunk)
    first, n_lists = lists.chunks[chunk, 1], lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1]
    for latent in latents:
        row = row_of(known, np.uint64(latent), n_lists)
        if row < 0:
            continue
        if not bare.locate(lists, chunk, first + row, rows[n]):
            return DAMAGED
        if rows[n, 0] != bare.BITMAP:  # those are read from one end to the other, which processors foresee
            for place in range(rows[n, 2], rows[n, 3], 64):
                fetch(lists.codes, place)
        n += 1
    return n


@njit(cache=True, nogil=True)
def add_all(data: NDArray[np.uint8], rows: NDArray[np.int64], counts: NDArray[np.unsignedinteger]) -> None:
    """Counts lists, each whole; bitmaps several at a time."""
    starts, n, bitmap, at = np.empty(len(rows), np.int64), 0, 0, 0
    for row in rows:
        if row[0] == bare.BITMAP and counts.itemsize == 1:
            starts[n], bitmap = row[2], row[3] - row[2]
            n += 1
        else:
            add(data, row, counts)
    # The more at a time, the less each costs: these are the numbers of which sums fill their digits.
    while n - at >= 31:
        for place in range(0, bitmap, STRETCH):
            add_bitmaps(counts, data, starts, at, 31, place)
        at += 31
    while n - at >= 15:
        for place in range(0, bitmap, STRETCH):
            add_bitmaps(counts, data, starts, at, 15, place)
        at += 15
    while n - at >= 7:
        for place in range(0, bitmap, STRETCH):
            add_bitmaps(counts, data, starts, at, 7, place)
        at += 7
    while n - at >= 3:
        for place in range(0, bitmap, STRETCH):
            add_bitmaps(counts, data, starts, at, 3, place)
        at += 3
    while n - at >= 1:
        for place in range(0, bitmap, STRETCH):
            add_bitmaps(counts, data, starts, at, 1, place)
        at += 1


@njit(cache=True, nogil=True)
def add(data: NDArray[np.uint8], row: NDArray[np.int64], counts: NDArray[np.unsignedinteger]) -> None:
    """Counts a whole list."""
    form, count, start, end, n = row[0], row[1], np.uint64(row[2]), np.uint64(row[3]), np.uint64(0)
    # Indices are unsigned: Numba then leaves out the test for counting from the end.
    if form == bare.STEPS:
        for line in range(start, end, np.uint64(bare.LINE)):
            if line + np.uint64(bare.LINE) <= end:  # so many steps are known when this is compiled: quicker
                _add_line(data, line, np.uint64(bare.LINE), counts)
            else:
                _add_line(data, line, end - line, counts)
    elif form == bare.BITMAP:
        for place in range(end - start):
            byte = data[start + place]
            for bit in range(np.uint64(8)):
                counts[place << np.uint64(3) | bit] += (byte >> bit) & 1
    elif form == bare.PLAIN:
        for entry in range(np.uint64(count)):
            place = start + (entry << np.uint64(1))
            counts[np.uint16(short_at(data, place))] += 1
    else:
        low = end - np.uint64(count)
        for place in range(start, low, np.uint64(8)):
            bits: Any = word_at(data, np.int64(place))
            while bits != 0 and n < np.uint64(count):
                block = 8 * np.int64(place - start) + trailing_zeros(bits) - np.int64(n)
                bits &= bits - np.uint64(1)
                counts[np.uint16(block << 8 | np.int64(data[low + n]))] += 1
                n += np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def _add_line(data: NDArray[np.uint8], line: np.uint64, size: np.uint64, counts: NDArray[np.unsignedinteger]) -> None:
    document = short_at(data, line)
    counts[np.uint16(document)] += 1
    for place in range(np.uint64(2), size):
        step = np.uint32(data[line + place])
        document += step
        counts[np.uint16(document)] += step != np.uint32(bare.SKIP)


@njit(cache=True, nogil=True)
def _highest(values: NDArray[np.integer], n_documents: int, live: NDArray[np.bool_], k: int) -> NDArray[np.integer]:
    """The highest value of each of some columns of documents, k or more; none where those would be too many."""
    width = 2048 if k <= 128 else 16_384
    highest = np.zeros(width if k <= width else 0, values.dtype)
    if k > width:
        return highest
    if len(live):
        for document in range(n_documents):
            column = document % width
            highest[column] = max(highest[column], values[document] * live[document])
    else:
        for start in range(np.uint64(0), np.uint64(n_documents), np.uint64(width)):
            for column in range(np.uint64(width)):
                highest[column] = max(highest[column], values[start + column])
    return highest


@njit(cache=True, nogil=True)
def _kth_score(scores: NDArray[np.int32], n_documents: int, live: NDArray[np.bool_], k: int) -> int:
    """A score that k documents have reached, or 0."""
    highest = _highest(scores, n_documents, live, k)
    return np.int64(np.partition(highest, len(highest) - k)[len(highest) - k]) if 0 < k <= len(highest) else np.int64(0)


@njit(cache=True, nogil=True)
def _kth_count(counts: NDArray[np.unsignedinteger], n_documents: int, live: NDArray[np.bool_], k: int) -> int:
    """A count that k documents have reached, or 0."""
    highest = _highest(counts, n_documents, live, k)
    if len(highest) == 0:
        return 0
    many = np.zeros(int(highest.max()) + 1, np.int64)
    for count in highest:
        many[count] += 1
    reached, count = 0, len(many)
    while count > 0 and reached < k:
        count -= 1
        reached += many[count]
    return count


@njit(cache=True, nogil=True)
def _at_least(
    needed: int, n_documents: int, live: NDArray[np.bool_], scratch: Scratch, counts: NDArray[np.unsignedinteger]
) -> int:
    """Chooses the documents of at least that count, in order, with their counts; gives how many."""
    n = 0
    for first in range(0, n_documents, LANES):
        bits: Any = np.uint64(0)
        if counts.itemsize == 1:
            bits = at_least(counts, first, np.uint8(needed))
        else:
            for place in range(LANES):
                bits |= np.uint64(counts[first + place] >= needed) << np.uint64(place)
        while bits != 0:
            document = first + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            if document < n_documents and (len(live) == 0 or live[document]):
                scratch.chosen[n], scratch.sums[n] = document, counts[document]
                n += 1
    return n
