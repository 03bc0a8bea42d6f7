"""Binary indexes: documents without weights, search by counting. Each kernel returns what its slow twin returns."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import small
from lexent.errors import ArtifactError, InputError
from lexent.evaluation.systems import Latent
from lexent.indexing.codes import Codes
from lexent.indexing.postings import binary_postings, quantisation
from lexent.indexing.segment import MAX_PROBED_DOCUMENTS, Packer, Segment, Tombstones
from lexent.recipes import BM25, Recipe, retuned
from lexent.search.document_scorer import MAX_ALLOWED_TO_PROBE, DocumentScorer
from lexent.topk import counting, reference
from lexent.types import SparseVectors
from lexent.weighting import as_query
from test_kernels import SIZE, csr, documents, queries, same

RECIPE = Recipe(
    "binary", pool="max", power=1.0, query_power=None, weighting=BM25(idf="none", formula="count"), binary=True
)


def binary(seed: int, n: int, size: int = SIZE) -> Codes:
    """Documents whose latents are rare, common and everywhere, without values."""
    codes = documents(seed, n, size)
    return replace(codes, codes=np.full(len(codes.ids), quantisation.CODE_OF_ONE, np.uint8))


def packed(codes: Codes, *, size: int = SIZE, chunk: int = 65_536) -> Segment:
    packer = Packer(size=size, recipe=RECIPE, chunk=chunk)
    packer.add(codes)
    return packer.segment()


def equal(query_vectors: SparseVectors, weight: float = 0.7) -> SparseVectors:
    """The queries with one weight for all that is not 0."""
    return replace(query_vectors, values=np.where(query_vectors.values != 0, np.float32(weight), np.float32(0)))


def alike(query_vectors: SparseVectors, n: int) -> SparseVectors:
    """The queries with n different weights, and with 0 where they had it."""
    some = (0.3 + 0.17 * (query_vectors.ids % n)).astype(np.float32)
    return replace(query_vectors, values=np.where(query_vectors.values != 0, some, np.float32(0)))


def encodings(segment: Segment) -> set[int]:
    return set((segment.arrays["records"][:, 0] & 3).tolist())


# --- packing -----------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(0, 4000), chunk=st.sampled_from([1, 7, 500, 65_536]))
def test_what_is_packed_can_be_unpacked(seed: int, n: int, chunk: int) -> None:
    codes = binary(seed, n if chunk > 7 else n % 60)
    segment = packed(codes, chunk=chunk)
    again = Codes.concatenate([codes.slice(0, 0), *segment.unpack()])
    np.testing.assert_array_equal(again.ids, codes.ids)
    np.testing.assert_array_equal(again.codes, codes.codes)
    np.testing.assert_array_equal(again.offsets, codes.offsets)
    np.testing.assert_array_equal(
        quantisation.decode_lengths(segment.lengths), np.diff(codes.offsets)
    )  # the value of each concept is 1
    df = np.zeros(SIZE, np.int64)
    segment.add_df(df)
    np.testing.assert_array_equal(df, np.bincount(codes.ids, minlength=SIZE))


@settings(max_examples=60, deadline=None)
@given(gaps=st.lists(st.sampled_from([1, 2, 100, 253, 254, 255, 256, 509, 510, 511, 5000]), min_size=1, max_size=400))
@example(gaps=[100] * 400)  # more bits of blocks than a word has
def test_any_distance_between_documents(gaps: list[int]) -> None:
    """Each encoding packs them, not only the smallest."""
    numbers = np.cumsum(gaps) - 1
    numbers = numbers[numbers < 65_536].astype(np.uint16)
    n, n_documents = len(numbers), int(numbers[-1]) + 1
    sizes = {
        binary_postings.BINARY_DOC_IDS: 2 * n,
        binary_postings.BINARY_BLOCKS: n + (n + binary_postings.n_blocks(n_documents) + 7) // 8,
        binary_postings.BINARY_GAPS: binary_postings._write_gaps(numbers, np.empty(0, np.uint8)),
        binary_postings.BINARY_BITMAP: binary_postings.bitmap_bytes(n_documents),
    }
    for encoding, size in sizes.items():
        if encoding == binary_postings.BINARY_BLOCKS and n < binary_postings.BLOCKS_MIN_DOCUMENTS:
            continue
        data = np.zeros(size + 64, np.uint8)
        places, starts = np.array([0, size]), np.array([0, n])
        binary_postings.write(
            starts, numbers, np.zeros(1, np.uint32), np.array([encoding], np.uint8), places, n_documents, data
        )
        row = np.array(
            [encoding, n if encoding in (binary_postings.BINARY_DOC_IDS, binary_postings.BINARY_BLOCKS) else 0, 0, size]
        )
        out = np.empty(binary_postings.MAX_LIST_ENTRIES, np.uint16)
        np.testing.assert_array_equal(out[: binary_postings.decode(data, row, out)], numbers)
        there = set(numbers.tolist())
        for document in {0, *(min(max(number + step, 0), n_documents - 1) for number in there for step in (-1, 0, 1))}:
            assert binary_postings.contains(data, row, document) == (document in there)
        for kind in (np.uint8, np.uint16):
            counts = np.zeros(65_536, kind)
            counting.count_list(data, row, counts)
            np.testing.assert_array_equal(np.flatnonzero(counts), numbers)
            assert counts.max() == 1


def test_lists_take_all_four_forms() -> None:
    assert encodings(packed(binary(1, 30_000, 400), size=400)) == {0, 1, 2, 3}


def test_many_lists_take_little_more_than_a_byte_a_posting() -> None:
    """Zipf-like: from a few documents to a third of them."""
    random, n, size = np.random.default_rng(0), 65_536, 2000
    shares = np.minimum(0.3, 0.9 / np.arange(1, size + 1) ** 0.7)
    rows = [np.flatnonzero(random.random(n, dtype=np.float32) < share).astype(np.int32) for share in shares]
    owners, ids = np.concatenate(rows), np.repeat(np.arange(size, dtype=np.int32), [len(row) for row in rows])
    order = np.lexsort((ids, owners))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n))])
    segment = packed(Codes(ids[order], np.full(len(ids), quantisation.CODE_OF_ONE, np.uint8), offsets), size=size)
    assert segment.bytes / segment.n_postings < 1.26
    assert len(encodings(segment)) > 2


def test_more_than_a_chunk_can_say_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = binary(3, 1000)
    whole, query_vectors = packed(codes), equal(queries(3, 3, SIZE))
    monkeypatch.setattr(binary_postings, "MAX_CHUNK_BYTES", len(whole.arrays["codes"]) // 3)
    split = packed(codes)
    assert len(split.arrays["chunks"]) == 5
    one, other = (
        DocumentScorer([segment], RECIPE, size=SIZE).top_weighted(query_vectors, 20) for segment in (whole, split)
    )
    np.testing.assert_array_equal(one.positions, other.positions)
    np.testing.assert_array_equal(one.scores, other.scores)


def test_a_cap_keeps_the_largest_values() -> None:
    """Values that an 8-bit code could not tell apart."""
    vectors = csr([{1: 0.1110, 2: 0.1112, 3: 0.1111, 4: 0.1113}])
    codes = Codes.of(vectors, replace(RECIPE, document_cap=2))
    assert codes.ids.tolist() == [2, 4]
    assert codes.codes.tolist() == [quantisation.CODE_OF_ONE] * 2
    query_vectors = as_query(vectors, replace(RECIPE, query_cap=3))
    assert query_vectors.ids.tolist() == [2, 3, 4]
    assert query_vectors.values.tolist() == [1.0] * 3


# --- search ------------------------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 3000),
    k=st.sampled_from([0, 1, 3, 10, 100, 1000, 5000]),
    chunk=st.sampled_from([300, 65_536]),
    weights=st.sampled_from([1, 2, 3, 8, 9, 40]),
)
def test_top(seed: int, n: int, k: int, chunk: int, weights: int) -> None:
    """Counts, and weights that differ: a few, as of buckets and by steering, or all."""
    codes, query_vectors = binary(seed, n), alike(queries(seed, 4, SIZE), weights)
    found = DocumentScorer([packed(codes, chunk=chunk)], RECIPE, size=SIZE).top_weighted(query_vectors, k)
    for row in range(len(query_vectors)):
        same((found.positions[row], found.scores[row]), reference.top(codes, RECIPE, *query_vectors.of(row), k=k))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 800), k=st.sampled_from([1, 10, 1000]))
def test_top_with_negative_weights(seed: int, n: int, k: int) -> None:
    codes, query_vectors = binary(seed, n), queries(seed, 2, SIZE, signs=True)
    scorer = DocumentScorer([packed(codes)], RECIPE, size=SIZE)
    for vectors in (query_vectors, equal(query_vectors, -1.0)):
        found = scorer.top_weighted(vectors, k)
        for row in range(len(query_vectors)):
            same((found.positions[row], found.scores[row]), reference.top(codes, RECIPE, *vectors.of(row), k=k))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 2000),
    cuts=st.lists(st.integers(0, 2000), max_size=4),
    gone=st.sampled_from([0.0, 0.1, 0.9]),
    share=st.sampled_from([0.01, 0.3, 1.0]),
    weights=st.sampled_from([1, 3, 40]),
)
def test_segments_deletions_and_filters(
    seed: int, n: int, cuts: list[int], gone: float, share: float, weights: int
) -> None:
    random, codes = np.random.default_rng(seed), binary(seed, n)
    edges = sorted({0, n, *(cut for cut in cuts if cut < n)})
    parts = [packed(codes.slice(start, stop)) for start, stop in pairwise(edges)]
    dead, allowed = random.random(n) < gone, random.random(n) < share
    masks = [dead[start:stop] for start, stop in pairwise(edges)]
    tombstones = [Tombstones.of(part, mask) if mask.any() else None for part, mask in zip(parts, masks, strict=True)]
    scorer = DocumentScorer(parts, RECIPE, size=SIZE, tombstones=tombstones)
    query_vectors = alike(queries(seed, 3, SIZE), weights)
    some = [allowed[start:stop] for start, stop in pairwise(edges)]
    for mask in (*scorer.masks(None), *scorer.masks(some)):
        assert not mask.flags.writeable  # a writable one would compile all kernels a second time
    for found, live in (
        (scorer.top_weighted(query_vectors, 20), ~dead),
        (scorer.top_weighted(query_vectors, 20, allowed=some), ~dead & allowed),
    ):
        for row in range(len(query_vectors)):
            expected = reference.top(codes, RECIPE, *query_vectors.of(row), k=20, allowed=live)
            same((found.positions[row], found.scores[row]), expected)
    owners = np.repeat(np.arange(n), np.diff(codes.offsets))
    np.testing.assert_array_equal(scorer.df, np.bincount(codes.ids[~dead[owners]], minlength=SIZE))
    within = np.bincount(codes.ids[(~dead & allowed)[owners]], minlength=SIZE)
    np.testing.assert_array_equal(scorer.df_within(np.arange(SIZE, dtype=np.int32), some), within)


def test_a_full_chunk_and_one_more() -> None:
    n = 65_537
    codes = Codes(np.zeros(n, np.int32), np.full(n, quantisation.CODE_OF_ONE, np.uint8), np.arange(n + 1))
    segment = packed(codes)
    assert segment.arrays["chunks"][:, 0].tolist() == [0, 65_536, n]
    assert sum(map(len, segment.unpack())) == n
    found = DocumentScorer([segment], RECIPE, size=SIZE).top_weighted(csr([{0: 1.0}]), 3)
    assert found.positions[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("length", [255, 256, 600])
def test_queries_of_many_concepts(length: int) -> None:
    """All of which some document has: its count is the highest that fits 8 bits, and more."""
    size, codes = 700, binary(5, 2000, 700)
    every = csr([dict.fromkeys(range(size), 1.0)], size=size)
    codes = Codes.concatenate([codes, Codes.of(every, RECIPE)])
    scorer = DocumentScorer([packed(codes, size=size)], RECIPE, size=size)
    query_vectors = csr([dict.fromkeys(range(length), 1.0)], size=size)
    for k in (1, 10, 500):
        found = scorer.top_weighted(query_vectors, k)
        assert (found.positions[0, 0], found.scores[0, 0]) == (2000, length)
        same((found.positions[0], found.scores[0]), reference.top(codes, RECIPE, *query_vectors.of(0), k=k))


def test_equal_counts_stand_in_the_order_of_the_documents() -> None:
    codes = Codes.of(csr([{1: 1.0, 2: 1.0}, {1: 1.0}, {2: 1.0, 3: 1.0}] * 400), RECIPE)
    found = DocumentScorer([packed(codes, chunk=100)], RECIPE, size=SIZE).top_weighted(csr([{2: 1.0, 3: 1.0}]), 402)
    assert found.positions[0].tolist() == [*range(2, 1200, 3), 0, 3]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 500))
def test_contributions_sum_to_the_score(seed: int, n: int) -> None:
    codes, query_vectors = binary(seed, n), queries(seed, 1, SIZE, signs=seed % 2 == 0)
    scorer = DocumentScorer([packed(codes, chunk=100)], RECIPE, size=SIZE)
    for vectors in (query_vectors, equal(query_vectors, 1.0)):
        scores, matched = scorer.scores(*vectors.of(0))
        expected, expected_matched = reference.scores(codes, RECIPE, *vectors.of(0))
        np.testing.assert_array_equal(scores, expected)
        np.testing.assert_array_equal(matched, expected_matched)
        for position in range(0, n, 17):
            weights, values = scorer.contributions(position, *vectors.of(0))
            assert values.sum() == scores[position]
            assert set(weights.tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("n", [3, MAX_PROBED_DOCUMENTS + 1])
def test_documents_by_position(n: int) -> None:
    codes = binary(6, 30_000, 400)
    segment = packed(codes, size=400, chunk=20_000)
    positions = np.sort(np.random.default_rng(n).permutation(30_000)[:n])
    found = segment.documents(positions)
    for row, position in enumerate(positions.tolist()):
        own = codes.slice(position, position + 1)
        np.testing.assert_array_equal(found.slice(row, row + 1).ids, own.ids)
        np.testing.assert_array_equal(found.slice(row, row + 1).codes, own.codes)


def test_few_allowed_documents_are_scored_one_by_one() -> None:
    codes, query_vectors = binary(4, 2000), equal(queries(4, 1, SIZE))
    allowed = np.zeros(2000, np.bool_)
    allowed[np.random.default_rng(0).permutation(2000)[:MAX_ALLOWED_TO_PROBE]] = True
    found = DocumentScorer([packed(codes, chunk=300)], RECIPE, size=SIZE).top_weighted(
        query_vectors, 10, allowed=[allowed]
    )
    same(
        (found.positions[0], found.scores[0]), reference.top(codes, RECIPE, *query_vectors.of(0), k=10, allowed=allowed)
    )


# --- hostile files -----------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(["records", "known", "codes"]),
    share=st.sampled_from([1, 10, 1000]),
)
def test_hostile_arrays_give_an_answer_or_an_error_never_a_crash(seed: int, name: str, share: int) -> None:
    segment = packed(binary(1, 3000, 200), size=200, chunk=1000)
    array, random = segment.arrays[name].copy(), np.random.default_rng(seed)
    some = random.integers(0, array.size, max(1, array.size // share))
    array.reshape(-1)[some] = random.integers(0, np.iinfo(array.dtype).max, len(some), dtype=array.dtype, endpoint=True)
    array.setflags(write=False)
    hostile = Segment({**segment.arrays, name: array}, 200)
    scorer, query_vectors = DocumentScorer([hostile], RECIPE, size=200), queries(seed, 2, 200)
    few = np.arange(3000) % 100 == 0
    attempts: list[Any] = [
        lambda: scorer.top_weighted(query_vectors, 10),
        lambda: scorer.top_weighted(equal(query_vectors), 10),
        lambda: scorer.top_weighted(alike(query_vectors, 3), 10),
        lambda: scorer.top_weighted(equal(query_vectors), 10, allowed=[few]),
        lambda: scorer.scores(*query_vectors.of(0)),
        lambda: scorer.document_weights(5, query_vectors.of(0)[0]),
        lambda: hostile.documents(np.array([5, 1005, 2999])),
        lambda: list(hostile.unpack()),
        lambda: Tombstones.of(hostile, np.ones(3000, np.bool_)),
    ]
    for attempt in attempts:
        with suppress(ArtifactError):
            attempt()
    workspace = scorer._borrow_workspace()
    assert not workspace.counts_8bit.any()
    assert not workspace.accumulators.any()


def test_a_list_outside_its_chunk_is_refused() -> None:
    segment = packed(binary(1, 300))
    far = segment.arrays["records"].copy()
    far[:] = 2**31
    far.setflags(write=False)  # as arrays of segments are
    scorer = DocumentScorer([replace(segment, arrays={**segment.arrays, "records": far})], RECIPE, size=SIZE)
    with pytest.raises(ArtifactError, match="lexent index CORPUS"):
        scorer.top_weighted(equal(queries(1, 1, SIZE)), 2)


# --- recipes and whole indexes -----------------------------------------------------------------------------------


def test_a_binary_recipe_counts_concepts_of_documents() -> None:
    with pytest.raises(InputError, match="formula is dot; allowed: count, where binary is true"):
        replace(RECIPE, weighting=BM25(formula="dot"))
    with pytest.raises(InputError, match="match is maxsim; allowed: documents, where binary is true"):
        replace(RECIPE, match="maxsim")
    assert Recipe.from_dict(RECIPE.to_dict()) == RECIPE


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"formula": "dot"}, r"formula is dot, but the index is binary: .*; allowed: count, as it was built"),
        ({"document_cap": 5}, r"document_cap is 5, but the index is binary: .*; allowed: none, as it was built"),
        ({"binary": False}, r'"binary" cannot change on an existing index'),
    ],
)
def test_what_cannot_change_on_a_binary_index(tmp_path: Path, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        retuned(RECIPE, settings)
    with small.build(tmp_path / "a", small.documents(4), recipe=RECIPE) as index, pytest.raises(InputError, match=says):
        index.retune(**settings)


def test_what_can_change() -> None:
    changed = retuned(RECIPE, {"query_cap": 9, "prune": 0.1, "idf": "lucene", "formula": "count"})
    assert (changed.query_cap, changed.prune, changed.weighting.idf) == (9, 0.1, "lucene")
    capped = replace(RECIPE, document_cap=7)
    assert retuned(capped, {"document_cap": 7}) == capped
    with pytest.raises(InputError, match="allowed: 7, as it was built"):
        retuned(capped, {"document_cap": 5})


def test_an_index_counts_what_query_and_document_share(tmp_path: Path) -> None:
    recipe = replace(RECIPE, document_cap=12, query_cap=10)
    index = small.build(tmp_path / "a", recipe=recipe)
    results = index.search("yeast dough light", k=40)
    assert len(results.concepts) == 10
    assert {concept.weight for concept in results.concepts} == {1.0}
    scorer, query = index.searcher.document_scorer, index.query("yeast dough light")
    for hit in results:
        held = scorer.documents([hit.position])
        assert hit.score == len(np.intersect1d(held.ids, query.ids))
        assert len(held.ids) <= 12
        explained = hit.explain()
        assert sum(part.value for part in explained.contributions) == hit.score
        assert {part.value for part in explained.contributions} == {1.0}
    steered = index.search("yeast dough light", k=40, steer={int(query.ids[0]): 2.5, int(query.ids[1]): 0.0})
    for hit in steered:
        explained = hit.explain()
        assert sum(part.value for part in explained.contributions) + explained.rest == hit.score
    assert {part.value for hit in steered for part in hit.explain().contributions} <= {1.0, 2.5}
    index.close()


def test_changes_merges_and_settings_equal_a_fresh_build(tmp_path: Path) -> None:
    from living import Model, opened, state

    docs = small.documents(30)
    with small.build(tmp_path / "a", docs[:8], recipe=replace(RECIPE, document_cap=15)) as index:
        for start in range(8, 30, 4):
            index.add(docs[start : start + 4])
        index.delete(["d1", "d9", "d29"])
        index.upsert([replace(docs[3], text="night king")])
        model = Model.of([document for document in docs if document.id not in ("d1", "d3", "d9", "d29")])
        model.documents["d3"] = replace(docs[3], text="night king")
        model.recipe = index.recipe
        expected = model.fresh(tmp_path / "fresh")
        assert state(index) == expected
        index.compact()
        assert state(index) == expected
        index.verify()
        assert state(opened(tmp_path / "a")) == expected
        index.retune(idf="lucene", query_cap=6)
        model.recipe = index.recipe
        assert state(index) == model.fresh(tmp_path / "fresh")
        again = opened(tmp_path / "a", retune={"idf": "none", "query_cap": 15, "prune": 0.1})
        assert len(again.search("night", k=5)) == 5


def test_evaluation_weighs_queries_as_an_index_does(tmp_path: Path) -> None:
    from lexent.encoders import TinyEncoder
    from lexent.evaluation.collections import Collection

    recipe, docs = replace(RECIPE, query_cap=8), small.documents(20)
    collection = Collection("small", docs, {"q": "yeast dough light"}, {"q": {docs[0].id: 1}})
    system = Latent(recipe, small.lexicon(), TinyEncoder())
    run = system.run(collection, depth=20)
    with small.build(tmp_path / "a", docs, recipe=recipe) as index:
        hits = index.search("yeast dough light", k=20)
    assert {hit.id: hit.score for hit in hits} == dict(run["q"])


def test_another_kind_of_segment_is_refused(tmp_path: Path) -> None:
    packer = Packer(size=SIZE, recipe=RECIPE, folder=tmp_path)
    packer.add(binary(1, 50))
    packer.close()
    given: Any = {"size": SIZE, "n_documents": 50, "length_units": packer.length_units}
    assert Segment.open(tmp_path, **given, binary=True).n_documents == 50
    with pytest.raises(ArtifactError, match="records"):
        Segment.open(tmp_path, **given)
