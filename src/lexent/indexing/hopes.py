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
from lexent.indexing.bits import WIDE, add_block, add_block_looked_up, add_where, fetch, popcount, spread, word_at
from lexent.indexing.gains import gain_of

FULL = 255
STEPS = 128
"""Places of a table: a weight is looked up at code + half of the document's shift - base."""


def _add_wide(
    data: NDArray[np.uint8],
    row: NDArray[np.int64],
    n_documents: int,
    value: np.uint8,
    hopes: NDArray[np.uint8],
    ahead: int,
    step: int,
) -> None:
    """Adds a value to the hopes of the documents of a list.

    ahead, step: where the list begins that is read next, and how much of it is asked for with each group of documents.
    """
    at = row[2] + bitmaps.head(n_documents)
    for group in range(bitmaps.n_tops(n_documents)):
        top, at = word_at(data, row[2] + 8 * group), min(at, row[3])
        fetch(data, ahead + group * step)
        add_block(hopes, group * bitmaps.GROUP, data, at, top, value)
        at += popcount(top)


def _add_narrow(
    data: NDArray[np.uint8],
    row: NDArray[np.int64],
    n_documents: int,
    value: np.uint8,
    hopes: NDArray[np.uint8],
    ahead: int,
    step: int,
) -> None:
    """The same on any processor."""
    at, document = row[2] + bitmaps.head(n_documents), 0
    for group in range(bitmaps.n_tops(n_documents)):
        top, at = word_at(data, row[2] + 8 * group), min(at, row[3])
        fetch(data, ahead + group * step)
        for _ in range(8):
            which = top & np.uint64(255)
            add_where(hopes, document, spread(data, at, which), value)
            at += popcount(which)
            top >>= np.uint64(8)
            document += 64


add_narrow = njit(cache=True, nogil=True)(_add_narrow)
add = njit(cache=True, nogil=True)(_add_wide) if WIDE else add_narrow


@njit(cache=True, nogil=True)
def add_by_strength(
    data: NDArray[np.uint8],
    row: NDArray[np.int64],
    n_documents: int,
    table: NDArray[np.uint8],
    base: np.uint8,
    halves: NDArray[np.uint8],
    hopes: NDArray[np.uint8],
    ahead: int,
    step: int,
) -> None:
    """Adds what the table says of each document of a list. halves: of the shifts, rounded up. For WIDE processors.

    The rest as in `add`.
    """
    at, code, last = row[2] + bitmaps.head(n_documents), row[3], row[3] + row[1]
    for group in range(bitmaps.n_tops(n_documents)):
        top, at, code = word_at(data, row[2] + 8 * group), min(at, row[3]), min(code, last)
        fetch(data, ahead + group * step)
        fetch(data, ahead + group * step + 64)
        code = add_block_looked_up(hopes, group * bitmaps.GROUP, data, at, top, code, halves, base, table)
        at += popcount(top)


@njit(cache=True, nogil=True)
def tabulate(curve: NDArray[np.float32], highest: int, weight: np.float32, unit: int, table: NDArray[np.uint8]) -> int:
    """Fills the table of a list whose postings stand at `highest` in the curve at most; gives its base."""
    base = min(max((highest + 1) // 2 - STEPS + 1, 0), 255)
    beyond = min(max(highest // 2, 0), 255) - base  # from here on the highest; what is beyond 255 is looked up there
    most, each = np.uint8(units_of(gain_of(curve[highest], weight), unit)), 1.0 / unit
    for step in range(STEPS):
        if step < beyond:
            units = np.int32(gain_of(curve[np.uint16(2 * (base + step))], weight) * each) + 1  # never too few
            table[step] = np.uint8(min(units, FULL))
        else:
            table[step] = most
    return base


@njit(cache=True, nogil=True, inline="always")
def units_of(gain: int, unit: int) -> int:
    return min(gain // unit + 1, FULL)


@njit(cache=True, nogil=True, inline="always")
def looked_up(code: int, half: int, base: int, table: NDArray[np.uint8]) -> int:
    """What `add_by_strength` adds for a posting."""
    return np.int64(table[max(min(code + half, 255) - base, 0) & (STEPS - 1)])
