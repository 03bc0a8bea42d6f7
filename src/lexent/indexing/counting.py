"""The Numba kernels that count: exact top-k over bare lists, for queries whose concepts all weigh the same.

A document's score is how many of the query's lists it is in, times what each adds. Counts are kept in 8 bits, in 16 for
queries of more than 255 concepts. As in `kernels`, a chunk's short lists are added whole, until the lists that are left
are too few to bring a document without a good start among the best; those with one are looked up in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bare
from lexent.indexing.bits import trailing_zeros, word_at
from lexent.indexing.heap import offer
from lexent.indexing.kernels import DAMAGED, Scratch, gain_of, prepare
from lexent.indexing.packing import CHUNK, Lists, known_in, row_of

UNEQUAL = -3
"""What `top` says of a query whose weights differ, or are negative."""
NARROW = 255
"""Latents of a query that are counted in 8 bits, at most."""
SHARE = 0.6
"""Lists are added until those left are this share of the count to reach: more is less to read, more to look up."""
SEEDS, MANY = 16, 100
"""So many documents, or 2 k if more, are counted early in a chunk, for a count to reach; for k above MANY none are."""


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
    """What `kernels.top` does, for a binary segment and equal weights. counts: [CHUNK], zero between searches."""
    latents, weights, negative = prepare(ids, query, scale, size)
    n_query, k = len(latents), len(best)
    if n_query == 0:
        return 0
    if negative or weights.min() != weights.max():
        return UNEQUAL
    gain = np.int64(gain_of(np.float32(1), weights[0]))
    rows, sizes = np.empty((n_query, 4), np.int64), np.empty(n_query, np.int64)
    for chunk in range(len(lists.chunks) - 1):
        first = lists.chunks[chunk, 0]
        n_documents = lists.chunks[chunk + 1, 0] - first
        live = allowed[first : first + n_documents] if len(allowed) else allowed
        n = _resolve(latents, lists, chunk, rows, sizes)
        if n == DAMAGED:
            return DAMAGED
        # Documents come in order: one that is only as good as the weakest so far is not among the best.
        bar = np.int64(best[0]) // gain + 1 if state[0] == k else 1
        if n < bar:
            continue
        order = np.argsort(sizes[:n])
        done, read, check = 0, 0, n_documents // 2
        while done < n and not (bar > 1 and n - done <= SHARE * bar):
            row = rows[order[done]]
            add(lists.codes, row, counts)
            read += row[1]
            done += 1
            if read >= check:
                check = 2 * read
                bar = max(bar, _reached(lists, rows, order, done, n, n_documents, live, k, scratch, counts))
        if done == n:
            bar = max(bar, _kth(counts, n_documents, live, k))
        n_chosen = _at_least(max(bar - (n - done), 1), n_documents, live, scratch, counts)
        for place in range(n - 1, done - 1, -1):  # bitmaps first
            n_chosen = look_up(lists.codes, rows[order[place]], bar - (place - done), n_chosen, scratch)
        for one in range(n_chosen):
            offer(best, who, state, k, np.int32(scratch.sums[one] * gain), base + first + scratch.chosen[one])
        counts[:] = 0
    return 0


@njit(cache=True, nogil=True)
def _resolve(
    latents: NDArray[np.uint32], lists: Lists, chunk: int, rows: NDArray[np.int64], sizes: NDArray[np.int64]
) -> int:
    """The query's lists in a chunk, and how long they are; gives how many there are."""
    n, known = 0, known_in(lists, chunk)
    first, n_lists = lists.chunks[chunk, 1], lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1]
    for latent in latents:
        row = row_of(known, np.uint64(latent), n_lists)
        if row < 0:
            continue
        if not bare.locate(lists, chunk, first + row, rows[n]):
            return DAMAGED
        sizes[n] = rows[n, 1]
        n += 1
    return n


