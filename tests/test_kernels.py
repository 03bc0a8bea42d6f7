"""Every kernel of the index returns what its slow twin returns; packing loses nothing; damage is refused, not read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexent.errors import ArtifactError, InputError
from lexent.indexing.codes import Codes
from lexent.indexing.postings import quantisation
from lexent.indexing.segment import Packer, Segment, Tombstones
from lexent.recipes import BM25, Recipe
from lexent.search.document_scorer import MAX_ALLOWED_TO_PROBE, QUERIES_PER_TASK, DocumentScorer
from lexent.topk import reference
from lexent.types import SparseVectors

SIZE = 40
RECIPES = [
    Recipe(name="bm25"),
    Recipe(name="sharp", power=1.0, weighting=BM25(k1=3.0, b=0.4)),
    Recipe(name="flat", weighting=BM25(k1=0.0, b=1.0)),
    Recipe(name="clsr", power=1.0, weighting=BM25(k1=0.6, b=1.75, k2=2.5, idf="clsr")),
    Recipe(name="dot", power=1.0, weighting=BM25(formula="dot", idf="none")),
    Recipe(name="count", weighting=BM25(formula="count", idf="none")),
]
recipes = st.sampled_from(RECIPES)


def documents(seed: int, n: int, size: int = SIZE) -> Codes:
    """Documents whose latents are rare, common and everywhere, so that posting lists take all encodings."""
    random = np.random.default_rng(seed)
    shares = np.geomspace(0.9, 0.5 / max(n, 1), size)
    present = random.random((n, size)) < random.permutation(shares)
    codes = random.integers(1, 256, (n, size), dtype=np.uint8)
    if seed % 3 == 0:
        codes = np.where(codes > 128, 90, 100).astype(np.uint8)  # many equal scores
    owners, ids = np.nonzero(present)
    offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    return Codes(ids.astype(np.int32), codes[owners, ids], offsets.astype(np.int64))


def queries(seed: int, n: int, size: int, *, signs: bool = False) -> SparseVectors:
    """Queries of few and many latents, some of them unknown to the index, with weights of very different sizes."""
    random = np.random.default_rng(seed)
    rows = [np.sort(random.permutation(size + 3)[: random.integers(0, size + 4)]) for _ in range(n)]
    count = sum(map(len, rows))
    values = 10.0 ** random.uniform(-3, 3, count) * np.where(random.random(count) < 0.1, 0, 1)
    if signs:
        values *= random.choice([-1, 1], count)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    ids = np.concatenate([np.empty(0, np.int32), *rows]).astype(np.int32)
    return SparseVectors(ids, values.astype(np.float32), offsets, size + 3)


def packed(codes: Codes, recipe: Recipe, *, size: int = SIZE, chunk: int = 65_536) -> Segment:
    packer = Packer(size=size, recipe=recipe, chunk=chunk)
    packer.add(codes)
    return packer.segment()


def same(found: Any, expected: tuple[np.ndarray, np.ndarray]) -> None:
    positions, scores = expected
    count = len(positions)
    np.testing.assert_array_equal(found[0][:count], positions)
    np.testing.assert_array_equal(found[1][:count], scores)
    assert (found[0][count:] == -1).all()


def csr(rows: list[dict[int, float]], size: int = SIZE) -> SparseVectors:
    ids = [latent for row in rows for latent in sorted(row)]
    values = [row[latent] for row in rows for latent in sorted(row)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return SparseVectors(np.array(ids, np.int32), np.array(values, np.float32), offsets.astype(np.int64), size)


# --- packing -----------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(0, 4000), chunk=st.sampled_from([1, 7, 500, 65_536]))
def test_what_is_packed_can_be_unpacked(seed: int, n: int, chunk: int) -> None:
    codes = documents(seed, n if chunk > 7 else n % 60)
    segment = packed(codes, RECIPES[0], chunk=chunk)
    again = Codes.concatenate([codes.slice(0, 0), *segment.unpack()])
    np.testing.assert_array_equal(again.ids, codes.ids)
    np.testing.assert_array_equal(again.codes, codes.codes)
    np.testing.assert_array_equal(again.offsets, codes.offsets)
    np.testing.assert_array_equal(segment.lengths, reference.lengths(codes, RECIPES[0]))
    df = np.zeros(SIZE, np.int64)
    segment.add_df(df)
    np.testing.assert_array_equal(df, np.bincount(codes.ids, minlength=SIZE))


def test_lists_take_all_four_forms() -> None:
    segment = packed(documents(1, 30_000), RECIPES[0])
    assert set((segment.arrays["records"][:, 0] & 3).tolist()) == set(range(4))


def test_a_full_chunk_and_one_more() -> None:
    n = 65_537
    codes = Codes(np.zeros(n, np.int32), np.full(n, 9, np.uint8), np.arange(n + 1))
    segment = packed(codes, RECIPES[0])
    assert segment.arrays["chunks"][:, 0].tolist() == [0, 65_536, n]
    assert sum(map(len, segment.unpack())) == n
    found = DocumentScorer([segment], RECIPES[0], size=SIZE).top_weighted(csr([{0: 1.0}]), 3)
    assert found.positions[0].tolist() == [0, 1, 2]


def test_terms_beyond_16_bits() -> None:
    size = 491_520
    codes = Codes(np.array([7, 65_543, 491_519], np.int32), np.array([50, 60, 70], np.uint8), np.array([0, 1, 3]))
    scorer = DocumentScorer([packed(codes, RECIPES[4], size=size)], RECIPES[4], size=size)
    found = scorer.top_weighted(csr([{65_543: 1.0}, {7: 1.0}], size=size), 1)
    assert found.positions.tolist() == [[1], [0]]


@given(st.lists(st.floats(2.0**-13, 2.0**13, width=32), min_size=1))
def test_a_code_is_close_to_its_value(values: list[float]) -> None:
    given_values = np.array(values, np.float32)
    inside = np.clip(given_values, quantisation.CODE_VALUES[1], quantisation.HIGHEST_VALUE)
    decoded = quantisation.CODE_VALUES[quantisation.encode(given_values)]
    np.testing.assert_allclose(decoded, inside, rtol=0.0222)


def test_a_cap_keeps_the_strongest_codes_and_lower_ids_among_equals() -> None:
    codes = Codes(np.array([1, 2, 3, 4], np.int32), np.array([9, 200, 9, 9], np.uint8), np.array([0, 4]))
    kept = codes.capped(2)
    assert kept.ids.tolist() == [1, 2]
    assert codes.capped(None) is codes


# --- search ------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 3000),
    recipe=recipes,
    k=st.sampled_from([0, 1, 3, 10, 100, 1000, 5000]),
    chunk=st.sampled_from([300, 65_536]),
)
def test_top(seed: int, n: int, recipe: Recipe, k: int, chunk: int) -> None:
    codes = documents(seed, n)
    scorer = DocumentScorer([packed(codes, recipe, chunk=chunk)], recipe, size=SIZE)
    query_vectors = queries(seed, 4, SIZE)
    found = scorer.top_weighted(query_vectors, k)
    assert found.positions.shape == (len(query_vectors), min(k, n))
    for row in range(len(query_vectors)):
        same((found.positions[row], found.scores[row]), reference.top(codes, recipe, *query_vectors.of(row), k=k))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 800), recipe=recipes, k=st.sampled_from([1, 10, 1000]))
def test_top_with_negative_weights(seed: int, n: int, recipe: Recipe, k: int) -> None:
    codes = documents(seed, n)
    scorer = DocumentScorer([packed(codes, recipe)], recipe, size=SIZE)
    query_vectors = queries(seed, 3, SIZE, signs=True)
    for row in range(len(query_vectors)):
        found = scorer.top_weighted(query_vectors.take(np.array([row])), k)
        same((found.positions[0], found.scores[0]), reference.top(codes, recipe, *query_vectors.of(row), k=k))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 2000),
    recipe=recipes,
    cuts=st.lists(st.integers(0, 2000), max_size=4),
    gone=st.sampled_from([0.0, 0.1, 0.9]),
)
def test_segments_and_deletions_score_as_one_fresh_segment(
    seed: int, n: int, recipe: Recipe, cuts: list[int], gone: float
) -> None:
    codes = documents(seed, n)
    edges = sorted({0, n, *(cut for cut in cuts if cut < n)})
    parts = [packed(codes.slice(start, stop), recipe) for start, stop in pairwise(edges)]
    dead = np.random.default_rng(seed).random(n) < gone
    masks = [dead[start:stop] for start, stop in pairwise(edges)]
    tombstones = [Tombstones.of(part, mask) if mask.any() else None for part, mask in zip(parts, masks, strict=True)]
    spread = DocumentScorer(parts, recipe, size=SIZE, tombstones=tombstones)
    alive = np.flatnonzero(~dead)
    kept = Codes.concatenate([codes.slice(0, 0), *(codes.slice(one, one + 1) for one in alive.tolist())])
    fresh = DocumentScorer([packed(kept, recipe)], recipe, size=SIZE)
    assert spread.average_length == fresh.average_length
    np.testing.assert_array_equal(spread.df, fresh.df)
    query_vectors = queries(seed, 3, SIZE)
    one, other = spread.top(query_vectors, 20), fresh.top(query_vectors, 20)
    np.testing.assert_array_equal(one.scores, other.scores)
    places = np.where(other.positions >= 0, np.append(alive, 0)[other.positions], -1)
    np.testing.assert_array_equal(one.positions, places)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 3000), share=st.sampled_from([0.0, 0.01, 0.3, 1.0]))
def test_only_allowed_documents_are_found(seed: int, n: int, share: float) -> None:
    recipe, codes = RECIPES[seed % len(RECIPES)], documents(seed, n)
    allowed = np.random.default_rng(seed).random(n) < share
    scorer = DocumentScorer([packed(codes, recipe, chunk=700)], recipe, size=SIZE)
    query_vectors = queries(seed, 3, SIZE)
    found = scorer.top_weighted(query_vectors, 10, allowed=[allowed])
    for row in range(len(query_vectors)):
        same(
            (found.positions[row], found.scores[row]),
            reference.top(codes, recipe, *query_vectors.of(row), k=10, allowed=allowed),
        )
    ids = np.arange(SIZE, dtype=np.int32)
    owners = np.repeat(np.arange(n), np.diff(codes.offsets))
    within = [int(allowed[owners[codes.ids == latent]].sum()) for latent in ids]
    assert scorer.df_within(ids, [allowed]).tolist() == within
    assert scorer.n_allowed([allowed]) == allowed.sum()


def test_few_allowed_documents_are_scored_one_by_one() -> None:
    codes = documents(4, 2000)
    allowed = np.zeros(2000, np.bool_)
    allowed[np.random.default_rng(0).permutation(2000)[:MAX_ALLOWED_TO_PROBE]] = True
    scorer, query_vectors = (
        DocumentScorer([packed(codes, RECIPES[0], chunk=300)], RECIPES[0], size=SIZE),
        queries(4, 1, SIZE),
    )
    found = scorer.top_weighted(query_vectors, 10, allowed=[allowed])
    same(
        (found.positions[0], found.scores[0]),
        reference.top(codes, RECIPES[0], *query_vectors.of(0), k=10, allowed=allowed),
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 500), recipe=recipes)
def test_contributions_sum_to_the_score(seed: int, n: int, recipe: Recipe) -> None:
    codes, query_vectors = documents(seed, n), queries(seed, 1, SIZE, signs=seed % 2 == 0)
    scorer = DocumentScorer([packed(codes, recipe, chunk=100)], recipe, size=SIZE)
    scores, matched = scorer.scores(*query_vectors.of(0))
    expected, expected_matched = reference.scores(codes, recipe, *query_vectors.of(0))
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(matched, expected_matched)
    for position in range(0, n, 17):
        weights, values = scorer.contributions(position, *query_vectors.of(0))
        assert values.sum() == scores[position]
        bound = 1.01 / quantisation.query_scale(query_vectors.of(0)[1], float(quantisation.impact_curve(recipe).max()))
        products = weights.astype(np.float64) * query_vectors.of(0)[1]
        np.testing.assert_allclose(values, products, rtol=1e-6, atol=bound)


def test_500_latents_and_a_thousand_hits() -> None:
    codes, recipe = documents(5, 4000, size=600), RECIPES[0]
    scorer = DocumentScorer([packed(codes, recipe, size=600)], recipe, size=600)
    random = np.random.default_rng(5)
    query_vectors = csr([dict(zip(range(500), (random.random(500) + 0.01).tolist(), strict=True))], size=600)
    found = scorer.top_weighted(query_vectors, 1000)
    same((found.positions[0], found.scores[0]), reference.top(codes, recipe, *query_vectors.of(0), k=1000))


@pytest.mark.parametrize("k", [10, 101, 200])
@pytest.mark.parametrize("seed", [1, 2])
def test_lists_of_like_weights_in_many_chunks(seed: int, k: int) -> None:
    """No list decides alone: those that are probed last make up half of a score, also beyond the k of bound pruning."""
    random, size, n = np.random.default_rng(seed), 60, 6000
    present = random.random((n, size)) < random.uniform(0.02, 0.4, size)
    _, ids = np.nonzero(present)
    offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    codes = Codes(ids.astype(np.int32), random.integers(80, 160, len(ids), dtype=np.uint8), offsets.astype(np.int64))
    for recipe in RECIPES:
        scorer = DocumentScorer([packed(codes, recipe, size=size, chunk=700)], recipe, size=size)
        query_vectors = csr([dict(enumerate(random.uniform(0.8, 1.2, size).tolist())) for _ in range(4)], size=size)
        found = scorer.top_weighted(query_vectors, k)
        for row in range(len(query_vectors)):
            same((found.positions[row], found.scores[row]), reference.top(codes, recipe, *query_vectors.of(row), k=k))


def test_many_queries_on_several_threads_equal_one_after_the_other() -> None:
    scorer = DocumentScorer([packed(documents(2, 3000), RECIPES[0], chunk=1000)], RECIPES[0], size=SIZE)
    query_vectors = queries(2, 3 * QUERIES_PER_TASK + 5, SIZE)
    together, alone = scorer.top(query_vectors, 10, threads=4), scorer.top(query_vectors, 10, threads=1)
    np.testing.assert_array_equal(together.positions, alone.positions)
    np.testing.assert_array_equal(together.scores, alone.scores)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: scorer.top(query_vectors, 10), range(16)):
            np.testing.assert_array_equal(found.scores, alone.scores)


BRIDGED = [*range(20), *range(500, 520)]
"""Documents of a GAPS posting list; between them an entry of no document, at 19 + 255."""


@pytest.mark.parametrize("k", [100, 1000])
@pytest.mark.parametrize("few", [False, True])
def test_a_bridge_between_distant_documents_is_no_document(k: int, few: bool) -> None:
    rows = [{latent: 1.0 for latent in (0, 1) if latent or place in BRIDGED} for place in range(2000)]
    scorer, allowed = DocumentScorer.from_vectors(csr(rows), RECIPES[0]), np.arange(2000) % (20 if few else 1) == 14
    forms = scorer.segments[0].arrays["records"][:, 0] & 3
    assert forms.tolist() == [1, 3]
    for query_vectors in ({0: 1.0}, {0: 1.0, 1: 0.01}):
        found = scorer.top_weighted(csr([query_vectors]), k, allowed=[allowed] if few else None)
        expected = [one for one in BRIDGED if allowed[one] or not few]
        assert found.positions[0, : len(expected)].tolist() == expected
        assert len(query_vectors) == 2 or (found.positions[0, len(expected) :] == -1).all()
        if len(query_vectors) == 2:
            others = found.scores[0, len(expected) :][found.positions[0, len(expected) :] >= 0]
            assert len(set(others.tolist())) <= 1


@pytest.mark.parametrize("binary", [False, True])
def test_deleted_documents_raise_no_threshold(binary: bool) -> None:
    """They would have the highest scores, by many posting lists that are added whole."""
    recipe = Recipe("binary", pool="max", power=1.0, weighting=BM25(idf="none", formula="count"), binary=True)
    recipe = recipe if binary else RECIPES[4]
    dead = np.arange(4000) % 8 == 0
    codes = Codes.of(csr([dict.fromkeys(range(SIZE) if gone else [39], 1.0) for gone in dead]), recipe)
    segment = packed(codes, recipe)
    scorer = DocumentScorer([segment], recipe, size=SIZE, tombstones=[Tombstones.of(segment, dead)])
    query_vectors = csr([{latent: 1.0 + latent / 100 for latent in range(SIZE)}])
    found = scorer.top_weighted(query_vectors, 150)  # too many to search by upper bounds
    assert found.positions[0].tolist() == np.flatnonzero(~dead)[:150].tolist()


def test_a_document_of_a_later_chunk_may_be_better_by_one_unit() -> None:
    """Scores are integers: the second latent adds the least that there is."""
    codes = Codes.of(csr([{0: 1.0}] * 599 + [{0: 1.0, 1: 1.0}]), RECIPES[4])
    scorer = DocumentScorer([packed(codes, RECIPES[4], chunk=300)], RECIPES[4], size=SIZE)
    for k in (1, 101):
        found = scorer.top_weighted(csr([{0: 1.0, 1: 1e-12}]), k)
        assert found.positions[0].tolist() == [599, *range(k - 1)]


def test_few_allowed_documents_at_the_edges_of_chunks() -> None:
    codes, query_vectors = documents(4, 2000), queries(4, 1, SIZE)
    scorer = DocumentScorer([packed(codes, RECIPES[0], chunk=300)], RECIPES[0], size=SIZE)
    allowed = np.isin(np.arange(2000) % 300, [0, 299]) | (np.arange(2000) == 1999)
    found = scorer.top_weighted(query_vectors, 20, allowed=[allowed])
    same(
        (found.positions[0], found.scores[0]),
        reference.top(codes, RECIPES[0], *query_vectors.of(0), k=20, allowed=allowed),
    )


def test_what_the_lists_from_each_place_on_can_add() -> None:
    from lexent.topk.maxscore import suffix_sums

    assert suffix_sums(np.array([3, 1, 4])).tolist() == [8, 5, 4, 0]


def test_a_matching_document_counts_also_with_a_negative_score() -> None:
    # Latent 0 is in all documents but one: under okapi its idf is negative.
    rows = [{0: 1.0}, {0: 1.0}, {0: 1.0}, {1: 1.0}]
    scorer = DocumentScorer.from_vectors(csr(rows), Recipe(name="test", weighting=BM25(idf="okapi")))
    found = scorer.top(csr([{0: 1.0}]), 10)
    assert found.positions[0].tolist() == [0, 1, 2, -1]
    assert (found.scores[0, :3] < 0).all()


def test_pruned_latents_match_nothing() -> None:
    rows = [{0: 1.0}, {0: 1.0, 1: 1.0}]
    scorer = DocumentScorer.from_vectors(csr(rows), Recipe(name="test", prune=0.5))
    assert scorer.top(csr([{0: 1.0}]), 5).positions.tolist() == [[-1, -1]]
    assert scorer.top(csr([{0: 1.0, 1: 1.0}]), 5).positions.tolist() == [[1, -1]]


def test_bm25_as_the_formula_has_it() -> None:
    rows = [{0: 4.0, 1: 1.0}, {0: 1.0}, {1: 9.0, 2: 1.0, 3: 4.0}]
    recipe = Recipe(name="test", weighting=BM25(k1=1.2, b=0.75))
    scorer = DocumentScorer.from_vectors(csr(rows), recipe)
    found = scorer.scores(np.array([0], np.int32), np.array([2.0], np.float32))[0]
    length, average = 2.0 + 1.0, (3.0 + 1.0 + 6.0) / 3
    expected = 2.0 * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * length / average))
    assert found[0] == pytest.approx(expected, rel=0.02)
    assert found[2] == 0


def test_a_negative_k_is_refused() -> None:
    scorer = DocumentScorer.from_vectors(csr([{0: 1.0}]), Recipe(name="test"))
    with pytest.raises(InputError, match="k is -1"):
        scorer.top(csr([{0: 1.0}]), -1)


# --- hostile files -----------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(["records", "known", "shorts", "codes"]),
    data=st.data(),
)
def test_hostile_arrays_give_an_answer_or_an_error_never_a_crash(seed: int, name: str, data: st.DataObject) -> None:
    segment = packed(documents(1, 3000), RECIPES[0], chunk=1000)
    array = segment.arrays[name].copy()
    random = np.random.default_rng(seed)
    some = random.integers(0, array.size, max(1, array.size // data.draw(st.sampled_from([1, 10, 1000]))))
    array.reshape(-1)[some] = random.integers(0, np.iinfo(array.dtype).max, len(some), dtype=array.dtype, endpoint=True)
    array.setflags(write=False)
    hostile = Segment({**segment.arrays, name: array}, SIZE)
    scorer, query_vectors = DocumentScorer([hostile], RECIPES[0], size=SIZE), queries(seed, 2, SIZE)
    for attempt in (
        lambda: scorer.top_weighted(query_vectors, 10),
        lambda: scorer.scores(*query_vectors.of(0)),
        lambda: scorer.document_weights(5, query_vectors.of(0)[0]),
        lambda: list(hostile.unpack()),
        lambda: Tombstones.of(hostile, np.ones(3000, np.bool_)),
    ):
        with suppress(ArtifactError):
            attempt()


def test_a_list_outside_its_chunk_is_refused() -> None:
    segment = packed(documents(1, 300), RECIPES[0])
    far = segment.arrays["records"].copy()
    far[:, 1] = 2**31
    far.setflags(write=False)  # as those of an index: the kernels are compiled for no others
    scorer = DocumentScorer([replace(segment, arrays={**segment.arrays, "records": far})], RECIPES[0], size=SIZE)
    with pytest.raises(ArtifactError, match="lexent index CORPUS"):
        scorer.top_weighted(queries(1, 1, SIZE), 2)
