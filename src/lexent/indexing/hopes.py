"""What the documents of a chunk can get from its longest lists at most, 64 documents at a time.

To read those lists posting by posting would take most of a search, and hardly any document gets much from them. Their
bitmaps say at once which documents are in them, and their codes, on processors that can, how strongly. What that is
worth at most is added up in bytes, a byte a document, in units that are rounded up: its hope. FULL stands for itself
and for all that is more.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bitmaps
from lexent.indexing.bits import add_where, add_where_looked_up, popcount, spread, word_at
from lexent.indexing.gains import gain_of

FULL = 255
STEPS = 128
"""Places of a table: a weight is looked up at code + half of the document's shift - base."""


@njit(cache=True, nogil=True)
def add(
    data: NDArray[np.uint8], row: NDArray[np.int64], n_documents: int, value: np.uint8, hopes: NDArray[np.uint8]
) -> None:
    """Adds a value to the hopes of the documents of a list."""
    at, document = row[2] + bitmaps.head(n_documents), 0
    for group in range(bitmaps.n_tops(n_documents)):
        top, at = word_at(data, row[2] + 8 * group), min(at, row[3])
        for _ in range(8):
            which = top & np.uint64(255)
            add_where(hopes, document, spread(data, at, which), value)
            at += popcount(which)
            top >>= np.uint64(8)
            document += 64


@njit(cache=True, nogil=True)
def add_by_strength(
    data: NDArray[np.uint8],
    row: NDArray[np.int64],
    n_documents: int,
    table: NDArray[np.uint8],
    base: np.uint8,
    halves: NDArray[np.uint8],
    hopes: NDArray[np.uint8],
) -> None:
    """Adds what the table says of each document of a list; halves: of the shifts, rounded up."""
    at, document, code, last = row[2] + bitmaps.head(n_documents), 0, row[3], row[3] + row[1]
    for group in range(bitmaps.n_tops(n_documents)):
        top, at = word_at(data, row[2] + 8 * group), min(at, row[3])
        for _ in range(8):
            which = top & np.uint64(255)
            bits = spread(data, at, which)
            add_where_looked_up(hopes, document, bits, data, min(code, last), halves, base, table)
            code += popcount(bits)
            at += popcount(which)
            top >>= np.uint64(8)
            document += 64


@njit(cache=True, nogil=True)
def tabulate(curve: NDArray[np.float32], highest: int, weight: np.float32, unit: int, table: NDArray[np.uint8]) -> int:
    """Fills the table of a list whose postings stand at `highest` in the curve at most; gives its base."""
    base = min(max((highest + 1) // 2 - STEPS + 1, 0), 255)
    for step in range(STEPS):
        # What is beyond 255 is looked up at 255.
        place = min(2 * (base + step), highest) if base + step < 255 else highest
        table[step] = units_of(gain_of(curve[place], weight), unit)
    return base


@njit(cache=True, nogil=True, inline="always")
def units_of(gain: int, unit: int) -> int:
    return min(gain // unit + 1, FULL)


@njit(cache=True, nogil=True, inline="always")
def looked_up(code: int, half: int, base: int, table: NDArray[np.uint8]) -> int:
    """What `add_by_strength` adds for a posting."""
    return np.int64(table[max(min(code + half, 255) - base, 0) & (STEPS - 1)])
