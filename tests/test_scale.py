"""The scales of an index do not saturate: weights are those of BM25 within the stated error, however long texts are."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import living
import small
from lexent import artifact
from lexent.errors import InputError
from lexent.indexing import manifest
from lexent.indexing.codes import Codes
from lexent.indexing.postings import quantisation
from lexent.indexing.segment import Packer, Segment, Tombstones
from lexent.recipes import BM25, Recipe
from lexent.search.document_scorer import DocumentScorer
from lexent.topk import reference
from lexent.types import Document, SparseVectors
from test_kernels import SIZE, csr, documents, queries, same

POWERS = [0.06, 0.3, 0.5, 0.7, 1.0, 1.5]
VALUE_ERROR = 2 ** (0.5 / quantisation.CODES_PER_DOUBLING)
"""Half a step of the scale of values: 2.2 %."""


def exact(value: float, length: float, average: float, recipe: Recipe) -> float:
    """The document-side weight of BM25."""
    formula, ratio = recipe.weighting, value**recipe.power
    divisor = 1 - formula.b + formula.b * length / average
    return ratio * (formula.k1 + 1) / (ratio + formula.k1 * divisor)


@settings(max_examples=300, deadline=None)
@given(
    ratio=st.floats(-3, 4).map(lambda exponent: 10**exponent),
    average=st.floats(1, 10_000),
    b=st.floats(0, 1),
    k1=st.sampled_from([0.0, 0.6, 1.0, 3.0]),
    power=st.sampled_from(POWERS),
    value=st.floats(-8, 20).map(lambda exponent: 2.0**exponent),
)
def test_a_stored_weight_is_that_of_bm25_within_the_stated_error(
    ratio: float, average: float, b: float, k1: float, power: float, value: float
) -> None:
    """For documents from a thousandth to ten thousand times as long as the average, and values up to a million."""
    recipe = Recipe("any", power=power, weighting=BM25(k1=k1, b=b))
    vectors = csr([{0: value}])
    codes = Codes.of(vectors, recipe)
    lengths = quantisation.encode_lengths(np.array([ratio * average]))
    shift = quantisation.shifts(lengths, average, recipe, doublings=codes.doublings)
    found = float(quantisation.impact_curve(recipe)[2 * int(codes.codes[0]) + int(shift[0])])
    # Of the value, of the divisor (steps half as wide) and of the length in 16 bits.
    error = VALUE_ERROR ** (1.5 * power) * (1 + 1 / 2048)
    assert found == pytest.approx(exact(value, ratio * average, average, recipe), rel=(error - 1) * 1.001)


@pytest.mark.parametrize(("power", "k1", "b"), [(0.5, 1.0, 0.7), (0.5, 1.0, 0.4), (1.0, 2.0, 1.0), (0.7, 3.0, 0.5)])
def test_long_documents_are_weighed_as_bm25_has_it(power: float, k1: float, b: float) -> None:
    """Among 400 common documents, some that are up to thousands of times as long, with values to match."""
    recipe = Recipe("any", power=power, weighting=BM25(k1=k1, b=b))
    random, long = np.random.default_rng(0), [1, 3, 10, 30, 100, 1000, 30_000]
    rows = [dict(zip(range(20), random.uniform(0.2, 5, 20).tolist(), strict=True)) for _ in range(400)]
    rows += [{latent: value * times for latent, value in rows[0].items()} for times in long]
    scorer = DocumentScorer.from_vectors(csr(rows), recipe)
    lengths = [sum(value**power for value in row.values()) for row in rows]
    average, ids = sum(lengths) / len(lengths), np.arange(20, dtype=np.int32)
    for place in range(395, len(rows)):
        expected = [exact(rows[place][latent], lengths[place], average, recipe) for latent in range(20)]
        np.testing.assert_allclose(scorer.document_weights(place, ids), expected, rtol=0.035 * max(power, 0.7))


@given(st.lists(st.floats(2.0**-14, 2.0**32), min_size=1))
def test_a_length_of_16_bits_is_close(lengths: list[float]) -> None:
    found = quantisation.decode_lengths(quantisation.encode_lengths(np.array(lengths)))
    np.testing.assert_allclose(found, lengths, rtol=1 / 2048)


def test_lengths_are_float16_as_far_as_those_go() -> None:
    """What formats 6 and 7 stored is read as it was; all codes of 16 bits are lengths, and ascend."""
    bits = np.arange(2**16, dtype=np.uint16)
    old = bits[: 0x7BFF + 1]
    np.testing.assert_array_equal(quantisation.decode_lengths(old), old.view(np.float16).astype(np.float64))
    np.testing.assert_array_equal(quantisation.encode_lengths(quantisation.decode_lengths(old)), old)
    every = quantisation.decode_lengths(bits)
    assert (np.diff(every) >= 0).all()
    assert every[-1] == quantisation.MAX_LENGTH
    assert quantisation.encode_lengths(np.array([0.0, 1e300])).tolist() == [
        0,
        int(quantisation.encode_lengths(np.array([2.0**32]))[0]),
    ]


def test_a_power_that_the_scale_is_too_short_for_is_refused() -> None:
    with pytest.raises(InputError, match=r"power is 0.05; allowed: from 0.06 to 2"):
        Recipe("any", power=0.05)


# --- documents with doublings --------------------------------------------------------------------------------------

RECIPES = [
    Recipe("bm25"),
    Recipe("sharp", power=1.0, weighting=BM25(k1=3.0, b=0.9)),
    Recipe("dot", power=1.0, weighting=BM25(formula="dot", idf="none")),
]


def large(seed: int, n: int) -> Codes:
    """Documents of which some have doublings, up to ten."""
    random, codes = np.random.default_rng(seed), documents(seed, n)
    found = np.where(random.random(n) < 0.1, random.integers(0, 11, n), 0).astype(np.uint8)
    return replace(codes, doublings=found)


def packed(codes: Codes, recipe: Recipe, chunk: int) -> Segment:
    packer = Packer(size=SIZE, recipe=recipe, chunk=chunk)
    packer.add(codes)
    return packer.segment()


def test_values_beyond_the_scale_of_codes_are_kept() -> None:
    values = np.array([300.0, 2.0**-6, 1.0, 234.0, 2.0**16, 5.0], np.float32)
    vectors = SparseVectors(np.array([0, 1, 0, 1, 0, 1], np.int32), values, np.array([0, 2, 4, 4, 6]), SIZE)
    codes = Codes.of(vectors, RECIPES[0])
    assert codes.doublings is not None
    assert codes.doublings.tolist() == [1, 0, 0, 9]
    found = quantisation.CODE_VALUES[codes.codes] * 2.0 ** np.repeat(
        codes.doublings.astype(float), np.diff(codes.offsets)
    )
    np.testing.assert_allclose(found, values, rtol=0.0222)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 1500),
    recipe=st.sampled_from(RECIPES),
    k=st.sampled_from([1, 10, 1000]),
    chunk=st.sampled_from([300, 65_536]),
)
def test_top_of_documents_with_doublings(seed: int, n: int, recipe: Recipe, k: int, chunk: int) -> None:
    codes, query_vectors = large(seed, n), queries(seed, 3, SIZE)
    segment = packed(codes, recipe, chunk)
    np.testing.assert_array_equal(segment.lengths, reference.lengths(codes, recipe))
    again = Codes.concatenate([codes.slice(0, 0), *segment.unpack()])
    np.testing.assert_array_equal(reference.doublings(again), reference.doublings(codes))
    found = DocumentScorer([segment], recipe, size=SIZE).top_weighted(query_vectors, k)
    for row in range(len(query_vectors)):
        same((found.positions[row], found.scores[row]), reference.top(codes, recipe, *query_vectors.of(row), k=k))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 800), cuts=st.lists(st.integers(0, 800), max_size=3))
def test_segments_and_deletions_of_documents_with_doublings(seed: int, n: int, cuts: list[int]) -> None:
    codes, recipe = large(seed, n), RECIPES[seed % 2]
    edges = sorted({0, n, *(cut for cut in cuts if cut < n)})
    parts = [packed(codes.slice(start, stop), recipe, 200) for start, stop in pairwise(edges)]
    dead = np.random.default_rng(seed).random(n) < 0.3
    pairs = zip(parts, pairwise(edges), strict=True)
    tombstones = [Tombstones.of(part, dead[start:stop]) for part, (start, stop) in pairs]
    kept = Codes.concatenate(
        [
            codes.slice(0, 0),
            *(
                one
                for part, (start, stop) in zip(parts, pairwise(edges), strict=True)
                for one in part.unpack(~dead[start:stop])
            ),
        ]
    )
    spread = DocumentScorer(parts, recipe, size=SIZE, tombstones=tombstones)
    fresh = DocumentScorer([packed(kept, recipe, 65_536)], recipe, size=SIZE)
    assert spread.average_length == fresh.average_length
    query_vectors, alive = queries(seed, 3, SIZE), np.flatnonzero(~dead)
    one, other = spread.top(query_vectors, 20), fresh.top(query_vectors, 20)
    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_array_equal(
        one.positions, np.where(other.positions >= 0, np.append(alive, 0)[other.positions], -1)
    )
    some = np.unique(np.random.default_rng(seed).integers(0, n, 5))
    vectors, every = spread.documents(some), np.arange(SIZE, dtype=np.int32)
    for row, position in enumerate(some.tolist()):
        ids, weights = vectors.of(row)
        np.testing.assert_array_equal(weights, spread.document_weights(position, every)[ids])


def test_a_very_long_document_survives_changes(tmp_path: Path) -> None:
    docs = [*small.documents(20), Document("long", "yeast dough oven " * 2000, metadata={"n": 99})]
    model = living.Model.of(docs)
    with small.build(tmp_path / "a", docs[:10]) as index:
        index.add(docs[10:])
        assert max(segment.most_doublings for segment in index.documents.segments) > 0
        expected = model.fresh(tmp_path / "fresh")
        assert living.state(index) == expected
        index.compact()
        assert living.state(index) == expected
        index.verify()
    with living.opened(tmp_path / "a") as again:
        assert living.state(again) == expected


def test_an_index_of_format_7_gives_the_same_answers(tmp_path: Path) -> None:
    """Its lengths were float16, and no document had doublings."""
    with small.build(tmp_path / "a") as index:
        expected = living.state(index)
        [part] = index.manifest.segments
    folder = tmp_path / "a" / "segments" / part.name
    np.save(folder / "lengths.npy", np.load(folder / "lengths.npy").view(np.float16))
    (folder / "doublings.npy").unlink()
    raw = json.loads((tmp_path / "a" / "manifest.json").read_text())
    raw["format"] = 7
    del raw["files"][f"segments/{part.name}/doublings.npy"]
    lengths = manifest.artifact.describe_file(folder / "lengths.npy")
    raw["files"][f"segments/{part.name}/lengths.npy"] = lengths
    (tmp_path / "a" / "manifest.json").write_text(json.dumps(manifest.stamped(raw)))
    with living.opened(tmp_path / "a") as old:
        found = living.state(old)
        assert found.pop("recipe") == expected.pop("recipe").changed(whole_texts=True)  # as it was read then
        assert found == expected
        old.add([Document("new", "king of the board")])
        old.compact()
        old.verify()
        assert old.manifest.format == artifact.FORMAT_VERSION


def test_half_of_a_shift_is_never_too_low() -> None:
    """It replaces the shift in the index into a table of upper bounds; 255 stands for all that is above."""
    shifts = np.arange(quantisation.NARROW_SHIFT_OFFSET - 900, quantisation.NARROW_SHIFT_OFFSET + 900).astype(np.uint16)
    found = np.zeros(len(shifts), np.uint8)
    quantisation.half_shifts(shifts, found)
    assert ((quantisation.NARROW_SHIFT_OFFSET + 2 * found.astype(np.int64) >= shifts) | (found == 255)).all()
    assert (np.diff(found.astype(np.int64)) >= 0).all()


def test_lengths_of_many_long_documents_add_up() -> None:
    codes = quantisation.encode_lengths(np.full(200, 2.0**32))
    assert quantisation.average_length(quantisation.length_units(codes), 200) == 2.0**32