@njit(cache=True, nogil=True)
def add(data: NDArray[np.uint8], row: NDArray[np.int64], counts: NDArray[np.unsignedinteger]) -> None:
    """Counts a whole list."""
    form, count, start, end, n = row[0], row[1], np.uint64(row[2]), np.uint64(row[3]), np.uint64(0)
    # Indices are unsigned: Numba then leaves out the test for counting from the end.
    if form == bare.STEPS:
        line = start
        while line < end:
            document = np.int64(data[line]) | np.int64(data[line + np.uint64(1)]) << 8
            counts[np.uint16(document)] += 1
            stop = min(line + np.uint64(bare.LINE), end)
            for place in range(line + np.uint64(2), stop):
                step = np.int64(data[place])
                document += step
                counts[np.uint16(document)] += step != bare.SKIP
            line += np.uint64(bare.LINE)
    elif form == bare.BITMAP:
        if counts.itemsize == 1:
            eights = counts.view(np.uint64)
            for place in range(end - start):
                spread = np.uint64(data[start + place]) * np.uint64(0x0101010101010101) & np.uint64(0x8040201008040201)
                spread = (spread + np.uint64(0x7F7F7F7F7F7F7F7F)) >> np.uint64(7)
                eights[place] += spread & np.uint64(0x0101010101010101)
        else:
            for place in range(end - start):
                byte = data[start + place]
                for bit in range(np.uint64(8)):
                    counts[place << np.uint64(3) | bit] += (byte >> bit) & 1
    elif form == bare.PLAIN:
        for entry in range(np.uint64(count)):
            place = start + (entry << np.uint64(1))
            counts[np.uint16(np.int64(data[place]) | np.int64(data[place + np.uint64(1)]) << 8)] += 1
    else:
        low = end - np.uint64(count)
        for place in range(start, low, np.uint64(8)):
            bits: Any = word_at(data, np.int64(place))
            while bits != 0 and n < np.uint64(count):
                block = 8 * np.int64(place - start) + trailing_zeros(bits) - np.int64(n)
                bits &= bits - np.uint64(1)
                counts[np.uint16(block << 8 | np.int64(data[low + n]))] += 1
                n += np.uint64(1)


@njit(cache=True, nogil=True)
def look_up(data: NDArray[np.uint8], row: NDArray[np.int64], needed: int, n: int, scratch: Scratch) -> int:
    """Counts a list for the chosen documents; keeps those of at least `needed`: how many?"""
    chosen, sums, kept = scratch.chosen, scratch.sums, 0
    for one in range(n):
        document, total = chosen[one], sums[one]
        total += bare.holds(data, row, document)
        chosen[kept], sums[kept] = document, total
        kept += total >= needed
    return kept


@njit(cache=True, nogil=True)
def _kth(counts: NDArray[np.unsignedinteger], n_documents: int, live: NDArray[np.bool_], k: int) -> int:
    """A count that k documents have reached: the k-th of the highest of some columns of documents; 0 if unknown."""
    width = 2048 if k <= 128 else 16_384
    if k > width:
        return 0
    highest = np.zeros(width, counts.dtype)
    if len(live):
        for document in range(n_documents):
            column = document % width
            highest[column] = max(highest[column], counts[document] * live[document])
    else:
        for start in range(0, CHUNK, width):
            for column in range(width):
                highest[column] = max(highest[column], counts[start + column])
    many = np.zeros(int(highest.max()) + 1, np.int64)
    for count in highest:
        many[count] += 1
    reached, count = 0, len(many)
    while count > 0 and reached < k:
        count -= 1
        reached += many[count]
    return count


@njit(cache=True, nogil=True)
def _reached(
    lists: Lists,
    rows: NDArray[np.int64],
    order: NDArray[np.int64],
    done: int,
    n: int,
    n_documents: int,
    live: NDArray[np.bool_],
    k: int,
    scratch: Scratch,
    counts: NDArray[np.unsignedinteger],
) -> int:
    """A count that k documents reach: the k-th of the strongest so far, looked up in the lists not yet added."""
    bar = _kth(counts, n_documents, live, k)
    if bar < 2 or k > MANY:
        return bar
    n_seeds = min(_at_least(bar, n_documents, live, scratch, counts), max(SEEDS, 2 * k))
    for place in range(n - 1, done - 1, -1):
        look_up(lists.codes, rows[order[place]], 0, n_seeds, scratch)
    return np.partition(scratch.sums[:n_seeds], n_seeds - k)[n_seeds - k]


@njit(cache=True, nogil=True)
def _at_least(
    needed: int, n_documents: int, live: NDArray[np.bool_], scratch: Scratch, counts: NDArray[np.unsignedinteger]
) -> int:
    """Chooses the documents of at least that count, in order, with their counts; gives how many."""
    flags, n = scratch.flags, 0
    bar = counts.dtype.type(needed)
    for document in range(CHUNK):
        flags[document] = counts[document] >= bar
    eights = flags.view(np.uint64)
    for place in range(len(eights)):
        bits = eights[place]
        if bits == 0:
            continue
        eights[place] = 0
        while bits != 0:
            document = place << 3 | trailing_zeros(bits) >> 3
            bits &= bits - np.uint64(1)
            if document < n_documents and (len(live) == 0 or live[document]):
                scratch.chosen[n], scratch.sums[n] = document, counts[document]
                n += 1
    return n
