"""Relevance feedback: exact, explained, and nothing where it is asked for nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import small
from commands import data, furnished, good, run
from lexent import recipes
from lexent.encoders import Encoder, TinyEncoder
from lexent.engine import Index
from lexent.errors import InputError, NotFoundError
from lexent.evaluation import Collection, evaluate, load
from lexent.evaluation.systems import Bench, Expanded
from lexent.explain import why
from lexent.indexing import segment as segments
from lexent.indexing.codes import Codes
from lexent.search import Feedback, Results
from lexent.search.feedback import Learning
from lexent.types import Document

QUERIES = ["yeast dough", "night light", "king queen board mate", "gravity", "nothing of this"]
FEEDBACK = st.builds(
    Feedback,
    method=st.sampled_from(["rocchio", "rm3"]),
    documents=st.integers(0, 8),
    concepts=st.integers(1, 60),
    weight=st.floats(0, 0.95),
    focus=st.floats(0, 50),
    against=st.floats(0, 1),
)
IDS = st.lists(st.sampled_from([f"d{number}" for number in range(40)]), max_size=3, unique=True)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return small.build(tmp_path_factory.mktemp("index") / "a.lexent")


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Several segments, with deleted documents."""
    made = small.build(tmp_path_factory.mktemp("index") / "b.lexent", small.documents(20))
    made.add(small.documents(40)[20:])
    made.delete(["d3", "d25"])
    return made


@pytest.fixture(scope="module")
def negative(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """With an idf that may fall below 0."""
    recipe = recipes.get("latent-terms").changed(idf="okapi")
    return small.build(tmp_path_factory.mktemp("index") / "c.lexent", recipe=recipe)


def found(results: Results) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in results]


# --- contracts ---------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(query=st.sampled_from(QUERIES), feedback=FEEDBACK, like=IDS, unlike=IDS, top=st.none() | st.integers(0, 9))
@pytest.mark.parametrize("which", ["index", "negative"])
def test_contributions_sum_to_the_score_after_feedback(
    request: pytest.FixtureRequest,
    which: str,
    query: str,
    feedback: Feedback,
    like: list[str],
    unlike: list[str],
    top: int | None,
) -> None:
    index: Index = request.getfixturevalue(which)
    unlike = [id for id in unlike if id not in like]
    results = index.search(query, k=40, feedback=feedback, like=like, unlike=unlike)
    plain = {concept.id: concept.weight for concept in index.search(query).concepts}
    after = {concept.id: concept.weight for concept in results.concepts}
    for hit in results:
        explanation = hit.explain(top)
        total = sum(part.value for part in explanation.contributions) + explanation.rest
        assert abs(total - hit.score) <= 1e-5
        assert all(part.query == after[part.concept] for part in explanation.contributions)
    added = {concept.id: concept for concept in results.added}
    assert len(added) <= feedback.concepts
    for concept in plain.keys() | after.keys():
        gain = added[concept].weight if concept in added else 0.0
        # Weights are float32: one of some hundreds is rounded by more than 1e-5.
        assert after.get(concept, 0.0) == pytest.approx(plain.get(concept, 0.0) + gain, rel=1e-6, abs=1e-5)
        assert after.get(concept, 0.0) >= min(plain.get(concept, 0.0), 0.0), "no weight falls below 0"


@settings(deadline=None, max_examples=30)
@given(query=st.sampled_from(QUERIES), feedback=FEEDBACK, like=IDS)
def test_a_weight_of_nothing_is_plain_search(index: Index, query: str, feedback: Feedback, like: list[str]) -> None:
    nothing = Feedback(feedback.method, feedback.documents, feedback.concepts, 0.0)
    results = index.search(query, k=20, feedback=nothing, like=like)
    assert found(results) == found(index.search(query, k=20))
    assert results.added == ()
    assert found(index.search(query, feedback=0)) == found(index.search(query)), "no document to learn from"


