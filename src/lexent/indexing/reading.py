"""The Numba kernels that read one list of a chunk: added whole to scores, or asked for some documents."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bare, bitmaps
from lexent.indexing.bits import at_least, fetch, popcount, reaching, spread, trailing_zeros, word_at
from lexent.indexing.gains import gain_of, place_of
from lexent.indexing.hopes import FULL, Hoped, credit
from lexent.indexing.packing import DENSE, EVERY, GAPS, SPARSE, STRIDE
from lexent.indexing.scale import ONE
from lexent.indexing.workspace import DAMAGED, Chunk, Scratch

MANY = 100
"""From so many documents on it is quicker to unpack a bitmap than to look each of them up in it."""


@njit(cache=True, nogil=True)
def choose(needed: int, n_documents: int, live: NDArray[np.bool_], scratch: Scratch) -> int:
    """Chooses the documents of at least that score, in order; gives how many."""
    n, scores = 0, scratch.scores
    for place in range(0, n_documents, 64):
        bits = reaching(scores, place, np.int32(needed))
        while bits != 0:
            document = place + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            if document < n_documents and (len(live) == 0 or live[document]):
                scratch.chosen[n], scratch.sums[n] = document, scores[document]
                n += 1
    return n


@njit(cache=True, nogil=True, forceinline=True)
def scan(here: Chunk, row: NDArray[np.int64], weight: np.float32, scratch: Scratch) -> int:
    """Adds a whole list to the scores of a chunk."""
    gains, scores, lists, shifts, curve = scratch.gains, scratch.scores, here.lists, here.shifts, here.curve
    for place in range(min(row[4] + 1, len(curve))):
        gains[place] = gain_of(curve[place], weight)
    form, count, start = row[0], row[1], row[2]
    # Indices are unsigned: Numba then leaves out the test for counting from the end.
    if form >= bare.PLAIN:
        n = bare.read(lists.codes, row, scratch.documents)
        for d in scratch.documents[:n]:
            scores[d] += gains[place_of(np.int64(ONE), shifts[d])]
        return 0
    if form == GAPS:
        document = np.int64(lists.shorts[start + count]) - (np.int64(lists.shorts[start]) & 255)
        for entry in lists.shorts[start : start + count]:
            document += np.int64(entry) & 255
            d, code = np.uint16(document), np.int64(entry) >> 8
            scores[d] += gains[place_of(code, shifts[d])] * np.int32(code > 0)
        return 0
    if form == EVERY:
        for place in range(0, here.n_documents, 64):
            bits = at_least(lists.codes, row[3] + place, np.uint8(1))
            while bits != 0:
                d = np.uint16(place + trailing_zeros(bits))
                scores[d] += gains[place_of(np.int64(lists.codes[np.uint64(row[3]) + np.uint64(d)]), shifts[d])]
                bits &= bits - np.uint64(1)
        return 0
    codes = lists.codes[row[3] : row[3] + count]
    if form == SPARSE:
        for d, code in zip(lists.shorts[start : start + count], codes):  # noqa: B905  (Numba's zip has no strict)
            scores[d] += gains[place_of(np.int64(code), shifts[d])]
        return 0
    at, place, document = row[2] + bitmaps.head(here.n_documents), np.uint64(0), 0
    for group in range(bitmaps.n_tops(here.n_documents)):
        top, at = word_at(lists.codes, row[2] + 8 * group), min(at, row[3])
        for _ in range(8):
            bits = spread(lists.codes, at, top & np.uint64(255))
            if np.int64(place) + popcount(bits) > count:
                return DAMAGED
            while bits != 0:
                d = np.uint16(document + trailing_zeros(bits))
                scores[d] += gains[place_of(np.int64(codes[place]), shifts[d])]
                bits &= bits - np.uint64(1)
                place += np.uint64(1)
            at += popcount(top & np.uint64(255))
            top >>= np.uint64(8)
            document += 64
    return 0


@njit(cache=True, nogil=True, forceinline=True)
def look_up(here: Chunk, row: NDArray[np.int64], weight: np.float32, needed: int, n: int, scratch: Scratch) -> int:
    """Adds a list to the sums of the chosen documents, which ascend; keeps those of at least `needed`: how many?"""
    chosen, sums, kept = scratch.chosen, scratch.sums, 0
    ask(here, row, n, scratch)
    for one in range(n):
        document, total, code = chosen[one], sums[one], scratch.codes[one]
        if code:
            total += gain_of(here.curve[place_of(code, here.shifts[np.uint16(document)])], weight)
        chosen[kept], sums[kept] = document, total
        kept += total >= needed
    return kept


@njit(cache=True, nogil=True, forceinline=True)
def settle(
    here: Chunk,
    row: NDArray[np.int64],
    weight: np.float32,
    hoped: Hoped,
    number: int,
    needed: int,
    n: int,
    scratch: Scratch,
) -> int:
    """Puts what the chosen documents get from a list in the place of what was hoped for; keeps those of `needed`.

    number: of the list among those hoped for.
    """
    chosen, sums, kept, most = scratch.chosen, scratch.sums, 0, hoped.most[number]
    ask(here, row, n, scratch)
    for one in range(n):
        document, total, code = chosen[one], sums[one], scratch.codes[one]
        d = np.uint16(document)
        full = scratch.hopes[d] == FULL  # it was credited with the most from every list
        if code:
            total += gain_of(here.curve[place_of(code, here.shifts[d])], weight)
        if full or (code and hoped.bases[number] < 0):
            total -= most
        elif code:
            total -= hoped.unit * credit(hoped, number, code, np.int64(here.halves[d]))
        chosen[kept], sums[kept] = document, total
        kept += total >= needed
    return kept


@njit(cache=True, nogil=True)
def ask(here: Chunk, row: NDArray[np.int64], n: int, scratch: Scratch) -> None:
    """Finds the codes of the chosen documents, which ascend, in a list."""
    chosen, codes, lists = scratch.chosen, scratch.codes, here.lists
    form, count, start = row[0], row[1], row[2]
    if form >= bare.PLAIN:
        for one in range(n):
            codes[one] = ONE if bare.holds(lists.codes, row, chosen[one]) else 0
    elif form == EVERY:
        for one in range(n):
            codes[one] = lists.codes[row[3] + chosen[one]]
    elif form == DENSE:  # first where they stand: all are asked for before the first is read
        if n >= MANY:
            bitmaps.find_many(lists.codes, row, here.n_documents, chosen[:n], scratch.bitmap, codes)
        else:
            for one in range(n):
                codes[one] = bitmaps.find(lists.codes, row, here.n_documents, chosen[one])
                fetch(lists.codes, max(codes[one], 0))
        for one in range(n):
            codes[one] = lists.codes[codes[one]] if codes[one] >= 0 else 0
    elif form == SPARSE:
        at, end = start, start + count
        for one in range(n):
            high = end
            while at < high:
                middle = (at + high) >> 1
                if np.int64(lists.shorts[middle]) < chosen[one]:
                    at = middle + 1
                else:
                    high = middle
            there = at < end and np.int64(lists.shorts[at]) == chosen[one]
            codes[one] = lists.codes[row[3] - start + at] if there else 0
    else:
        _ask_gaps(here, row, n, scratch)


@njit(cache=True, nogil=True)
def _ask_gaps(here: Chunk, row: NDArray[np.int64], n: int, scratch: Scratch) -> None:
    shorts, start, marks, last = here.lists.shorts, row[2], row[2] + row[1], (row[1] - 1) // STRIDE
    mark, entry, at = 0, start, np.int64(shorts[marks])
    for one in range(n):
        document = scratch.chosen[one]
        if mark < last and np.int64(shorts[marks + mark + 1]) <= document:
            mark, high = mark + 1, last
            while mark < high:
                middle = (mark + high + 1) >> 1
                if np.int64(shorts[marks + middle]) <= document:
                    mark = middle
                else:
                    high = middle - 1
            entry, at = start + mark * STRIDE, np.int64(shorts[marks + mark])
        while at < document and entry + 1 < marks:
            entry += 1
            at += np.int64(shorts[entry]) & 255
        scratch.codes[one] = np.int64(shorts[entry]) >> 8 if at == document else 0


@njit(cache=True, nogil=True)
def foresee(here: Chunk, row: NDArray[np.int64], n: int, scratch: Scratch) -> None:
    """Asks for what the chosen documents will need of a long list: its parts, about as far in as they are."""
    if row[0] == EVERY:
        for one in range(n):
            fetch(here.lists.codes, row[3] + scratch.chosen[one])
    if row[0] != DENSE:
        return
    data, marks = here.lists.codes, row[2] + 8 * bitmaps.n_tops(here.n_documents)
    low = row[2] + bitmaps.head(here.n_documents)
    for one in range(n):
        document = scratch.chosen[one]
        fetch(data, row[2] + 8 * (document // bitmaps.GROUP))
        fetch(data, marks + 4 * (document // bitmaps.GROUP))
        fetch(data, low + document * (row[3] - low) // here.n_documents)
        fetch(data, row[3] + document * row[1] // here.n_documents)
