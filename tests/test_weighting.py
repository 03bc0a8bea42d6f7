"""Pooling, the transform, idf and BM25: each kernel against its twin, each formula against numbers made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lexent.errors import InputError
from lexent.recipes import BM25
from lexent.types import RowCodes, SparseVectors
from lexent.weighting import bm25, idf, pool, transform
from lexent.weighting.pooling import _powered

SIZE = 12


def pool_reference(codes: RowCodes, *, size: int, how: str) -> SparseVectors:
    """What `pool` gives, the obvious way."""
    parts = []
    for text in range(len(codes.offsets) - 1):
        rows = slice(codes.offsets[text], codes.offsets[text + 1])
        ids, values = codes.ids[rows].ravel(), codes.values[rows].ravel()
        dense = np.zeros(size, np.float64)
        (np.add if how == "sum" else np.maximum).at(dense, ids[values > 0], values[values > 0])
        found = np.flatnonzero(dense)
        parts.append(_single(found, dense[found], size))
    return SparseVectors.concatenate(parts, size=size)


def transform_reference(vectors: SparseVectors, *, power: float, cap: int | None = None) -> SparseVectors:
    """What `transform` gives, the obvious way."""
    parts = []
    for vector in range(len(vectors)):
        ids, values = vectors.of(vector)
        values = _powered(values, power)
        kept = np.sort(np.lexsort((ids, -values))[:cap])
        parts.append(_single(ids[kept], values[kept], vectors.size))
    return SparseVectors.concatenate(parts, size=vectors.size)


def _single(ids: NDArray[np.integer], values: NDArray[np.floating], size: int) -> SparseVectors:
    return SparseVectors(ids.astype(np.int32), values.astype(np.float32), np.array([0, len(ids)]), size)


@st.composite
def row_codes(draw: st.DrawFn) -> RowCodes:
    """Texts of 0 to 4 rows with 3 places each; values from a few levels, so that ties and zeros are common."""
    counts = draw(st.lists(st.integers(0, 4), max_size=5))
    n = sum(counts)
    place = st.tuples(st.integers(0, SIZE - 1), st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]))
    places = draw(st.lists(place, min_size=3 * n, max_size=3 * n))
    return RowCodes(
        ids=np.array([latent for latent, _ in places], np.int32).reshape(n, 3),
        values=np.array([value for _, value in places], np.float32).reshape(n, 3),
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )


def vectors(*rows: dict[int, float], size: int = SIZE) -> SparseVectors:
    ids = [latent for row in rows for latent in sorted(row)]
    values = [row[latent] for row in rows for latent in sorted(row)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return SparseVectors(np.array(ids, np.int32), np.array(values, np.float32), offsets.astype(np.int64), size)


def same(left: SparseVectors, right: SparseVectors) -> None:
    np.testing.assert_array_equal(left.offsets, right.offsets)
    np.testing.assert_array_equal(left.ids, right.ids)
    np.testing.assert_array_equal(left.values, right.values)
    assert left.size == right.size


@settings(deadline=None)
@given(codes=row_codes(), how=st.sampled_from(["sum", "max"]))
def test_pool_equals_its_twin(codes: RowCodes, how: str) -> None:
    same(pool(codes, size=SIZE, how=how), pool_reference(codes, size=SIZE, how=how))


@settings(deadline=None)
@given(codes=row_codes(), power=st.sampled_from([0.5, 0.7, 1.0, 2.0]), cap=st.none() | st.integers(1, 5))
def test_transform_equals_its_twin(codes: RowCodes, power: float, cap: int | None) -> None:
    pooled = pool(codes, size=SIZE, how="sum")
    same(transform(pooled, power=power, cap=cap), transform_reference(pooled, power=power, cap=cap))


def test_pool_sums_and_takes_the_maximum() -> None:
    codes = RowCodes(
        ids=np.array([[3, 1], [3, 0]], np.int32),
        values=np.array([[2.0, 0.5], [4.0, 0.0]], np.float32),
        offsets=np.array([0, 2]),
    )
    same(pool(codes, size=4, how="sum"), vectors({1: 0.5, 3: 6.0}, size=4))
    same(pool(codes, size=4, how="max"), vectors({1: 0.5, 3: 4.0}, size=4))


def test_pool_refuses_latents_out_of_range() -> None:
    codes = RowCodes(np.array([[9]], np.int32), np.array([[1.0]], np.float32), np.array([0, 1]))
    with pytest.raises(InputError, match="allowed: 0 to 3"):
        pool(codes, size=4, how="sum")


def test_the_cap_keeps_the_lower_id_among_equals() -> None:
    given_ = vectors({1: 4.0, 2: 9.0, 5: 4.0, 7: 4.0}, {0: 1.0})
    same(transform(given_, power=0.5, cap=2), vectors({1: 2.0, 2: 3.0}, {0: 1.0}))


def test_idf_modes() -> None:
    df = np.array([0, 1, 6, 10])
    odds = [(10 - n + 0.5) / (n + 0.5) for n in df]
    np.testing.assert_allclose(idf(df, 10, "lucene"), [math.log(1 + odd) for odd in odds])
    np.testing.assert_allclose(idf(df, 10, "okapi"), [math.log(odd) for odd in odds])
    np.testing.assert_allclose(idf(df, 10, "root"), [math.sqrt(math.log1p(odd)) for odd in odds])
    np.testing.assert_allclose(idf(df, 10, "okapi-floor0"), [max(0, math.log(odd)) for odd in odds])
    np.testing.assert_allclose(idf(df, 10, "clsr"), [math.log(10), math.log(5), math.log(10 / 7), math.log1p(1 / 22)])
    np.testing.assert_allclose(idf(df, 10, "none"), 1)
    assert idf(df, 10, "okapi")[3] < 0


def test_a_query_saturates_by_k2() -> None:
    values = np.array([0.5, 2.0], np.float32)
    np.testing.assert_allclose(bm25.query_side(values, BM25(k2=1.5)), [0.5 * 2.5 / 2.0, 2.0 * 2.5 / 3.5])
    np.testing.assert_allclose(bm25.query_side(values, BM25()), values)


def test_prune_counts_only_latents_that_a_document_has() -> None:
    df = np.array([0, 5, 9, 5, 0, 1])
    assert bm25.most_frequent(df, 0.5).tolist() == [2, 1]  # half of the four that are there; the lower id among equals
    factors = bm25.query_factors(df, 10, BM25(idf="none"), prune=0.25)
    assert factors.tolist() == [1, 1, 0, 1, 1, 1]
