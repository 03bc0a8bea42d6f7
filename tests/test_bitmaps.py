"""The bitmaps of long lists: what is packed is found again, and hopes are never too low."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from lexent.indexing import bitmaps, bits, hopes
from lexent.indexing.gains import gain_of, place_of
from lexent.indexing.hopes import looked_up, tabulate, units_of

sizes = st.sampled_from([1, 7, 8, 63, 64, 511, 512, 513, 2_000, 65_535, 65_536])
shares = st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.97, 1.0])


def packed(seed: int, n: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A list as bytes, its row, its documents and their codes; something else stands before it."""
    random = np.random.default_rng(seed)
    documents = np.flatnonzero(random.random(n) < share).astype(np.uint16)
    if not len(documents):
        documents = np.array([random.integers(n)], np.uint16)
    codes = random.integers(1, 256, len(documents)).astype(np.uint8)
    start = int(random.integers(0, 99))
    end = start + int(bitmaps.head(n)) + len(np.unique(documents >> 3))
    data = np.zeros(end + len(codes) + bitmaps.ROOM, np.uint8)
    bitmaps.fill(documents, n, data, start)
    data[end : end + len(codes)] = codes
    data[:start] = 255
    return data, np.array([2, len(documents), start, end, 0]), documents, codes


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=sizes, share=shares)
def test_what_is_packed_is_read_and_found(seed: int, n: int, share: float) -> None:
    data, row, documents, codes = packed(seed, n, share)
    out = np.zeros(65_536 + 8, np.uint16)
    np.testing.assert_array_equal(out[: bitmaps.unpack(data, row, n, out)], documents)
    bitmap = np.zeros(bitmaps.WORDS, np.uint64)
    n_words = bitmaps.read(data, row, n, bitmap)
    there = np.unpackbits(bitmap[:n_words].view(np.uint8), bitorder="little")[:n]
    np.testing.assert_array_equal(np.flatnonzero(there), documents)
    some = np.unique(np.random.default_rng(seed).integers(0, n, 300))
    places = np.empty(len(some), np.int64)
    bitmaps.find_many(data, row, n, some, bitmap, places)
    assert places.tolist() == [bitmaps.find(data, row, n, document) for document in some]
    expected = dict(zip(documents.tolist(), codes.tolist(), strict=True))
    for document, place in zip(some.tolist(), places.tolist(), strict=True):
        assert (int(data[place]) if place >= 0 else None) == expected.get(document)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=sizes, share=shares, value=st.integers(0, 255))
def test_a_value_is_added_to_the_documents_of_a_list_alone_and_never_beyond_255(
    seed: int, n: int, share: float, value: int
) -> None:
    data, row, documents, _ = packed(seed, n, share)
    before = np.random.default_rng(seed).integers(0, 256, 65_536).astype(np.uint8)
    expected = before.astype(np.int64)
    expected[documents] += value
    for add in (hopes.add, hopes.add_narrow):
        found = before.copy()
        add(data, row, n, np.uint8(value), found, 0, 0)
        np.testing.assert_array_equal(found, np.minimum(expected, 255))


@pytest.mark.skipif(not bits.WIDE, reason="needs AVX-512 VBMI2")
@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=sizes,
    share=shares,
    weight=st.floats(1e-3, 1e8),
    unit=st.integers(1, 2**24),
    rising=st.booleans(),
)
def test_hopes_by_strength_are_what_is_looked_up_and_never_less_than_what_a_posting_adds(
    seed: int, n: int, share: float, weight: float, unit: int, rising: bool
) -> None:
    data, row, documents, codes = packed(seed, n, share)
    random = np.random.default_rng(seed)
    curve = np.sort(random.random(768)).astype(np.float32) if rising else np.ones(768, np.float32)
    shifts = random.integers(0, 256 if seed % 2 else 120, 65_536).astype(np.uint8)
    halves = (shifts >> 1) + (shifts & 1)
    highest = int((2 * codes.astype(np.int64) + shifts[documents]).max())
    table, sums = np.zeros(hopes.STEPS, np.uint8), np.zeros(65_536, np.uint8)
    base = tabulate(curve, highest, np.float32(weight), unit, table)
    hopes.add_by_strength(data, row, n, table, np.uint8(base), halves, sums, 0, 0)
    for document, code in zip(documents[:500].tolist(), codes.tolist(), strict=False):
        expected = looked_up(code, int(halves[document]), base, table)
        gain = gain_of(curve[place_of(code, shifts[document])], np.float32(weight))
        assert sums[document] == expected >= min(units_of(gain, unit), hopes.FULL) - (gain % unit == 0)
        assert expected == hopes.FULL or expected * unit >= gain
    assert not np.delete(sums, documents).any()


@settings(max_examples=200, deadline=None)
@given(data=st.binary(min_size=8, max_size=8), which=st.integers(0, 255))
def test_bytes_are_spread_alike_in_steps_and_at_once(data: bytes, which: int) -> None:
    array, left = np.frombuffer(data, np.uint8), list(data)
    expected = [left.pop(0) if which >> byte & 1 else 0 for byte in range(8)]
    for spread in (_in_steps, _at_once):
        assert list(int(spread(array, which)).to_bytes(8, "little")) == expected


@njit
def _in_steps(data: np.ndarray, which: int) -> np.uint64:
    return bits.spread_in_steps(data, 0, np.uint64(which))


@njit
def _at_once(data: np.ndarray, which: int) -> np.uint64:
    return bits.spread(data, 0, np.uint64(which))


@pytest.mark.parametrize("features", ["+sse2", "+sse2,+popcnt,+avx,+avx2,+bmi,+bmi2"])
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names features of x86")
def test_processors_that_can_do_less_find_the_same(features: str) -> None:
    """The kernels are compiled anew for one, and asked for what the slow twin finds."""
    code = """
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
from lexent.indexing import bits, reference
from test_kernels import RECIPES, SIZE, documents, packed, queries, same
from lexent.search.searcher import Searcher

assert not bits.WIDE
for recipe in RECIPES[:2]:
    codes, asked = documents(5, 3000), queries(5, 4, SIZE)
    found = Searcher([packed(codes, recipe, chunk=2000)], recipe, size=SIZE).top_weighted(asked, 10)
    for row in range(len(asked)):
        same((found.positions[row], found.scores[row]), reference.top(codes, recipe, *asked.of(row), k=10))
"""
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": features}
    folder = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
