"""Upper bounds of the scores of a chunk's documents, quantised to 8 bits and computed 64 documents at a time.

Reading the longest posting lists posting by posting would take most of a search, although hardly any document gets much
from them. Instead, their bitmaps say which documents are in them, and a table turns their codes into bounds where the
processor has the instructions. Bounds are summed in one byte a document, in units that are rounded up. A byte of
SATURATED stands for that many units or more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings import bitmaps
from lexent.indexing.postings.descriptor import CODES, ENCODING, ENTRIES, MAX_POSITION, START
from lexent.indexing.postings.layout import CODE_ARRAY
from lexent.indexing.postings.quantisation import NARROW_SHIFT_OFFSET
from lexent.indexing.postings.simd import (
    AVX2,
    AVX512,
    BLOCK_DOCUMENTS,
    add_table_bytes,
    add_table_bytes_where_bitmap,
    add_where_bitmap,
    add_where_set,
    bytes_at_least,
    expand_bytes,
    load_word,
    max_byte,
    popcount,
    prefetch,
    quantise_scores,
    store_word,
)
from lexent.jit import njit
from lexent.topk.impacts import contribution
from lexent.topk.workspace import Chunk, QueryTerms, Workspace

SATURATED = 255
"""The highest 8-bit upper bound; the true one may be higher."""
TABLE_SIZE = 128
"""Entries of a code table: a bound stands at code + half of the document's shift - base, clipped to the table."""
GRANULARITY_BITS = 0 if AVX512 else 2
"""Lowest bits of that index that are dropped, so that the table fits the lookup instruction."""
HAS_TABLE_LOOKUP = AVX512 or AVX2
"""Whether the processor looks up many bytes in a table at once."""
LISTS_PER_CHECK = 4
"""After this many lists, blocks in which no document can reach the threshold are skipped."""
WINDOW_DOCUMENTS = 8192
"""Documents for which all lists are processed before the next ones, so that their bounds stay in the L1 cache."""


class UpperBounds(NamedTuple):
    """How the upper bounds of documents were made from their accumulators and from n long posting lists."""

    unit: int  # of the quantised bounds
    highest: int  # quantised bound of any document
    score_scale: np.float32  # units per point of an accumulator
    list_maxima: NDArray[np.int64]  # [n]: what a list adds to the bound of a document, at most
    bases: NDArray[np.int64]  # [n], of the code tables; -1 where all documents of a list got its maximum
    tables: NDArray[np.uint8]  # [n, TABLE_SIZE]: bounds by code


@njit(cache=True, nogil=True)
def no_bounds() -> UpperBounds:
    """The upper bounds of no list."""
    none = np.empty(0, np.int64)
    return UpperBounds(np.int64(1), np.int64(0), np.float32(1), none, none, np.empty((0, TABLE_SIZE), np.uint8))


