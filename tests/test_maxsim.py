"""MaxSim over codes of tokens: stores, exact scores against brute force, and an index that changes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import living
import small
from lexent import recipes
from lexent.encoders import ArrayEncoder, Encoder, TinyEncoder
from lexent.encoders.encoder import batches_with_whole, encode
from lexent.engine import Index
from lexent.errors import ArtifactError, InputError, MismatchError, NotFoundError
from lexent.evaluation import Collection, evaluate
from lexent.evaluation.systems import Bench
from lexent.indexing.forward.tokens import PART_ROWS, TokenStore
from lexent.indexing.postings import quantisation
from lexent.indexing.segment import Segment
from lexent.lexicon import Lexicon
from lexent.search import DocumentScorer, Fast
from lexent.search.maxsim_scorer import MaxSimScorer
from lexent.search.query import Query, QueryRows
from lexent.topk import maxsim_reference as reference
from lexent.types import Document, RowCodes

SSR = recipes.get("ssr")
SIZE = 60


def lexicon() -> Lexicon:
    return Lexicon.random(TinyEncoder(), size=96, whole=40)


def build(path: Path, docs: list[Document] | None = None, **given: Any) -> Index:
    return small.build(path, docs, **{"recipe": "ssr", "lexicon": lexicon(), **given})


def codes(seed: int, lengths: list[int], *, k: int = 6, size: int = SIZE) -> RowCodes:
    """Rows of length 1 of distinct latents, low ones more often; some places of some rows are unused."""
    draw = np.random.default_rng(seed)
    n = sum(lengths)
    ids = np.stack([draw.permutation(size)[:k] for _ in range(n)]) if n else np.zeros((0, k))
    ids = np.where(draw.random((n, 1)) < 0.5, ids, (ids[:, :1] % 7 + np.arange(k)) % size)
    values = draw.gamma(1.0, size=(n, k)).astype(np.float32) * (draw.random((n, k)) < 0.9)
    lengths_of = np.linalg.norm(values, axis=1, keepdims=True)
    values = (values / np.where(lengths_of > 0, lengths_of, 1)).astype(np.float32)
    return RowCodes(ids.astype(np.int32), values, np.cumsum([0, *lengths]).astype(np.int64))


def random_query(seed: int, n_rows: int, *, k: int = 5, size: int = SIZE, negative: bool = False) -> Query:
    draw = np.random.default_rng(seed)
    ids = [np.sort(draw.permutation(size)[: draw.integers(0, k + 1)]) for _ in range(n_rows)]
    joined = np.concatenate([np.empty(0, np.int32), *ids]).astype(np.int32)
    weights = draw.gamma(1.0, size=len(joined)).astype(np.float32) + np.float32(0.01)
    if negative:
        weights *= np.where(joined % 3 == 0, np.float32(-1), np.float32(1))
    offsets = np.cumsum([0, *(len(one) for one in ids)]).astype(np.int64)
    rows = QueryRows(joined, weights, offsets, np.arange(n_rows, dtype=np.int32), np.ones(n_rows, np.float32))
    return Query.of_rows("", rows)


def scorer(stores: list[TokenStore], *, size: int = SIZE) -> MaxSimScorer:
    segments = [Segment.pack(store.maxima(size=size), size=size, recipe=SSR) for store in stores]
    return MaxSimScorer(DocumentScorer(segments, SSR, size=size), stores)


def brute(stores: list[TokenStore], query: Query) -> NDArray[np.float64]:
    """Equation 4, for every document."""
    assert query.rows is not None
    factor = quantisation.row_scale(query.rows.weights, query.rows.offsets)
    weights = quantisation.quantise_weights(query.rows.weights, factor)
    found = [reference.scores(store, query.rows.ids, weights, query.rows.offsets) for store in stores]
    return np.concatenate(found) / (factor * quantisation.LINEAR_STEPS)


def best(scores: NDArray[np.float64], k: int, allowed: NDArray[np.bool_] | None = None) -> list[tuple[int, float]]:
    hits = np.flatnonzero((scores != 0) & (True if allowed is None else allowed))
    order = hits[np.lexsort((hits, -scores[hits]))][:k]
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))


def pairs(found: Any, row: int = 0) -> list[tuple[int, float]]:
    kept = found.positions[row] >= 0
    return list(zip(found.positions[row][kept].tolist(), found.scores[row][kept].tolist(), strict=True))


lengths = st.lists(st.sampled_from([0, 1, 2, 5, 17, 255, 256, 257, 600]), min_size=1, max_size=6)


# --- the store ---------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), lengths=lengths)
def test_a_store_gives_back_every_code(seed: int, lengths: list[int]) -> None:
    rows = codes(seed, lengths)
    store = TokenStore.of(rows, size=SIZE)
    assert len(store) == len(lengths)
    assert store.rows == sum(lengths)
    quantised = quantisation.encode_linear(rows.values)
    for place in range(len(lengths)):
        expected = {}
        for number, row in enumerate(range(rows.offsets[place], rows.offsets[place + 1])):
            entries = zip(rows.ids[row].tolist(), quantised[row].tolist(), strict=True)
            expected.update({(number, latent): code for latent, code in entries if code})
        found = store.document(place)
        assert found.n_rows == lengths[place]
        there = zip(found.rows.tolist(), found.latents.tolist(), found.values.tolist(), strict=True)
        assert {(row, latent): code for row, latent, code in there} == expected


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), lengths=lengths, data=st.data())
def test_documents_can_be_taken_and_joined(seed: int, lengths: list[int], data: st.DataObject) -> None:
    rows = codes(seed, lengths)
    order = np.array(data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=8)), np.int64)
    taken = RowCodes(
        ids=np.concatenate([rows.ids[rows.offsets[one] : rows.offsets[one + 1]] for one in order]),
        values=np.concatenate([rows.values[rows.offsets[one] : rows.offsets[one + 1]] for one in order]),
        offsets=np.cumsum([0, *(lengths[one] for one in order)]).astype(np.int64),
    )
    whole, expected = TokenStore.of(rows, size=SIZE), TokenStore.of(taken, size=SIZE)
    joined = TokenStore.concatenate([whole.take(order[:2]), whole.take(order[2:])])
    for found in (whole.take(order), joined):
        for name, array in expected.arrays.items():
            np.testing.assert_array_equal(found.arrays[name], array, err_msg=name)
            assert found.arrays[name].dtype == array.dtype


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), lengths=lengths)
def test_the_lists_hold_the_highest_code_of_each_latent(seed: int, lengths: list[int]) -> None:
    store = TokenStore.of(codes(seed, lengths), size=SIZE)
    found = store.maxima(size=SIZE)
    for place in range(len(lengths)):
        rows = store.document(place)
        expected = np.zeros(SIZE, np.int64)
        np.maximum.at(expected, rows.latents, rows.values)
        part = found.slice(place, place + 1)
        assert part.ids.tolist() == np.flatnonzero(expected).tolist()
        assert part.codes.tolist() == expected[expected > 0].tolist()


def test_wide_lexicons_have_wider_numbers() -> None:
    rows = codes(1, [3, 4], size=70_000)
    store = TokenStore.of(rows, size=70_000)
    assert store.arrays["latents"].dtype == np.uint32
    query = random_query(2, 3, k=40, size=70_000)
    np.testing.assert_array_equal(scorer([store], size=70_000).scores(query)[0], brute([store], query))


# --- scores ------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), lengths=lengths, n_rows=st.integers(0, 9), negative=st.booleans())
def test_scores_are_those_of_brute_force(seed: int, lengths: list[int], n_rows: int, negative: bool) -> None:
    store = TokenStore.of(codes(seed, lengths), size=SIZE)
    query = random_query(seed + 1, n_rows, negative=negative)
    scores, hits = scorer([store]).scores(query)
    np.testing.assert_array_equal(scores, brute([store], query))
    np.testing.assert_array_equal(hits, scores != 0)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(1, 9),
    k=st.sampled_from([0, 1, 3, 10, 100]),
    negative=st.booleans(),
    filtered=st.booleans(),
)
def test_exact_search_is_brute_force(seed: int, n_rows: int, k: int, negative: bool, filtered: bool) -> None:
    draw = np.random.default_rng(seed)
    stores = [TokenStore.of(codes(seed + part, draw.integers(0, 12, 40).tolist()), size=SIZE) for part in range(3)]
    allowed = [draw.random(len(store)) < 0.4 for store in stores]
    query = random_query(seed + 7, n_rows, negative=negative)
    found = scorer(stores).top([query], k, allowed=allowed if filtered else None)
    mask = np.concatenate(allowed) if filtered else None
    assert pairs(found) == best(brute(stores, query), k, mask)


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_exact_search_of_many_documents_is_brute_force(k: int, filtered: bool) -> None:
    """Few documents are scored before the bounds decide, in each of three segments; every fourth has a twin."""
    draw = np.random.default_rng(k)
    stores = []
    for part in range(3):
        store = TokenStore.of(codes(part, draw.integers(0, 12, 300).tolist()), size=SIZE)
        stores.append(store.take(np.where(np.arange(300) % 4 == 3, draw.integers(0, 300, 300), np.arange(300))))
    allowed = [draw.random(len(store)) < 0.7 for store in stores]
    searched = scorer(stores)
    pruned = 0
    for seed in range(8):
        query = random_query(seed, 1 + seed % 5)
        found = searched.top([query], k, allowed=allowed if filtered else None)
        assert pairs(found) == best(brute(stores, query), k, np.concatenate(allowed) if filtered else None)
        pruned += searched.scored(query, k) < 450
    assert pruned >= 4  # most searches score less than half of the documents


def test_products_are_summed_over_a_token_before_the_best_is_taken() -> None:
    """The best token is that of the highest sum of products, not the one with the highest single product."""
    ids = np.array([[0, 1], [0, 2], [1, 3]], np.int32)
    values = np.array([[0.6, 0.8], [0.8, 0.6], [0.9, 0.1]], np.float32)
    store = TokenStore.of(RowCodes(ids, values, np.array([0, 3])), size=4)
    rows = QueryRows(
        np.array([0, 1], np.int32),
        np.array([0.6, 0.8], np.float32),
        np.array([0, 2]),
        np.zeros(1, np.int32),
        np.ones(1),
    )
    query = Query.of_rows("", rows)
    searched = scorer([store], size=4)
    assert searched.scores(query)[0][0] == pytest.approx(0.6 * 0.6 + 0.8 * 0.8, abs=3e-3)
    assert searched.align(query, 0).best.tolist() == [0]
    # The highest code of each concept, from whatever token, is a bound and no score.
    bound = searched.document_scorer.top_weighted(query.vectors(4), 1).scores[0, 0]
    assert bound == pytest.approx(0.6 * 0.8 + 0.8 * 0.9, abs=5e-3)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n_rows=st.integers(1, 9))
def test_the_highest_codes_bound_every_score(seed: int, n_rows: int) -> None:
    store = TokenStore.of(codes(seed, [5, 0, 17, 300, 1, 40]), size=SIZE)
    query, searched = random_query(seed + 1, n_rows), scorer([store])
    bounds, _ = searched.document_scorer.scores(query.ids, query.weights)
    assert (searched.scores(query)[0] <= bounds * (1 + 1e-3) + 1e-3).all()


def test_large_factors_do_not_overflow() -> None:
    store = TokenStore.of(codes(3, [30, 300], k=50), size=SIZE)
    for factor in (1e-9, 1.0, 1e9):
        plain = random_query(4, 6, k=50)
        assert plain.rows is not None
        weights = plain.rows.weights.copy()
        weights[0] *= np.float32(factor)
        rows = QueryRows(plain.rows.ids, weights, plain.rows.offsets, plain.rows.tokens, plain.rows.strengths)
        query = Query.of_rows("", rows)
        np.testing.assert_array_equal(scorer([store]).scores(query)[0], brute([store], query))
        exact = np.zeros(2)
        for place in range(2):
            held = store.document(place)
            dense = np.zeros((held.n_rows, SIZE))
            dense[held.rows, held.latents] = held.values / quantisation.LINEAR_STEPS
            for row in range(len(rows)):
                part = slice(rows.offsets[row], rows.offsets[row + 1])
                exact[place] += (dense[:, rows.ids[part]] @ weights[part]).max(initial=0)
        # Beside a weight that is a thousand million times theirs, the others are rounded up to 1.
        np.testing.assert_allclose(brute([store], query), exact, rtol=2e-3 if factor <= 1 else 3e-2)


def test_fast_mode_refines_its_candidates_exactly() -> None:
    draw = np.random.default_rng(5)
    stores = [TokenStore.of(codes(part, draw.integers(1, 12, 200).tolist()), size=SIZE) for part in range(2)]
    searched, query = scorer(stores), random_query(9, 6)
    scores = brute(stores, query)
    found = pairs(searched.top([query], 10, mode=Fast(concepts=1, candidates=25)))
    assert found
    assert all(score == scores[position] for position, score in found)
    assert pairs(searched.top([query], 400, mode=Fast(concepts=1000, candidates=1000))) == best(scores, 400)
    assert len(pairs(searched.top([query], 400, mode=Fast(candidates=25)))) <= 50  # of each of two segments
    with pytest.raises(InputError, match='mode is "quick"; allowed: exact, fast'):
        searched.top([query], 3, mode="quick")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="candidates of the fast mode is 0"):
        Fast(candidates=0)


# --- an index ----------------------------------------------------------------------------------------------------


def reference_of(index: Index, text: str, **steer: Any) -> list[tuple[str, float]]:
    """Equation 4 for every live passage of an index, from its stores; a document has the score of its best one."""
    searcher = index.searcher
    query = searcher.query(text, **steer)
    stores = [side["tokens"] for side in searcher.reader.forward]
    gone = zip(stores, searcher.reader.tombstones, strict=True)
    live = [np.ones(len(store), bool) if one is None else ~one.mask for store, one in gone]
    found = best(brute(stores, query), 10_000, np.concatenate(live))  # type: ignore[arg-type]
    documents: dict[str, float] = {}
    for id, (_, score) in zip(searcher.reader.ids([place for place, _ in found]), found, strict=True):
        documents.setdefault(id, score)
    return list(documents.items())


@pytest.mark.parametrize("recipe", ["ssr", "ssr-cls"])
def test_an_index_that_changes_is_searched_exactly(tmp_path: Path, recipe: str) -> None:
    docs = small.documents(40)
    index = build(tmp_path / "a", docs[:20], recipe=recipe)
    index.add(docs[20:35])
    index.delete(["d3", "d4", "d22"])
    index.upsert([docs[36], Document("d5", "king of stars " * 100, metadata={"n": 12})])
    steers: list[dict[str, float] | None] = [None, {"#3": 2.0, "#17": 0.0, "#40": 3.0}]
    for step in (lambda: None, index.compact, lambda: index.retune(idf="lucene"), lambda: index.retune(idf="okapi")):
        step()
        for steer in steers:
            for text in ("night light", "queen of the board", "comet"):
                found = [(hit.id, hit.score) for hit in index.search(text, k=100, steer=steer)]
                assert found
                assert found == reference_of(index, text, steer=steer)
    index.verify()
    again = Index.open(index.path, encoder=TinyEncoder(), lexicon=lexicon())
    assert again.search("night light", k=100) == index.search("night light", k=100)


def test_any_changes_leave_what_a_fresh_build_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexent.indexing.writer.MERGE_FANOUT", 3)
    chance, model = random.Random(3), living.Model.of(small.documents(10))
    model.recipe = recipes.get("ssr")
    index = small.build(tmp_path / "a", small.documents(10), recipe="ssr")
    for step in range(1, 25):
        change = living.some_change(chance, model)
        living.apply(index, change)
        model = model.then(change)
        assert living.files(index.path) == living.named(index)
        if step % 6 == 0:
            assert living.state(index) == model.fresh(tmp_path / "fresh")


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n_rows=st.integers(0, 9), negative=st.booleans())
def test_alignments_are_those_of_brute_force(seed: int, n_rows: int, negative: bool) -> None:
    store = TokenStore.of(codes(seed, [0, 1, 17, 300]), size=SIZE)
    query, searched = random_query(seed + 1, n_rows, negative=negative), scorer([store])
    rows = query.rows
    assert rows is not None
    weights = quantisation.quantise_weights(rows.weights, quantisation.row_scale(rows.weights, rows.offsets))
    for document in range(len(store)):
        similar = reference.similarities(store, document, rows.ids, weights, rows.offsets)
        found = searched.align(query, document)
        owners = np.repeat(np.arange(n_rows), np.diff(rows.offsets))
        assert np.bincount(owners, found.contributions, minlength=n_rows).tolist() == (
            similar.max(axis=1).tolist() if similar.shape[1] else [0] * n_rows
        )
        assert found.best.tolist() == (similar.argmax(axis=1).tolist() if similar.shape[1] else [-1] * n_rows)
        assert searched.contributions(query, document)[1].sum() == pytest.approx(brute([store], query)[document])


def test_merging_keeps_what_a_fresh_build_has(tmp_path: Path) -> None:
    docs = small.documents(40)
    index = build(tmp_path / "a", docs[:10], recipe="ssr-cls", extras=["dense"])
    for start in range(10, 40, 10):
        index.add(docs[start : start + 10])
    index.delete(["d1", "d12", "d39"])
    index.compact()
    fresh = build(
        tmp_path / "b",
        [doc for doc in docs if doc.id not in ("d1", "d12", "d39")],
        recipe="ssr-cls",
        extras=["dense"],
    )
    for name in ("tokens", "dense"):
        ours, theirs = index.documents.forward[0][name], fresh.documents.forward[0][name]
        for array in theirs.arrays:
            np.testing.assert_array_equal(ours.arrays[array], theirs.arrays[array])
    assert index.manifest.segments[0].stores == fresh.manifest.segments[0].stores
    assert index.info()["stores"] == fresh.info()["stores"]


def test_filters_and_fusion(tmp_path: Path) -> None:
    index = build(tmp_path / "a")
    text = "night light queen"
    every = {hit.id: hit.score for hit in index.search(text, k=100)}
    found = index.search(text, k=100, filter={"n": {"gte": 25}})
    assert {hit.id: hit.score for hit in found} == {id: every[id] for id in every if int(id[1:]) >= 25}
    fused = index.search_fused(text, k=5)
    assert {part.name for hit in fused for part in hit.parts} == {"ssr", "bm25"}
    for hit in fused:
        for part in hit.parts:
            assert sum(one.value for one in hit.reasons[part.name].contributions) == pytest.approx(part.score, abs=1e-5)
    with pytest.raises(InputError, match="matches tokens, and feedback adds concepts of whole documents"):
        index.search(text, feedback=3)
    fast = index.search(text, k=5, mode="fast")
    assert fast.approximate
    assert fast.to_dict()["approximate"]
    assert fast.hits == index.search(text, k=5).hits
    with pytest.raises(InputError, match='"latent-terms" has no fast mode'):
        small.build(tmp_path / "b").search(text, mode="fast")


def test_weights_of_tokens_scale_what_they_give(tmp_path: Path) -> None:
    """Function words count less by the given factor, and a rare concept for more."""
    even = recipes.get("ssr").changed(function_words=1.0, idf="none")
    index = build(tmp_path / "a", recipe=even)
    plain = index.query("the queen of stars")
    light = Index.open(
        index.path, encoder=TinyEncoder(), lexicon=lexicon(), retune={"function_words": 0.25, "idf": "lucene"}
    )
    query = light.query("the queen of stars")
    assert plain.rows is not None
    assert query.rows is not None
    np.testing.assert_allclose(plain.rows.strengths, 1, rtol=1e-5)
    np.testing.assert_allclose(query.rows.strengths, [0.25, 1, 0.25, 1], rtol=1e-5)
    np.testing.assert_array_equal(plain.rows.ids, query.rows.ids)
    factors = (
        np.repeat(query.rows.strengths, np.diff(query.rows.offsets))
        * light.searcher.document_scorer.factors[query.rows.ids]
    )
    np.testing.assert_allclose(query.rows.weights, plain.rows.weights * factors, rtol=1e-4)


def test_longer_queries_have_more_concepts_a_token(tmp_path: Path) -> None:
    adaptive = recipes.get("ssr").changed(adaptive_k=True)
    index = small.build(tmp_path / "a", recipe=adaptive, lexicon=Lexicon.random(TinyEncoder(), size=400))
    long = "one two three four five six seven eight"
    for text, most in (("night light", 16), ("king and queen of board", 32), (long, 64)):
        rows = index.query(text).rows
        assert rows is not None
        assert np.diff(rows.offsets).max() == most
        assert np.diff(rows.offsets).min() > most // 2
    assert recipes.get("ssr").k_for("document") == 32
    assert adaptive.changed(query_k=20).k_for("query", tokens=9) == 20
    assert recipes.get("ssr").k_for("query", tokens=9) == 32


def test_the_whole_text_meets_only_the_whole_text(tmp_path: Path) -> None:
    index = build(tmp_path / "a", recipe="ssr-cls")
    tokens = build(tmp_path / "b", recipe="ssr")
    text, size = "night light queen", lexicon().token_size
    query = index.query(text).rows
    assert query is not None
    assert query.tokens.tolist() == [0, 1, 2, -1]
    share = index.recipe.whole
    assert query.strengths[-1] == pytest.approx(3 * share)  # of what three tokens weigh
    assert (query.ids[query.offsets[-2] :] >= size).all()
    assert (query.ids[: query.offsets[-2]] < size).all()
    plain = {hit.id: hit.score for hit in tokens.search(text, k=100)}
    for hit in index.search(text, k=100):
        whole = sum(part.value for part in hit.explain().contributions if part.concept >= size)
        assert hit.score - whole == pytest.approx(plain.get(hit.id, 0.0), abs=2e-3)
        assert 0 <= whole <= 3.03 * share
    half = Index.open(index.path, encoder=TinyEncoder(), lexicon=lexicon(), retune={"whole": 0.5})
    rows = half.query(text).rows
    assert rows is not None
    assert rows.strengths[-1] == pytest.approx(1.5)
    with pytest.raises(InputError, match="built with them; allowed: above 0"):
        index.retune(whole=0.0)
    with pytest.raises(InputError, match="built with none; allowed: 0"):
        tokens.retune(whole=1.0)
    with pytest.raises(MismatchError, match="codes whole texts beside tokens"):
        small.build(tmp_path / "c", recipe="ssr-cls")


@pytest.mark.parametrize(
    ("setting", "value"), [("power", 0.5), ("formula", "bm25"), ("document_cap", 5), ("k", 16), ("specials", False)]
)
def test_what_needs_encoding_again_is_refused(tmp_path: Path, setting: str, value: Any) -> None:
    index = build(tmp_path / "a", small.documents(4))
    with pytest.raises(InputError):
        index.retune(**{setting: value})


def test_settings_that_do_not_go_together() -> None:
    for alone in ({"whole": 1.0}, {"adaptive_k": True}, {"fast": True}):
        with pytest.raises(InputError, match="unless match is maxsim"):
            recipes.get("latent-terms").changed(**alone)
    for other in ({"pool": "sum"}, {"level": "pooled"}, {"power": 0.5}, {"match": "tokens"}):
        with pytest.raises(InputError, match="allowed"):
            SSR.changed(**other)


def test_texts_without_tokens_are_never_found(tmp_path: Path) -> None:
    index = build(tmp_path / "a", [Document("empty", ""), Document("full", "night light")])
    assert [hit.id for hit in index.search("night")] == ["full"]
    assert index.info()["stores"]["tokens"]["rows"] == 2


def test_documents_of_many_parts(tmp_path: Path) -> None:
    """Longer than any encoder's limit: states that were made elsewhere."""
    draw = np.random.default_rng(0)
    texts = {f"text {n}": draw.standard_normal((n, 16)).astype(np.float32) for n in (1, 255, 256, 257, 700)}
    texts["asked"] = texts["text 700"][[3, 300, 699]] + 0.01
    encoder = ArrayEncoder(texts)
    chosen = Lexicon.random(encoder, size=80)
    docs = [Document(text, text) for text in texts if text != "asked"]
    index = Index.build(docs, out=tmp_path / "a", encoder=encoder, lexicon=chosen, recipe="ssr")
    found = index.search("asked", k=10)
    assert [(hit.id, hit.score) for hit in found] == reference_of(index, "asked")
    assert found[0].id == "text 700"
    assert index.searcher.maxsim is not None
    assert index.searcher.maxsim.align(found[0].query, found[0].position).best.tolist() == [3, 300, 699]
    parts = index.documents.forward[0]["tokens"].arrays["rows"].tolist()
    assert parts == [1, 255, 256, 256, 1, 256, 256, 188]
    assert max(parts) == PART_ROWS


