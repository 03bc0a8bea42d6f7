"""What the documents of a chunk can get from its longest lists at most, 64 documents at a time.

To read those lists posting by posting would take most of a search, and hardly any document gets much from them. Their
bitmaps say at once which documents are in them, and their codes, on processors that can, how strongly. What that is
worth at most is added up in bytes, a byte a document, in units that are rounded up: its hope. FULL stands for itself
and for all that is more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bitmaps
from lexent.indexing.bits import (
    BLOCK,
    SHUFFLES,
    WIDE,
    add_block,
    add_codes,
    add_codes_where,
    add_where,
    at_least,
    fetch,
    in_units,
    peak,
    popcount,
    put,
    spread,
    word_at,
)
from lexent.indexing.gains import gain_of
from lexent.indexing.packing import EVERY
from lexent.indexing.workspace import Asked, Chunk, Scratch

FULL = 255
STEPS = 128
"""Places of a table: a weight is looked up at code + half of the document's shift - base."""
GRAIN = 0 if WIDE else 2
"""How many of the lowest bits of that are left out where many are looked up at a time."""
LOOKS = WIDE or SHUFFLES
"""Whether the processor can look up many at a time."""
TURNS = 4
"""After so many lists each time it is seen which groups of documents may still hope for enough."""
WINDOW = 8192
"""Documents that all lists are asked for before the next ones: their hopes stay in the nearest cache."""


class Hoped(NamedTuple):
    """What documents were credited with: for their scores, and for some long lists."""

    unit: int
    highest: int  # of all hopes
    each: np.float32  # what scores are multiplied by
    most: NDArray[np.int64]  # [n]
    bases: NDArray[np.int64]  # [n], of the tables; -1 where all documents of a list were credited with the most
    tables: NDArray[np.uint8]  # [n, STEPS]


@njit(cache=True, nogil=True)
def nothing() -> Hoped:
    """What documents are credited with for no list."""
    none = np.empty(0, np.int64)
    return Hoped(np.int64(1), np.int64(0), np.float32(1), none, none, np.empty((0, STEPS), np.uint8))