@pytest.mark.parametrize("which", ["index", "living"])
def test_the_vectors_of_documents_are_those_of_the_lists(
    request: pytest.FixtureRequest, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = request.getfixturevalue(which).searcher.document_scorer
    order = np.random.default_rng(0).permutation(40)
    asked = scorer.documents(order)
    monkeypatch.setattr(segments, "MAX_PROBED_DOCUMENTS", 0)
    unpacked = scorer.documents(order)
    every = np.arange(scorer.size, dtype=np.int32)
    for row, position in enumerate(order):
        slow = scorer.document_weights(int(position), every)
        for vectors in (asked, unpacked):
            ids, weights = vectors.of(row)
            assert ids.tolist() == np.flatnonzero(slow).tolist()
            assert weights.tolist() == slow[ids].tolist()
    assert len(scorer.documents([])) == 0
    assert scorer.documents([5, 5]).of(0)[0].tolist() == scorer.documents([5]).of(0)[0].tolist()


def test_looking_up_equals_unpacking_in_every_form_of_list() -> None:
    """Sparse lists, gaps, bitmaps and a code for each, over more documents than one bitmap group."""
    random = np.random.default_rng(1)
    n, size = 3000, 40
    shares = np.concatenate([np.full(20, 0.002), np.full(10, 0.05), np.full(10, 0.6)])
    has = random.random((n, size)) < shares
    ids = np.nonzero(has)[1].astype(np.int32)
    codes = Codes(ids, random.integers(1, 256, len(ids)).astype(np.uint8), np.r_[0, has.sum(1).cumsum()])
    packed = segments.Segment.pack(codes, size=size, recipe=recipes.get("latent-terms"))
    assert {int(form) & 3 for form in packed.arrays["records"][:, 0]} == {0, 1, 2, 3}
    for position in [0, 1, 63, 64, 511, 512, 1024, 2999, *random.integers(0, n, 200).tolist()]:
        one, expected = packed.documents(np.array([position])), codes.slice(position, position + 1)
        assert (one.ids.tolist(), one.codes.tolist()) == (expected.ids.tolist(), expected.codes.tolist())


# --- what is learned ---------------------------------------------------------------------------------------------


def trust(hits: Results, feedback: Feedback) -> list[float]:
    shares = [(hit.score / hits[0].score) ** feedback.focus for hit in hits]
    return [share / sum(shares) for share in shares]


def plain_rocchio(index: Index, query: str, *, feedback: Feedback) -> dict[int, float]:
    """Written out for positive weights."""
    first = index.search(query, k=feedback.documents)
    own = {concept.id: concept.weight for concept in first.concepts}
    every, factors = np.arange(96, dtype=np.int32), index.searcher.document_scorer.factors
    mean = np.zeros(96)
    for hit, share in zip(first, trust(first, feedback), strict=True):
        vector = index.searcher.document_scorer.document_weights(hit.position, every) * factors
        mean += share * vector / np.linalg.norm(vector)
    best = sorted(range(96), key=lambda concept: (-mean[concept], concept))[: feedback.concepts]
    scale = feedback.weight * np.linalg.norm(list(own.values())) / np.linalg.norm(mean[best])
    for concept in best:
        own[concept] = own.get(concept, 0.0) + scale * mean[concept]
    return own


def plain_rm3(index: Index, query: str, *, feedback: Feedback) -> dict[int, float]:
    """The mixture of two distributions, times idf, up to a factor."""
    first = index.search(query, k=feedback.documents)
    every, factors = np.arange(96, dtype=np.int32), index.searcher.document_scorer.factors
    own = np.zeros(96)
    for concept in first.concepts:
        own[concept.id] = concept.weight / factors[concept.id]
    model = np.zeros(96)
    for hit, share in zip(first, trust(first, feedback), strict=True):
        vector = index.searcher.document_scorer.document_weights(hit.position, every)
        model += share * vector / vector.sum()
    best = sorted(range(96), key=lambda concept: (-model[concept] * factors[concept], concept))[: feedback.concepts]
    kept = np.where(np.isin(every, best), model, 0.0)
    mixed = (1 - feedback.weight) * own / own.sum() + feedback.weight * kept / kept.sum()
    return dict(enumerate(mixed * factors * own.sum() / (1 - feedback.weight)))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(("method", "plain"), [("rocchio", plain_rocchio), ("rm3", plain_rm3)])
def test_weights_are_those_of_the_plain_formula(index: Index, query: str, method: str, plain: object) -> None:
    feedback = Feedback(method, documents=4, concepts=12, weight=0.4, focus=3)  # type: ignore[arg-type]
    results = index.search(query, feedback=feedback)
    expected = {id: weight for id, weight in plain(index, query, feedback=feedback).items() if weight}  # type: ignore[operator]
    assert {concept.id: concept.weight for concept in results.concepts} == pytest.approx(expected, rel=1e-4)


def test_what_was_added_says_where_from(index: Index) -> None:
    results = index.search("yeast dough", feedback=Feedback(documents=3, concepts=10, weight=0.5))
    first = [hit.id for hit in index.search("yeast dough", k=3)]
    assert results.added
    for concept in results.added:
        assert concept.documents
        assert set(concept.documents) <= set(first)
        for id in first:
            position = index.documents.position(id)
            has = index.searcher.document_scorer.document_weights(position, np.array([concept.id], np.int32))[0] > 0
            assert has == (id in concept.documents)
    new = next(concept for concept in results.added if concept.own == 0)
    assert str(new) == f"added {new.label} ({new.weight:.2f}) from {', '.join(new.documents)}"
    assert json.loads(json.dumps(results.to_dict()))["added"][0]["documents"] == list(results.added[0].documents)


def test_marked_documents_rise_and_fall(index: Index) -> None:
    plain = index.search("light", k=40)
    bread = next(hit for hit in plain if int(hit.id[1:]) % 4 == 0)
    liked = index.search("light", k=40, like=[bread.id])
    assert next(hit for hit in liked if hit.id == bread.id).rank < bread.rank
    assert {name for concept in liked.added for name in concept.documents} == {bread.id}
    top = plain[0]
    unliked = index.search("light", k=40, unlike=[top.id], feedback=Feedback(documents=0, against=1.0, weight=1.0))
    assert all(concept.weight < 0 < concept.own for concept in unliked.added)
    scores = {hit.id: hit.score for hit in unliked}
    assert scores.get(top.id, 0.0) < top.score
    assert "lowered" in str(unliked.added[0])


def test_what_is_steered_away_does_not_come_back(index: Index) -> None:
    added = index.search("yeast dough", feedback=5).added
    strongest = added[0]
    for steer in ({strongest.id: 0.0}, {strongest.label: 0.0}):
        again = index.search("yeast dough", feedback=5, steer=dict(steer))
        assert strongest.id not in {concept.id for concept in (*again.concepts, *again.added)}


def test_with_a_filter_only_what_it_lets_through_is_learned_from(index: Index) -> None:
    results = index.search("light", feedback=5, filter={"n": {"gte": 20}}, idf_of_subset=True)
    assert {int(name[1:]) >= 20 for concept in results.added for name in concept.documents} == {True}
    for hit in results:
        assert abs(sum(part.value for part in hit.explain().contributions) - hit.score) <= 1e-5


def test_segments_change_nothing(living: Index, tmp_path: Path) -> None:
    whole = small.build(tmp_path / "whole", [doc for doc in small.documents(40) if doc.id not in ("d3", "d25")])
    for query in QUERIES:
        ours, theirs = (each.search(query, k=9, feedback=4) for each in (living, whole))
        assert found(ours) == found(theirs)
        assert [replace(one, label="") for one in ours.added] == [replace(one, label="") for one in theirs.added]


def test_rank_explanations_know_feedback(index: Index) -> None:
    hit = index.search("light", k=40, feedback=4)[7]
    explanation = why(index, "light", hit.id, feedback=4)
    assert (explanation.rank, explanation.score) == (8, hit.score)
    assert index.search_many(["light"], k=40, feedback=4)[0][7].id == hit.id


def test_mistakes_are_told(index: Index) -> None:
    for wrong in (
        {"method": "rm4"},
        {"documents": -1},
        {"concepts": 0},
        {"weight": -0.1},
        {"focus": -1},
        {"against": 2.0},
    ):
        with pytest.raises(InputError, match="allowed"):
            Feedback(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="below 1 for rm3"):
        Feedback("rm3", weight=1.0)
    with pytest.raises(NotFoundError, match='no document "x"'):
        index.search("light", like=["x"])
    with pytest.raises(InputError, match="as like and as unlike"):
        index.search("light", like=["d1"], unlike=["d1"])
    assert found(index.search("light", like="d1")) == found(index.search("light", like=["d1"])), "one id"
    assert Learning.of(None) is None


# --- commands and evaluation -------------------------------------------------------------------------------------


def test_commands(tmp_path: Path) -> None:
    place = furnished(tmp_path) / "docs.lexent"
    shown = good("search", place, "dough", "--feedback", 3, "--feedback-weight", 0.5).stdout
    assert "added" in shown or "raised" in shown
    assert "  from d" in shown
    as_json = data("search", place, "dough", "--feedback", 3, "--feedback-method", "rm3", "--feedback-concepts", 4)
    assert 0 < len(as_json["added"]) <= 4
    assert data("search", place, "dough", "--like", "d4", "--unlike", "d8")["added"]
    second = data("search", place, "dough", "--feedback", 3)["hits"][1]
    assert data("explain", place, "dough", second["id"], "--feedback", 3)["score"] == second["score"]
    refused = run("search", place, "dough", "--feedback-method", "rm3")
    assert refused.exit_code == 2
    assert "add --feedback 5" in refused.stderr


def test_evaluation_has_it_as_a_system() -> None:
    documents = small.documents(40)
    collection = Collection(
        "small", documents, {"q1": "yeast dough", "q2": "king rook"}, {"q1": {"d0": 1, "d4": 1}, "q2": {"d2": 1}}
    )
    report = evaluate(
        collection, recipe="latent-terms", encoder=TinyEncoder(), lexicon=small.lexicon(), baselines=["bm25"],
        feedback=Feedback(documents=3),
    )  # fmt: skip
    assert list(report.systems) == ["latent-terms", "latent-terms+rocchio", "bm25"]
    gain = report.gains["latent-terms+rocchio"]["nDCG@10"]
    systems = report.systems
    assert gain.against == "latent-terms"
    assert gain.difference == systems["latent-terms+rocchio"]["nDCG@10"] - systems["latent-terms"]["nDCG@10"]
    assert report.to_json()["feedback"]["documents"] == 3


def test_a_query_does_not_learn_from_itself() -> None:
    """Where a query stands in the corpus, it is the first hit of the first search."""
    documents = [*small.documents(12), Document("q", "yeast dough oven crust")]
    collection = Collection("self", documents, {"q": "yeast dough oven crust"}, {"q": {"d0": 1}})
    bench = Bench(encoder=TinyEncoder(), lexicon=small.lexicon())
    latent = bench.latent("latent-terms")
    without = Collection("self", documents[:-1], collection.queries, collection.qrels)
    ours = Expanded(latent, Feedback(documents=1, weight=0.5)).run(collection, depth=5)["q"]
    assert "q" not in ours
    scorer = latent.scorer(collection)
    weights = scorer.query_weights(latent.queries(collection))
    best = scorer.top_weighted(weights, 2).positions[0].tolist()
    assert best[0] == 12, "itself"
    assert best[1] == scorer.top_weighted(weights, 13).positions[0].tolist()[1]
    assert without.documents[best[1]].id in ours


@pytest.mark.data
def test_the_first_hits_of_real_documents(data_dir: Path, shared_encoder: Encoder, tmp_path: Path) -> None:
    """The readable side, with the shipped lexicon: what is added has a name and comes from the first hits."""
    cranfield = load(data_dir / "cranfield").documents[:40]
    index = Index.build(cranfield, out=tmp_path / "a.lexent", encoder=shared_encoder)
    query = "heat transfer in boundary layers"
    first = [hit.id for hit in index.search(query, k=5)]
    results = index.search(query, k=20, feedback=5)
    assert results.added
    assert {name for concept in results.added for name in concept.documents} <= set(first)
    assert all(concept.label for concept in results.added)
    for hit in results:
        assert abs(sum(part.value for part in hit.explain().contributions) - hit.score) <= 1e-5