# --- evaluation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", ["ssr", "ssr-cls", "ssr++"])
def test_evaluation_ranks_as_an_index_does(tmp_path: Path, recipe: str) -> None:
    """From the cache too, under other weights than those it was filled with."""
    docs = small.documents(40)
    queries = {"q1": "yeast dough", "q2": "the king and a rook", "q3": "dream at night"}
    collection = Collection("small", docs, queries, {"q1": {"d0": 1}, "q2": {"d2": 1}, "q3": {"d3": 1}})
    bench = Bench(encoder=TinyEncoder(), lexicon=lexicon())
    for changes in ({}, {"function_words": 0.3, "idf": "lucene"}):
        chosen = recipes.get(recipe).changed(**changes)
        run = bench.recipe(chosen).run(collection, depth=20)
        index = build(tmp_path / "a", docs, recipe=chosen, overwrite=True)
        for name, text in queries.items():
            assert run[name] == {hit.id: hit.score for hit in index.search(text, k=20)}
    report = evaluate(collection, recipe=["latent-terms", chosen], encoder=TinyEncoder(), lexicon=lexicon())
    assert report.setting["recipes"][recipe]["match"] == "maxsim"
    assert report.systems[recipe]["R@100"] == 1
    with pytest.raises(MismatchError, match="matches tokens, and this looks at concepts of whole documents"):
        evaluate(collection, recipe=chosen, encoder=TinyEncoder(), lexicon=lexicon(), feedback=3)


