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

from lexent.indexing import bitmaps, bits, hopes, packing, workspace
from lexent.indexing.gains import gain_of, place_of
from lexent.indexing.hopes import credit, hope_of, units_of
from lexent.indexing.workspace import Asked, Chunk

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
    some = np.unique(np.random.default_rng(seed).integers(0, n, 300))
    which, places = np.empty(len(some), np.int64), np.empty(len(some), np.int64)
    found = bitmaps.find_many(data, row[None], 0, n, some, len(some), which, places)
    alone = [bitmaps.find(data, row, n, document) for document in some]
    assert list(zip(which[:found].tolist(), places[:found].tolist(), strict=True)) == [
        (one, place) for one, place in enumerate(alone) if place >= 0
    ]
    expected = dict(zip(documents.tolist(), codes.tolist(), strict=True))
    for document, place in zip(some.tolist(), alone, strict=True):
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
        found, at = before.copy(), row[2] + bitmaps.head(n)
        for group in range(bitmaps.n_tops(n)):
            top = data[row[2] + 8 * group : row[2] + 8 * group + 8].view(np.uint64)[0]
            add(data, top, at, group * bitmaps.GROUP, np.uint8(value), found)
            at += int(top).bit_count()
        np.testing.assert_array_equal(found, np.minimum(expected, 255))


@pytest.mark.skipif(not hopes.LOOKS, reason="needs AVX2")
@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=sizes,
    share=shares,
    weight=st.floats(1e-3, 1e6),
    unit=st.integers(1, 2**24),
    strong=st.integers(0, 2),
    rising=st.booleans(),
)
def test_hopes_are_what_was_credited_and_never_less_than_what_a_document_has(
    seed: int, n: int, share: float, weight: float, unit: int, strong: int, rising: bool
) -> None:
    """Of two lists: one has a code for each document, and is always asked for strengths; one has a bitmap."""
    random = np.random.default_rng(seed)
    data, row, documents, codes = packed(seed, n, share)
    every = np.where(random.random(n) < 0.7, random.integers(1, 256, n), 0).astype(np.uint8)
    data = np.concatenate([data, every, np.zeros(bitmaps.ROOM, np.uint8)])
    both = np.zeros((2, n), np.int64)
    both[0], both[1, documents] = every, codes
    strong = max(strong, 1)
    curve = np.sort(random.random(768)).astype(np.float32) if rising else np.ones(768, np.float32)
    shifts = random.integers(0, 256 if seed % 2 else 120, 65_536).astype(np.uint8)
    rows = np.array([[packing.EVERY, max(np.count_nonzero(every), 1), 0, len(data) - bitmaps.ROOM - n, 0], row])
    rows[:, 4] = [(2 * of + shifts[:n])[of > 0].max(initial=0) for of in both]
    weights = np.array([weight, weight / 3], np.float32)
    asked = Asked(rows, weights, np.array([gain_of(curve[row[4]], weights[one]) for one, row in enumerate(rows)]))
    none = np.zeros((1, 3), np.uint32)
    lists = packing.Lists(np.zeros((2, 4), np.int64), none.astype(np.uint64), none, np.zeros(1, np.uint16), data)
    here = Chunk(lists, n, shifts, (shifts >> 1) + (shifts & 1), curve)
    scratch = workspace.scratch(binary=False)
    scratch.scores[:n] = random.integers(0, 100, n) * random.integers(0, 2, n) * unit // 7
    hoped = hopes.add_up(here, asked, strong, unit, 0, scratch)
    for document in random.integers(0, n, 200).tolist():
        score, least, total = int(scratch.scores[document]), 0, 0
        for one, code in enumerate(both[:, document].tolist()):
            if code:
                least += int(gain_of(curve[place_of(code, shifts[document])], weights[one]))
                strength = int(credit(hoped, one, code, int(here.halves[document])))
                total += strength if one < strong else int(units_of(asked.bounds[one], unit))
        hope = int(scratch.hopes[document])
        whole = int(hope_of(hoped, scratch.scores[document], hope))
        assert hope == hopes.FULL or whole == score + total * unit
        assert whole >= score + least
        assert hope * unit >= score + least or hope == hopes.FULL
        assert scratch.peaks[document // 64] >= hope
    whole, least = scratch.hopes[:n].copy(), int(np.sort(scratch.hopes[:n])[-min(n, 40)])
    hopes.add_up(here, asked, strong, unit, least, scratch)
    np.testing.assert_array_equal(np.where(whole >= least, whole, 0), np.where(whole >= least, scratch.hopes[:n], 0))
    assert (scratch.hopes[:n] <= whole).all()


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
