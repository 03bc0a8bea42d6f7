"""The Numba kernels that read one list of a chunk: added whole to scores, or asked for some documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bare, bitmaps, hopes
from lexent.indexing.bits import fetch
from lexent.indexing.gains import gain_of, place_of
from lexent.indexing.packing import DENSE, GAPS, SPARSE, STRIDE, Lists
from lexent.indexing.scale import ONE

DAMAGED = -1
"""What kernels say of a damaged list instead of giving a result."""
MANY = 100
"""From so many documents on it is quicker to unpack a bitmap than to look each of them up in it."""


class Chunk(NamedTuple):
    """A chunk that is searched. Arrays have a place for each document that a chunk can name."""

    lists: Lists
    n_documents: int
    shifts: NDArray[np.uint8]
    halves: NDArray[np.uint8]  # of the shifts, rounded up
    curve: NDArray[np.float32]


class Scratch(NamedTuple):
    """Working memory of one search at a time; `scores` is zero between searches."""

    scores: NDArray[np.int32]  # [CHUNK]
    gains: NDArray[np.int32]  # [768]
    chosen: NDArray[np.int64]  # [CHUNK]
    sums: NDArray[np.int64]  # [CHUNK]
    places: NDArray[np.int64]  # [CHUNK]
    hopes: NDArray[np.uint8]  # [CHUNK], zero between searches
    bitmap: NDArray[np.uint64]  # [bitmaps.WORDS], of one list
    documents: NDArray[np.uint16]  # [bare.MOST], of one list
    narrow: NDArray[np.uint8]  # [CHUNK] in a binary index, zero between searches: counts
    wide: NDArray[np.uint16]  # the same for queries of many latents


class Hope(NamedTuple):
    """What documents were credited with for a list."""

    unit: int
    most: int
    base: int  # -1 where all its documents were credited with the most
    table: NDArray[np.uint8]


@njit(cache=True, nogil=True, forceinline=True)
def scan(here: Chunk, row: NDArray[np.int64], weight: np.float32, scratch: Scratch) -> int:
    """Adds a whole list to the scores of a chunk."""
    gains, scores, lists, shifts, curve = scratch.gains, scratch.scores, here.lists, here.shifts, here.curve
    for place in range(len(curve)):
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
    codes = lists.codes[row[3] : row[3] + count]
    if form == SPARSE:
        for d, code in zip(lists.shorts[start : start + count], codes):  # noqa: B905  (Numba's zip has no strict)
            scores[d] += gains[place_of(np.int64(code), shifts[d])]
        return 0
    n = bitmaps.unpack(lists.codes, row, here.n_documents, scratch.documents)
    if n > count:
        return DAMAGED
    for d, code in zip(scratch.documents[:n], codes):  # noqa: B905
        scores[d] += gains[place_of(np.int64(code), shifts[d])]
    return 0


@njit(cache=True, nogil=True, forceinline=True)
def look_up(
    here: Chunk,
    row: NDArray[np.int64],
    weight: np.float32,
    needed: int,
    n: int,
    scratch: Scratch,
) -> int:
    """Adds a list to the sums of the chosen documents, which ascend; keeps those of at least `needed`: how many?"""
    chosen, sums, lists, shifts, curve = scratch.chosen, scratch.sums, here.lists, here.shifts, here.curve
    form, count, start, kept = row[0], row[1], row[2], 0
    if form >= bare.PLAIN:
        for one in range(n):
            document, total = chosen[one], sums[one]
            if bare.holds(lists.codes, row, document):
                total += gain_of(curve[place_of(np.int64(ONE), shifts[np.uint16(document)])], weight)
            chosen[kept], sums[kept] = document, total
            kept += total >= needed
        return kept
    if form == DENSE:
        _ask(here, row, n, scratch)
        for one in range(n):
            document, total, place = chosen[one], sums[one], scratch.places[one]
            if place >= 0:
                total += gain_of(curve[place_of(np.int64(lists.codes[place]), shifts[np.uint16(document)])], weight)
            chosen[kept], sums[kept] = document, total
            kept += total >= needed
        return kept
    if form == SPARSE:
        codes, at, end = row[3] - start, start, start + count
        for one in range(n):
            document, total, high = chosen[one], sums[one], end
            while at < high:
                middle = (at + high) >> 1
                if np.int64(lists.shorts[middle]) < document:
                    at = middle + 1
                else:
                    high = middle
            if at < end and np.int64(lists.shorts[at]) == document:
                code = np.int64(lists.codes[codes + at])
                total += gain_of(curve[place_of(code, shifts[np.uint16(document)])], weight)
            chosen[kept], sums[kept] = document, total
            kept += total >= needed
        return kept
    marks, last = start + count, (count - 1) // STRIDE
    mark, entry, at = 0, start, np.int64(lists.shorts[marks])
    for one in range(n):
        document, total = chosen[one], sums[one]
        if mark < last and np.int64(lists.shorts[marks + mark + 1]) <= document:
            mark, high = mark + 1, last
            while mark < high:
                middle = (mark + high + 1) >> 1
                if np.int64(lists.shorts[marks + middle]) <= document:
                    mark = middle
                else:
                    high = middle - 1
            entry, at = start + mark * STRIDE, np.int64(lists.shorts[marks + mark])
        while at < document and entry + 1 < marks:
            entry += 1
            at += np.int64(lists.shorts[entry]) & 255
        code = np.int64(lists.shorts[entry]) >> 8
        if at == document and code:
            total += gain_of(curve[place_of(code, shifts[np.uint16(document)])], weight)
        chosen[kept], sums[kept] = document, total
        kept += total >= needed
    return kept


@njit(cache=True, nogil=True, forceinline=True)
def _ask(here: Chunk, row: NDArray[np.int64], n: int, scratch: Scratch) -> None:
    """Finds the codes of the chosen documents in a list with a bitmap. All are asked for before the first is read."""
    if n >= MANY:
        chosen = scratch.chosen[:n]
        bitmaps.find_many(here.lists.codes, row, here.n_documents, chosen, scratch.bitmap, scratch.places)
        return
    for one in range(n):
        place = bitmaps.find(here.lists.codes, row, here.n_documents, scratch.chosen[one])
        scratch.places[one] = place
        fetch(here.lists.codes, max(place, 0))


@njit(cache=True, nogil=True, forceinline=True)
def foresee(here: Chunk, row: NDArray[np.int64], n: int, scratch: Scratch) -> None:
    """Asks for what the chosen documents will need of a list with a bitmap: its parts, about as far in as they are."""
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


@njit(cache=True, nogil=True, forceinline=True)
def settle(
    here: Chunk, row: NDArray[np.int64], weight: np.float32, hope: Hope, needed: int, n: int, scratch: Scratch
) -> int:
    """Puts what the chosen documents get from a list in the place of what was hoped for; keeps those of `needed`."""
    chosen, sums, kept = scratch.chosen, scratch.sums, 0
    _ask(here, row, n, scratch)
    for one in range(n):
        document, total, place = chosen[one], sums[one], scratch.places[one]
        d = np.uint16(document)
        full = scratch.hopes[d] == hopes.FULL  # it was credited with the most from every list
        if place >= 0:
            code = np.int64(here.lists.codes[place])
            total += gain_of(here.curve[place_of(code, here.shifts[d])], weight)
        if full or (place >= 0 and hope.base < 0):
            total -= hope.most
        elif place >= 0:
            total -= hope.unit * hopes.looked_up(code, np.int64(here.halves[d]), hope.base, hope.table)
        chosen[kept], sums[kept] = document, total
        kept += total >= needed
    return kept