# --- vectors -----------------------------------------------------------------------------------------------------


def test_dense_search_is_the_cosine(tmp_path: Path) -> None:
    index = small.build(tmp_path / "a", extras=["lexical", "dense"])
    index.add([Document("new", "comet dust")])
    index.delete(["d0"])
    docs = [*small.documents()[1:], Document("new", "comet dust")]
    vectors = encode(TinyEncoder(), [doc.content for doc in docs], kind="document", level="pooled").numpy()
    vector = encode(TinyEncoder(), ["comet dust"], kind="query", level="pooled").numpy()[0]
    cosines = vectors @ vector / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vector)
    found = index.dense_search("comet dust", k=5)
    assert [hit.id for hit in found] == [docs[place].id for place in np.argsort(-cosines, kind="stable")[:5]]
    assert found[0].id == "new"
    np.testing.assert_allclose([hit.score for hit in found], np.sort(cosines)[::-1][:5], atol=2e-3)
    assert index.manifest.extras == ("dense", "lexical")
    index.compact()
    assert index.dense_search("comet dust", k=5) == found
    plain = small.build(tmp_path / "b")
    with pytest.raises(NotFoundError, match=r"keeps no vectors; build it with them: .* --with dense"):
        plain.dense_search("comet")
    with pytest.raises(InputError, match='built with "sparse"; allowed: dense, lexical'):
        small.build(tmp_path / "c", extras=["sparse"])