@njit(cache=True, nogil=True)
def add_up(here: Chunk, asked: Asked, strong: int, unit: int, least: int, scratch: Scratch) -> Hoped:
    """The hopes of all documents: their scores, and what they can get from long lists; some are asked for strengths.

    Groups of documents that will not hope for `least` units are not asked of all lists, and hope for too little.
    """
    n, length, hopes = len(asked.rows), bitmaps.n_tops(here.n_documents) * BLOCK, scratch.hopes
    data, rows, halves = here.lists.codes, asked.rows, here.halves
    each = np.float32((1 + 1e-6) / unit)  # never too few
    most, bases, tables, highest = np.empty(n, np.int64), np.full(n, -1), np.empty((n, STEPS), np.uint8), np.int64(0)
    units, ats, codes = np.empty(n, np.uint8), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for one in range(n):
        units[one] = units_of(asked.bounds[one], unit)
        most[one] = max(units[one] * unit, asked.bounds[one])  # so a document of FULL hopes is credited
        if one < strong:
            bases[one] = tabulate(here.curve, rows[one, 4], asked.weights[one], unit, tables[one])
        # Where its bitmap and its codes go on.
        ats[one], codes[one] = rows[one, 2] + bitmaps.head(here.n_documents), rows[one, 3]
    room, total = np.empty(BLOCK, np.uint8), np.int64(units[strong:].sum())
    for window in range(0, length, WINDOW):
        end = min(window + WINDOW, length)
        for place in range(window, end, 64):
            in_units(scratch.scores, place, each, hopes)
        for one in range(strong):
            base, table, at, code = np.uint8(bases[one]), tables[one], ats[one], codes[one]
            for place in range(window, end, BLOCK):
                fetch(data, ats[one + 1] + (place - window) // 8)
                fetch(data, codes[one + 1] + (place - window) // 4)
                fetch(data, codes[one + 1] + (place - window) // 4 + 64)
                if rows[one, 0] == EVERY:
                    add_codes(hopes, place, data, rows[one, 3] + place, halves, base, table)
                    continue
                top, at = word_at(data, rows[one, 2] + place // 64), min(at, rows[one, 3])
                code = min(code, rows[one, 3] + rows[one, 1])
                code = add_by_strength(data, top, at, code, place, halves, base, table, hopes, room)
                at += popcount(top)
            ats[one], codes[one] = at, code
        left, hopeful = total, np.uint64(2**64 - 1)
        for one in range(strong, n):
            if (one - strong) % TURNS == 0 and left < least:
                hopeful = _hopeful(hopes, window, end, np.uint8(least - left))
            at, groups = ats[one], hopeful
            for place in range(window, end, BLOCK):
                top, at = word_at(data, rows[one, 2] + place // 64), min(at, rows[one, 3])
                if groups & np.uint64(1) != 0:
                    fetch(data, ats[one + 1] + (place - window) // 8)
                    add(data, top, at, place, units[one], hopes)
                at += popcount(top)
                groups >>= np.uint64(1)
            ats[one] = at
            left -= units[one]
        for place in range(window, end, 64):
            scratch.peaks[place // 64] = peak(hopes, place)
            highest = max(highest, np.int64(scratch.peaks[place // 64]))
    return Hoped(unit, highest, each, most, bases, tables)


@njit(cache=True, nogil=True, forceinline=True)
def _hopeful(hopes: NDArray[np.uint8], first: int, end: int, least: np.uint8) -> np.uint64:
    """In which groups of BLOCK documents one hopes for so much, as bits."""
    found = np.uint64(0)
    for place in range(first, end, BLOCK):
        for block in range(place, place + BLOCK, 64):
            if at_least(hopes, block, least) != 0:
                found |= np.uint64(1) << np.uint64((place - first) // BLOCK)
                break
    return found


@njit(cache=True, nogil=True, inline="always")
def hope_of(hoped: Hoped, score: np.int32, hope: int) -> int:
    """The most that a document of that score and hope can have."""
    if hope == FULL:
        return np.int64(score) + hoped.most.sum()
    credited = np.int64(np.int32(np.float32(score) * hoped.each)) + (score > 0)
    return np.int64(score) + (hope - credited) * hoped.unit


def _add_wide(
    data: NDArray[np.uint8], top: np.uint64, at: int, place: int, value: np.uint8, hopes: NDArray[np.uint8]
) -> None:
    """Adds a value to the hopes of the documents of a group that are in a list with a bitmap.

    top: which bytes of its bitmap there are for the group, from `at` on. place: the group's first document.
    """
    add_block(hopes, place, data, at, top, value)


def _add_narrow(
    data: NDArray[np.uint8], top: np.uint64, at: int, place: int, value: np.uint8, hopes: NDArray[np.uint8]
) -> None:
    """The same on any processor."""
    for word in range(8):
        which = top & np.uint64(255)
        add_where(hopes, place + 64 * word, spread(data, at, which), value)
        at += popcount(which)
        top >>= np.uint64(8)


add_narrow = njit(cache=True, nogil=True, forceinline=True)(_add_narrow)
add = njit(cache=True, nogil=True, forceinline=True)(_add_wide) if WIDE else add_narrow


def _add_by_strength_wide(
    data: NDArray[np.uint8],
    top: np.uint64,
    at: int,
    code: int,
    place: int,
    halves: NDArray[np.uint8],
    base: np.uint8,
    table: NDArray[np.uint8],
    hopes: NDArray[np.uint8],
    room: NDArray[np.uint8],
) -> int:
    """Adds what a table says of those documents; for processors that can look up. Gives where codes go on.

    code: where those of the group begin. halves: of the documents' shifts, rounded up. room: working memory.
    """
    return add_codes_where(hopes, place, data, at, top, code, halves, base, table)


def _add_by_strength_narrow(
    data: NDArray[np.uint8],
    top: np.uint64,
    at: int,
    code: int,
    place: int,
    halves: NDArray[np.uint8],
    base: np.uint8,
    table: NDArray[np.uint8],
    hopes: NDArray[np.uint8],
    room: NDArray[np.uint8],
) -> int:
    """The same on processors that are not WIDE."""
    for word in range(0, BLOCK, 64):
        bits = spread(data, at, top & np.uint64(255))
        at += popcount(top & np.uint64(255))
        top >>= np.uint64(8)
        for byte in range(0, 64, 8):
            put(room, word + byte, spread(data, code, bits & np.uint64(255)))
            code += popcount(bits & np.uint64(255))
            bits >>= np.uint64(8)
    add_codes(hopes, place, room, 0, halves, base, table)
    return code


add_by_strength = njit(cache=True, nogil=True, forceinline=True)(
    _add_by_strength_wide if WIDE else _add_by_strength_narrow
)


@njit(cache=True, nogil=True)
def tabulate(curve: NDArray[np.float32], highest: int, weight: np.float32, unit: int, table: NDArray[np.uint8]) -> int:
    """Fills the table of a list whose postings stand at `highest` in the curve at most; gives its base."""
    base = min(max((highest + 1) // 2 - STEPS + 1, 0), 255)
    beyond = min(max(highest // 2, 0), 255) - base  # from here on the highest; what is beyond 255 is looked up there
    most, each = np.uint8(units_of(gain_of(curve[highest], weight), unit)), 1.0 / unit
    for place in range(STEPS >> GRAIN):
        step = ((place + 1) << GRAIN) - 1
        if step < beyond:
            units = np.int32(gain_of(curve[np.uint16(2 * (base + step))], weight) * each) + 1  # never too few
            table[place] = np.uint8(min(units, FULL))
        else:
            table[place] = most
    return base


@njit(cache=True, nogil=True, inline="always")
def units_of(gain: int, unit: int) -> int:
    return min(gain // unit + 1, FULL)


@njit(cache=True, nogil=True, inline="always")
def credit(hoped: Hoped, number: int, code: int, half: int) -> int:
    """What a posting of a list with a table is credited with. half: of the document's shift, rounded up."""
    return np.int64(hoped.tables[number, (max(min(code + half, 255) - hoped.bases[number], 0) & (STEPS - 1)) >> GRAIN])
