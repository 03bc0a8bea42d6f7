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
from lexent.indexing.workspace import DAMAGED, Asked, Chunk, Scratch


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


@njit(cache=True, nogil=True)
def look_up(
    here: Chunk,
    asked: Asked,
    order: NDArray[np.int64],
    numbers: NDArray[np.int64],
    needed: NDArray[np.int64],
    hoped: Hoped,
    n: int,
    scratch: Scratch,
) -> int:
    """Adds lists to the sums of the chosen documents, which ascend; gives up those that have too little: how many stay?

    order: the lists, one after the other. numbers: which each of them is of those hoped for, whose part of the sums it
    takes the place of; -1 for others. needed: what a document must have after each.
    """
    # Much is passed one by one here: what is passed as a whole takes longer than a list of few documents.
    chosen, sums, which, codes, hopes = scratch.chosen, scratch.sums, scratch.which, scratch.codes, scratch.hopes
    data, shorts, shifts, halves, curve = here.lists.codes, here.lists.shorts, here.shifts, here.halves, here.curve
    rows, weights, n_documents = asked.rows, asked.weights, here.n_documents
    for turn in range(len(order)):
        if n == 0:
            break
        one, number, after = order[turn], numbers[turn], order[min(turn + 1, len(order) - 1)]
        foresee(data, rows, after, n_documents, chosen, n)
        weight, most = weights[one], hoped.most[number] if number >= 0 else 0
        for place in range(ask(data, shorts, rows, one, n_documents, chosen, n, which, codes)):
            found, code = which[place], codes[place]
            d = np.uint16(chosen[found])
            total = sums[found] + gain_of(curve[place_of(code, shifts[d])], weight)
            if number >= 0 and hopes[d] != FULL:
                exact = hoped.bases[number] >= 0
                total -= hoped.unit * credit(hoped, number, code, np.int64(halves[d])) if exact else most
            sums[found] = total
        if hoped.highest == FULL and number >= 0:
            for place in range(n):  # those were credited with the most from every list
                sums[place] -= most * (hopes[np.uint16(chosen[place])] == FULL)
        kept = 0
        for place in range(n):
            document, total = chosen[place], sums[place]
            chosen[kept], sums[kept] = document, total
            kept += total >= needed[turn]
        n = kept
    return n


@njit(cache=True, nogil=True, forceinline=True)
def ask(
    data: NDArray[np.uint8],
    shorts: NDArray[np.uint16],
    rows: NDArray[np.int64],
    one: int,
    n_documents: int,
    chosen: NDArray[np.int64],
    n: int,
    which: NDArray[np.int64],
    codes: NDArray[np.int64],
) -> int:
    """Finds which of the n chosen documents, which ascend, are in a list, and their codes: how many?"""
    form, start, end, first, found = rows[one, 0], rows[one, 2], rows[one, 2] + rows[one, 1], rows[one, 3], 0
    if form == DENSE:
        found = bitmaps.find_many(data, rows, one, n_documents, chosen, n, which, codes)
        for place in range(found):
            codes[place] = data[codes[place]]
    elif form == EVERY:
        for place in range(n):
            code = data[first + chosen[place]]
            which[found], codes[found] = place, code
            found += code != 0
    elif form == SPARSE:
        at = start
        for place in range(n):
            high = end
            while at < high:
                middle = (at + high) >> 1
                if np.int64(shorts[middle]) < chosen[place]:
                    at = middle + 1
                else:
                    high = middle
            if at < end and np.int64(shorts[at]) == chosen[place]:
                which[found], codes[found] = place, data[first - start + at]
                found += 1
    elif form == GAPS:
        marks, last = end, (end - start - 1) // STRIDE
        mark, entry, at = 0, start, np.int64(shorts[marks])
        for place in range(n):
            document = chosen[place]
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
            code = np.int64(shorts[entry]) >> 8
            which[found], codes[found] = place, code
            found += at == document and code > 0
    else:
        for place in range(n):
            which[found], codes[found] = place, ONE
            found += bare.holds(data, rows[one], chosen[place])
    return found


@njit(cache=True, nogil=True, forceinline=True)
def foresee(
    data: NDArray[np.uint8], rows: NDArray[np.int64], one: int, n_documents: int, chosen: NDArray[np.int64], n: int
) -> None:
    """Asks for what the chosen documents will need of a long list: its parts, about as far in as they are."""
    form, start, codes = rows[one, 0], rows[one, 2], rows[one, 3]
    if form == EVERY:
        for place in range(n):
            fetch(data, codes + chosen[place])
    if form != DENSE:
        return
    marks, low = start + 8 * bitmaps.n_tops(n_documents), start + bitmaps.head(n_documents)
    of_bytes, of_codes = (codes - low) / n_documents, rows[one, 1] / n_documents
    for place in range(n):
        document = chosen[place]
        fetch(data, start + 8 * (document // bitmaps.GROUP))
        fetch(data, marks + 4 * (document // bitmaps.GROUP))
        fetch(data, low + np.int64(document * of_bytes))
        fetch(data, codes + np.int64(document * of_codes))