# --- damage ------------------------------------------------------------------------------------------------------


def test_arrays_of_another_form_are_refused(tmp_path: Path) -> None:
    index = build(tmp_path / "a")
    folder = index.path / "segments" / "000001"
    index.close()
    for name in TokenStore.columns:
        path = folder / f"tokens-{name}.npy"
        good = path.read_bytes()
        array = np.load(path)
        for bad in (array.astype(np.float32), array[:-1], array.reshape(-1, 1)):
            np.save(path, bad)
            with pytest.raises(ArtifactError, match="damaged"):
                TokenStore.open(folder, size=136, n_documents=40)
            path.write_bytes(good)
    TokenStore.open(folder, size=136, n_documents=40)


def test_no_bytes_of_a_store_crash_a_search(tmp_path: Path) -> None:
    """Arrays of the right form with any content: an error or another answer."""
    index = build(tmp_path / "a")
    folder = index.path / "segments" / "000001"
    query, draw = index.query("night light queen"), np.random.default_rng(0)
    refused = 0
    for name in TokenStore.columns:
        good = np.load(folder / f"tokens-{name}.npy")
        for _ in range(40):
            bad = good.copy()
            place = draw.integers(0, bad.size, 3)
            bad.reshape(-1)[place] = draw.integers(0, np.iinfo(bad.dtype).max, 3, endpoint=True).astype(bad.dtype)
            np.save(folder / f"tokens-{name}.npy", bad)
            try:
                store = TokenStore.open(folder, size=136, n_documents=40)
                searched = MaxSimScorer(index.searcher.document_scorer, [store])
                for mode in ("exact", "fast"):
                    searched.top([query], 5, mode=mode)  # type: ignore[arg-type]
                for document in range(40):
                    searched.contributions(query, document)
                store.take(np.arange(0, 40, 3)).document(2)
            except ArtifactError:
                refused += 1
        np.save(folder / f"tokens-{name}.npy", good)
    assert refused > 100