@njit(cache=True, nogil=True)
def compute(
    chunk: Chunk, terms: QueryTerms, n_by_code: int, unit: int, least: int, workspace: Workspace
) -> UpperBounds:
    """Computes the upper bounds of all documents: their accumulators, and what long lists can add.

    The first n_by_code lists add bounds by code, the others their maximum. Blocks of documents that cannot reach
    `least` units are skipped in some lists: their bounds are too low.
    """
    n, length = len(terms.descriptors), bitmaps.n_groups(chunk.n_documents) * BLOCK_DOCUMENTS
    bounds = workspace.upper_bounds
    data, lists, half_shifts = chunk.lists.codes, terms.descriptors, chunk.half_shifts
    score_scale = np.float32((1 + 1e-6) / unit)  # never too few units
    list_maxima, bases, tables = np.empty(n, np.int64), np.full(n, -1), np.empty((n, TABLE_SIZE), np.uint8)
    highest = np.int64(0)
    units, next_bytes, next_codes = np.empty(n, np.uint8), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for one in range(n):
        units[one] = bound_units(terms.upper_bounds[one], unit)
        list_maxima[one] = max(units[one] * unit, terms.upper_bounds[one])  # for documents of saturated bounds
        if one < n_by_code:
            bases[one] = fill_code_table(chunk.curve, lists[one, MAX_POSITION], terms.weights[one], unit, tables[one])
        next_bytes[one] = lists[one, START] + bitmaps.header_bytes(chunk.n_documents)
        next_codes[one] = lists[one, CODES]
    buffer, total = np.empty(BLOCK_DOCUMENTS, np.uint8), np.int64(units[n_by_code:].sum())
    for window in range(0, length, WINDOW_DOCUMENTS):
        end = min(window + WINDOW_DOCUMENTS, length)
        for place in range(window, end, 64):
            quantise_scores(workspace.accumulators, place, score_scale, bounds)
        for one in range(n_by_code):
            base, table, at, code = np.uint8(bases[one]), tables[one], next_bytes[one], next_codes[one]
            for place in range(window, end, BLOCK_DOCUMENTS):
                prefetch(data, next_bytes[one + 1] + (place - window) // 8)
                prefetch(data, next_codes[one + 1] + (place - window) // 4)
                prefetch(data, next_codes[one + 1] + (place - window) // 4 + 64)
                if lists[one, ENCODING] == CODE_ARRAY:
                    add_table_bytes(bounds, place, data, lists[one, CODES] + place, half_shifts, base, table)
                    continue
                nonzero, at = load_word(data, lists[one, START] + place // 64), min(at, lists[one, CODES])
                code = min(code, lists[one, CODES] + lists[one, ENTRIES])
                code = add_code_bounds(data, nonzero, at, code, place, half_shifts, base, table, bounds, buffer)
                at += popcount(nonzero)
            next_bytes[one], next_codes[one] = at, code
        remaining, reaching = total, np.uint64(2**64 - 1)
        for one in range(n_by_code, n):
            if (one - n_by_code) % LISTS_PER_CHECK == 0 and remaining < least:
                reaching = _blocks_reaching(bounds, window, end, np.uint8(least - remaining))
            at, blocks = next_bytes[one], reaching
            for place in range(window, end, BLOCK_DOCUMENTS):
                nonzero, at = load_word(data, lists[one, START] + place // 64), min(at, lists[one, CODES])
                if blocks & np.uint64(1) != 0:
                    prefetch(data, next_bytes[one + 1] + (place - window) // 8)
                    add_list_bound(data, nonzero, at, place, units[one], bounds)
                at += popcount(nonzero)
                blocks >>= np.uint64(1)
            next_bytes[one] = at
            remaining -= units[one]
        for place in range(window, end, 64):
            workspace.block_maxima[place // 64] = max_byte(bounds, place)
            highest = max(highest, np.int64(workspace.block_maxima[place // 64]))
    return UpperBounds(unit, highest, score_scale, list_maxima, bases, tables)


@njit(cache=True, nogil=True, forceinline=True)
def _blocks_reaching(bounds: NDArray[np.uint8], first: int, end: int, least: np.uint8) -> np.uint64:
    """Which blocks of BLOCK_DOCUMENTS have a document whose bound reaches `least`, as bits."""
    found = np.uint64(0)
    for place in range(first, end, BLOCK_DOCUMENTS):
        for block in range(place, place + BLOCK_DOCUMENTS, 64):
            if bytes_at_least(bounds, block, least) != 0:
                found |= np.uint64(1) << np.uint64((place - first) // BLOCK_DOCUMENTS)
                break
    return found


@njit(cache=True, nogil=True, inline="always")
def score_bound(bounds: UpperBounds, score: np.int32, bound: int) -> int:
    """Upper bound of the score of a document, from its accumulator and its quantised bound."""
    if bound == SATURATED:
        return np.int64(score) + bounds.list_maxima.sum()
    score_units = np.int64(np.int32(np.float32(score) * bounds.score_scale)) + (score > 0)
    return np.int64(score) + (bound - score_units) * bounds.unit


@njit(cache=True, nogil=True, forceinline=True)
def add_list_bound(
    data: NDArray[np.uint8], nonzero: np.uint64, at: int, place: int, value: np.uint8, bounds: NDArray[np.uint8]
) -> None:
    """Adds a value to the bounds of the documents of a block that are in a list with a bitmap.

    nonzero: which bytes of the block's bitmap are stored, from `at` on. place: the block's first document.
    """
    if AVX512:
        add_where_bitmap(bounds, place, data, at, nonzero, value)
    else:
        add_list_bound_portable(data, nonzero, at, place, value, bounds)


@njit(cache=True, nogil=True, forceinline=True)
def add_list_bound_portable(
    data: NDArray[np.uint8], nonzero: np.uint64, at: int, place: int, value: np.uint8, bounds: NDArray[np.uint8]
) -> None:
    """`add_list_bound` for any processor."""
    for word in range(8):
        stored = nonzero & np.uint64(255)
        add_where_set(bounds, place + 64 * word, expand_bytes(data, at, stored), value)
        at += popcount(stored)
        nonzero >>= np.uint64(8)


@njit(cache=True, nogil=True, forceinline=True)
def add_code_bounds(
    data: NDArray[np.uint8],
    nonzero: np.uint64,
    at: int,
    code: int,
    place: int,
    half_shifts: NDArray[np.uint8],
    base: np.uint8,
    table: NDArray[np.uint8],
    bounds: NDArray[np.uint8],
    buffer: NDArray[np.uint8],
) -> int:
    """Adds the table's bounds of their codes to those documents; returns where the next block's codes begin.

    code: where the block's codes begin. buffer: working memory. Needs HAS_TABLE_LOOKUP.
    """
    if AVX512:  # a constant: the other branch is not compiled
        return add_table_bytes_where_bitmap(bounds, place, data, at, nonzero, code, half_shifts, base, table)
    for word in range(0, BLOCK_DOCUMENTS, 64):
        bits = expand_bytes(data, at, nonzero & np.uint64(255))
        at += popcount(nonzero & np.uint64(255))
        nonzero >>= np.uint64(8)
        for byte in range(0, 64, 8):
            store_word(buffer, word + byte, expand_bytes(data, code, bits & np.uint64(255)))
            code += popcount(bits & np.uint64(255))
            bits >>= np.uint64(8)
    add_table_bytes(bounds, place, buffer, 0, half_shifts, base, table)
    return code


@njit(cache=True, nogil=True)
def fill_code_table(
    curve: NDArray[np.float32], max_position: int, weight: np.float32, unit: int, table: NDArray[np.uint8]
) -> int:
    """Fills the code table of a list whose postings stand at `max_position` in the curve at most; returns its base."""
    narrow = max_position - NARROW_SHIFT_OFFSET
    base = min(max((narrow + 1) // 2 - TABLE_SIZE + 1, 0), 255)
    last = min(max(narrow // 2, 0), 255) - base  # from here on the maximum: indices above 255 are clipped to it
    maximum, scale = np.uint8(bound_units(contribution(curve[max_position], weight), unit)), 1.0 / unit
    for place in range(TABLE_SIZE >> GRANULARITY_BITS):
        step = ((place + 1) << GRANULARITY_BITS) - 1
        if step < last:
            impact = curve[np.uint16(NARROW_SHIFT_OFFSET + 2 * (base + step))]
            units = np.int32(contribution(impact, weight) * scale) + 1  # never too few
            table[place] = np.uint8(min(units, SATURATED))
        else:
            table[place] = maximum
    return base


@njit(cache=True, nogil=True, inline="always")
def bound_units(value: int, unit: int) -> int:
    """An upper bound in units, rounded up and saturated."""
    return min(value // unit + 1, SATURATED)


@njit(cache=True, nogil=True, inline="always")
def code_bound(bounds: UpperBounds, number: int, code: int, half_shift: int) -> int:
    """Units that a posting of a list with a code table adds to the bound of its document."""
    place = min(max(min(code + half_shift, 255) - bounds.bases[number], 0), TABLE_SIZE - 1)
    return np.int64(bounds.tables[number, place >> GRANULARITY_BITS])
