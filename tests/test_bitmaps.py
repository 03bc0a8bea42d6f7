"""Bitmaps of long posting lists: what is packed is found again, and upper bounds are never too low."""

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

from lexent.indexing.postings import bitmaps, layout, quantisation, simd
from lexent.topk import upper_bounds, workspace
from lexent.topk.impacts import contribution, curve_position
from lexent.topk.upper_bounds import bound_units, code_bound, score_bound
from lexent.topk.workspace import Chunk, QueryTerms

sizes = st.sampled_from([1, 7, 8, 63, 64, 511, 512, 513, 2_000, 65_535, 65_536])
shares = st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.97, 1.0])


def packed(seed: int, n: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A posting list as bytes, its descriptor, its documents and their codes; other bytes stand before it."""
    random = np.random.default_rng(seed)
    documents = np.flatnonzero(random.random(n) < share).astype(np.uint16)
    if not len(documents):
        documents = np.array([random.integers(n)], np.uint16)
    codes = random.integers(1, 256, len(documents)).astype(np.uint8)
    start = int(random.integers(0, 99))
    end = start + int(bitmaps.header_bytes(n)) + len(np.unique(documents >> 3))
    data = np.zeros(end + len(codes) + layout.PADDING_BYTES, np.uint8)
    bitmaps.write(documents, n, data, start)
    data[end : end + len(codes)] = codes
    data[:start] = 255
    return data, np.array([2, len(documents), start, end, 0]), documents, codes


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=sizes, share=shares)
def test_what_is_packed_is_read_and_found(seed: int, n: int, share: float) -> None:
    data, descriptor, documents, codes = packed(seed, n, share)
    out = np.zeros(65_536 + 8, np.uint16)
    np.testing.assert_array_equal(out[: bitmaps.unpack(data, descriptor, n, out)], documents)
    some = np.unique(np.random.default_rng(seed).integers(0, n, 300))
    matches, places = np.empty(len(some), np.int64), np.empty(len(some), np.int64)
    found = bitmaps.probe_many(data, descriptor[None], 0, n, some, len(some), matches, places)
    alone = [bitmaps.probe(data, descriptor, n, document) for document in some]
    assert list(zip(matches[:found].tolist(), places[:found].tolist(), strict=True)) == [
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
    data, descriptor, documents, _ = packed(seed, n, share)
    before = np.random.default_rng(seed).integers(0, 256, 65_536).astype(np.uint8)
    expected = before.astype(np.int64)
    expected[documents] += value
    for add in (upper_bounds.add_list_bound, upper_bounds.add_list_bound_portable):
        found, at = before.copy(), descriptor[2] + bitmaps.header_bytes(n)
        for group in range(bitmaps.n_groups(n)):
            nonzero = data[descriptor[2] + 8 * group : descriptor[2] + 8 * group + 8].view(np.uint64)[0]
            add(data, nonzero, at, group * layout.GROUP_DOCUMENTS, np.uint8(value), found)
            at += int(nonzero).bit_count()
        np.testing.assert_array_equal(found, np.minimum(expected, 255))


@pytest.mark.skipif(not upper_bounds.HAS_TABLE_LOOKUP, reason="needs AVX2")
@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=sizes,
    share=shares,
    weight=st.floats(1e-3, 1e6),
    unit=st.integers(0, 24).map(lambda exponent: 2**exponent),
    n_by_code=st.integers(0, 2),
    rising=st.booleans(),
)
def test_upper_bounds_are_sums_of_list_bounds_and_never_below_the_score(
    seed: int, n: int, share: float, weight: float, unit: int, n_by_code: int, rising: bool
) -> None:
    """One list has a code for each document, and always adds bounds by code; seven have bitmaps."""
    random = np.random.default_rng(seed)
    data, descriptor, documents, codes = packed(seed, n, share)
    every = np.where(random.random(n) < 0.7, random.integers(1, 256, n), 0).astype(np.uint8)
    data = np.concatenate([data, every, np.zeros(layout.PADDING_BYTES, np.uint8)])
    both = np.zeros((8, n), np.int64)
    both[0], both[1:, documents] = every, codes
    n_by_code = max(n_by_code, 1)
    # Of common documents, of very long ones, and of very long and very short ones.
    low, high = [(0, 120), (0, 256), (-900, -300), (-400, -100), (-3000, 3000)][seed % 5]
    curve = np.ones(quantisation.CURVE_SIZE, np.float32)
    if rising:
        used = slice(quantisation.NARROW_SHIFT_OFFSET + low, quantisation.NARROW_SHIFT_OFFSET + high + 512)
        curve[: used.stop] = 1e-6
        curve[used] = np.sort(random.random(used.stop - used.start))
    shifts = (quantisation.NARROW_SHIFT_OFFSET + random.integers(low, high, 65_536)).astype(np.uint16)
    half_shifts = workspace.aligned_zeros(len(shifts))
    quantisation.half_shifts(shifts, half_shifts)
    descriptors = np.array(
        [
            [layout.CODE_ARRAY, max(np.count_nonzero(every), 1), 0, len(data) - layout.PADDING_BYTES - n, 0],
            *([descriptor] * 7),
        ]
    )
    descriptors[:, 4] = [(2 * of + shifts[:n])[of > 0].max(initial=quantisation.NARROW_SHIFT_OFFSET) for of in both]
    weights = np.array([weight, *(weight / (3 + one) for one in range(7))], np.float32)
    terms = QueryTerms(
        descriptors,
        weights,
        np.array([contribution(curve[descriptor[4]], weights[one]) for one, descriptor in enumerate(descriptors)]),
    )
    none = np.zeros((1, 3), np.uint32)
    lists = layout.PostingLists(np.zeros((2, 4), np.int64), none.astype(np.uint64), none, np.zeros(1, np.uint16), data)
    chunk = Chunk(lists, n, shifts, int(shifts[:n].min()), half_shifts, curve)
    memory = workspace.new_workspace(binary=False)
    memory.accumulators[:n] = random.integers(0, 100, n) * random.integers(0, 2, n) * unit // 7
    bounds = upper_bounds.compute(chunk, terms, n_by_code, unit, 0, memory)
    for document in random.integers(0, n, 200).tolist():
        score, least, total = int(memory.accumulators[document]), 0, 0
        for one, code in enumerate(both[:, document].tolist()):
            if code:
                added = int(contribution(curve[curve_position(code, shifts[document])], weights[one]))
                units = int(code_bound(bounds, one, code, int(chunk.half_shifts[document])))
                assert one >= n_by_code or units * unit >= added or units == upper_bounds.SATURATED
                least += added
                total += units if one < n_by_code else int(bound_units(terms.upper_bounds[one], unit))
        bound = int(memory.upper_bounds[document])
        total_bound = int(score_bound(bounds, memory.accumulators[document], bound))
        assert bound == upper_bounds.SATURATED or total_bound == score + total * unit
        assert total_bound >= score + least
        assert bound * unit >= score + least or bound == upper_bounds.SATURATED
        assert memory.block_maxima[document // 64] >= bound
    total_bound, least = memory.upper_bounds[:n].copy(), int(np.sort(memory.upper_bounds[:n])[-min(n, 40)])
    upper_bounds.compute(chunk, terms, n_by_code, unit, least, memory)
    np.testing.assert_array_equal(
        np.where(total_bound >= least, total_bound, 0), np.where(total_bound >= least, memory.upper_bounds[:n], 0)
    )
    assert (memory.upper_bounds[:n] <= total_bound).all()


@settings(max_examples=200, deadline=None)
@given(data=st.binary(min_size=8, max_size=8), mask=st.integers(0, 255))
def test_bytes_are_expanded_alike_by_the_portable_and_the_native_kernel(data: bytes, mask: int) -> None:
    array, left = np.frombuffer(data, np.uint8), list(data)
    expected = [left.pop(0) if mask >> byte & 1 else 0 for byte in range(8)]
    for expand in (_portable, _native):
        assert list(int(expand(array, mask)).to_bytes(8, "little")) == expected


@njit
def _portable(data: np.ndarray, mask: int) -> np.uint64:
    return simd.expand_bytes_portable(data, 0, np.uint64(mask))


@njit
def _native(data: np.ndarray, mask: int) -> np.uint64:
    return simd.expand_bytes(data, 0, np.uint64(mask))


@pytest.mark.parametrize("features", ["+sse2", "+sse2,+popcnt,+avx,+avx2,+bmi,+bmi2"])
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names features of x86")
def test_processors_that_can_do_less_find_the_same(features: str) -> None:
    """The kernels are compiled for an older processor, and compared with the slow twin."""
    code = """
import numpy as np
from lexent.indexing.postings import simd
from lexent.topk import reference
from test_kernels import RECIPES, SIZE, documents, packed, queries, same
from lexent.search.document_scorer import DocumentScorer

assert not simd.AVX512
for recipe in RECIPES[:2]:
    codes, query_vectors = documents(5, 3000), queries(5, 4, SIZE)
    found = DocumentScorer([packed(codes, recipe, chunk=2000)], recipe, size=SIZE).top_weighted(query_vectors, 10)
    for row in range(len(query_vectors)):
        same((found.positions[row], found.scores[row]), reference.top(codes, recipe, *query_vectors.of(row), k=10))
"""
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": features}
    folder = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