# --- the embedded encoder ----------------------------------------------------------------------------------------


def test_tokens_and_whole_texts_come_from_one_pass(shared_encoder: Encoder) -> None:
    """The same states that two passes give."""
    texts = [
        "heat transfer in a boundary layer",
        "",
        "wing",
        "a longer text about supersonic flow over a flat plate " * 9,
    ]
    for specials in (True, False):
        tokens = encode(shared_encoder, texts, kind="document", specials=specials)
        pooled = encode(shared_encoder, texts, kind="document", level="pooled").numpy()
        seen = []
        for rows, states, whole in batches_with_whole(shared_encoder, texts, kind="document", specials=specials):
            for place, row in enumerate(rows.tolist()):
                np.testing.assert_array_equal(states.of(place), tokens.of(row))
                np.testing.assert_array_equal(whole.of(place)[0], pooled[row])
                seen.append(row)
        assert sorted(seen) == [0, 1, 2, 3]


def test_an_index_of_the_embedded_encoder_keeps_its_vectors(tmp_path: Path, shared_encoder: Encoder) -> None:
    docs = small.documents(12)
    chosen = Lexicon.random(shared_encoder, size=512, whole=64)
    index = Index.build(
        docs, out=tmp_path / "a", encoder=shared_encoder, lexicon=chosen, recipe="ssr-cls", extras=["dense"]
    )
    vectors = encode(shared_encoder, [doc.content for doc in docs], kind="document", level="pooled").numpy()
    kept = index.documents.forward[0]["dense"].arrays["vectors"].astype(np.float32)
    np.testing.assert_allclose(kept, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), atol=1e-3)
    n_tokens = [len(one) for one in shared_encoder.tokenize([doc.content for doc in docs], kind="document")]
    assert index.info()["stores"]["tokens"]["rows"] == sum(n_tokens) + len(docs)
    assert [(hit.id, hit.score) for hit in index.search("rook and pawn", k=12)] == reference_of(index, "rook and pawn")
