"""Fusion of rankings: parts that sum to the score, against hand-written formulas."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import small
from commands import data, furnished, good, run
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.errors import InputError, NotFoundError
from lexent.evaluation import Collection, baselines, evaluate, measures, runs
from lexent.evaluation.runs import fused
from lexent.search.fusion import WEIGHTS, Fusion, Method, fuse
from lexent.types import Document

SCORES = st.dictionaries(st.integers(0, 30), st.floats(-50, 50).map(lambda score: round(score, 2)), max_size=20)
METHODS = st.sampled_from(["rrf", "sum"])
COLLECTION = Collection(
    "small",
    small.documents(40),
    {"q1": "yeast dough", "q2": "king rook", "q3": "dream at night"},
    {"q1": {"d0": 1, "d4": 1}, "q2": {"d2": 1}, "q3": {"d3": 1, "d7": 2}},
)


def ranking(scores: dict[int, float]) -> list[tuple[int, float]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


@settings(max_examples=150)
@given(first=SCORES, second=SCORES, method=METHODS, weight=st.floats(0, 5))
def test_parts_sum_to_the_score(
    first: dict[int, float], second: dict[int, float], method: Method, weight: float
) -> None:
    rankings = {"a": ranking(first), "b": ranking(second)}
    found = fuse(rankings, Fusion(method, {"b": weight}))
    assert {one.key for one in found} == first.keys() | second.keys()
    assert all(above.score >= below.score for above, below in pairwise(found))
    for one in found:
        assert sum(part.value for part in one.parts) == pytest.approx(one.score, abs=1e-12)
        for part in one.parts:
            given = rankings[part.name]
            assert given[part.rank - 1] == (one.key, part.score)
            scores = [score for _, score in given]
            low, spread = min(scores), float(np.std(scores))
            own = weight if part.name == "b" else 1
            if method == "sum" and spread <= 1e-9:
                assert part.value == pytest.approx(without_spread(rankings, {"a": 1.0, "b": weight}, part.name))
            else:
                share = 1 / (60 + part.rank) if method == "rrf" else (part.score - low) / spread
                assert part.value == pytest.approx(share * own)
    assert fuse(rankings, Fusion(method, {"b": weight}), depth=3) == found[:3]


def without_spread(rankings: dict[str, list[tuple[int, float]]], weights: dict[str, float], name: str) -> float:
    """What a ranking without spread gives: its weight, on top of the most that another gives."""
    most = 0.0
    for other, ranked in rankings.items():
        scores = [score for _, score in ranked]
        if scores and np.std(scores) > 1e-9:
            most = max(most, weights[other] * (max(scores) - min(scores)) / float(np.std(scores)))
    return weights[name] + most if weights[name] else 0.0


@pytest.mark.parametrize("matches", [[("only", 7.0)], [("only", 7.0), ("other", 7.0)]])
def test_a_ranking_without_spread_is_not_passed_by_what_it_did_not_find(matches: list[tuple[str, float]]) -> None:
    """One match by words, or several of one score: they stand above all documents that have none of the words."""
    concepts = [(f"d{number}", 100.0 - number**2) for number in range(9)]
    for ranked in (concepts, [*concepts, ("only", 1.0)], [*concepts, ("only", -30.0), ("other", -40.0)]):
        found = fuse({"latent-terms": ranked, "bm25": matches}, Fusion("sum", {"bm25": 0.25}))
        assert {one.key for one in found[: len(matches)]} == {key for key, _ in matches}
        assert found[0].key == "only"
        assert [one.key for one in found if one.key.startswith("d")] == [key for key, _ in concepts]
        assert sum(part.value for part in found[0].parts) == pytest.approx(found[0].score)
    off = fuse({"latent-terms": concepts, "bm25": matches}, Fusion("sum", {"bm25": 0.0}))
    assert off[0].key == "d0", "a weight of 0 counts for nothing"


def test_the_only_document_with_the_word_comes_first(tmp_path: Path) -> None:
    docs = [*small.documents(30), small.Document("rare", "zymurgy", metadata={})]
    with small.build(tmp_path / "i", docs) as index:
        plain = index.search("pawn bishop rook castle check mate opening king queen board zymurgy")
        found = index.search_fused("pawn bishop rook castle check mate opening king queen board zymurgy", k=31)
        assert plain[0].id != "rare"
        only = index.search_fused("zymurgy", k=31)
        assert only[0].id == "rare"
        words = {hit.id for hit in found if any(part.name == "bm25" for part in hit.parts)}
        assert "rare" in words
        shown = data("search", tmp_path / "i", "zymurgy", "--fuse", "bm25", "--lexicon", _saved(tmp_path))["hits"]
        assert shown[0]["id"] == "rare"
        assert sum(part["value"] for part in shown[0]["parts"]) == pytest.approx(shown[0]["score"])


def _saved(folder: Path) -> Path:
    return small.lexicon().save(folder / "lexicon")


@given(scores=SCORES, method=METHODS)
def test_a_ranking_fused_with_itself_keeps_its_order(scores: dict[int, float], method: Method) -> None:
    once = ranking(scores)
    assert [one.key for one in fuse({"a": once, "b": once}, Fusion(method))] == [key for key, _ in once]
    assert [one.key for one in fuse({"a": once}, Fusion(method))] == [key for key, _ in once]


@given(first=SCORES, second=SCORES, scale=st.floats(0.01, 100), shift=st.floats(-100, 100))
def test_the_scale_of_scores_does_not_matter(
    first: dict[int, float], second: dict[int, float], scale: float, shift: float
) -> None:
    moved = [(key, score * scale + shift) for key, score in ranking(first)]
    for method in ("rrf", "sum"):
        before = fuse({"a": ranking(first), "b": ranking(second)}, Fusion(method))
        after = {one.key: one.score for one in fuse({"a": moved, "b": ranking(second)}, Fusion(method))}
        assert after == pytest.approx({one.key: one.score for one in before}, abs=1e-6)


def test_equal_sums_keep_the_order_of_the_rankings() -> None:
    first, second = [("x", 3.0), ("y", 2.0)], [("y", 9.0), ("x", 1.0)]
    assert [one.key for one in fuse({"a": first, "b": second}, Fusion("rrf"))] == ["x", "y"]
    assert [one.key for one in fuse({"b": second, "a": first}, Fusion("rrf"))] == ["y", "x"]


def test_mistakes_are_told() -> None:
    with pytest.raises(InputError, match="allowed: rrf or sum"):
        Fusion("max")  # type: ignore[arg-type]
    with pytest.raises(InputError, match='the weight of "a" is -1'):
        Fusion("sum", {"a": -1})
    with pytest.raises(InputError, match="k of the fusion"):
        Fusion(k=-1)


# --- runs and evaluation -----------------------------------------------------------------------------------------


def parts(**settings: object) -> dict[str, object]:
    return {"recipe": "latent-terms", "encoder": TinyEncoder(), "lexicon": small.lexicon(), **settings}


@pytest.mark.parametrize("method", ["rrf", "sum"])
def test_evaluation_fuses_its_parts(tmp_path: Path, method: Method) -> None:
    report = evaluate(COLLECTION, **parts(fuse={"dense": 0.5, "bm25": 1.0}, fusion=method, run_dir=tmp_path))  # type: ignore[arg-type]
    name = f"{method}:latent-terms+dense+bm25"
    assert list(report.systems) == ["latent-terms", "dense", "bm25", name]
    single = {part: runs.read(tmp_path / f"small-test-{part}.run") for part in ("latent-terms", "dense", "bm25")}
    expected = fused(single, Fusion(method, {"dense": 0.5}), depth=1000)
    written = runs.read(tmp_path / f"small-test-{method}-latent-terms+dense+bm25.run")
    assert written == {query: pytest.approx(results) for query, results in expected.items()}
    for measure, gain in report.gains[name].items():
        best = max(("latent-terms", "dense", "bm25"), key=lambda part: report.systems[part][measure])
        assert gain.against == best
        assert gain.difference == report.systems[name][measure] - report.systems[best][measure]
        wanted = measures.p_value(report.per_query[name][measure], report.per_query[best][measure])
        assert gain.p == pytest.approx(wanted, nan_ok=True)
    shown = report.to_json()
    assert shown["gains"][name]["nDCG@10"]["against"] == report.gains[name]["nDCG@10"].against
    assert shown["fusion"]["method"] == method


def test_run_files_are_fused_by_name(tmp_path: Path) -> None:
    evaluate(COLLECTION, recipe=None, baselines=["bm25"], run_dir=tmp_path)
    path = tmp_path / "small-test-bm25.run"
    report = evaluate(COLLECTION, recipe=None, baselines=["bm25"], runs=[path], fuse=["bm25", "small-test-bm25"])
    name = next(name for name in report.systems if name.endswith("bm25+small-test-bm25"))
    assert report.systems[name] == report.systems["bm25"], "a run with itself keeps its order"
    assert report.gains[name]["nDCG@10"].p == 1.0


def test_a_part_that_is_no_baseline_yet_is_run(tmp_path: Path) -> None:
    report = evaluate(COLLECTION, **parts(baselines=[], fuse=["bm25"]))  # type: ignore[arg-type]
    assert set(report.systems) > {"latent-terms", "bm25"}
    assert report.to_json()["fusion"]["weights"] == {"bm25": WEIGHTS["sum"]["bm25"]}
    with pytest.raises(NotFoundError, match='nothing named "splade" to fuse; what there is: latent-terms, dense, bm25'):
        evaluate(COLLECTION, **parts(fuse=["splade"]))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="two systems or more; given: latent-terms"):
        evaluate(COLLECTION, **parts(fuse=["latent-terms"]))  # type: ignore[arg-type]


def test_the_verb_fuse(tmp_path: Path) -> None:
    first, second = {"q": {"a": 3.0, "b": 1.0}, "p": {"a": 1.0}}, {"q": {"b": 9.0, "c": 1.0}}
    runs.write(first, tmp_path / "1.run")
    runs.write(second, tmp_path / "2.run")
    words = ("fuse", tmp_path / "1.run", tmp_path / "2.run", "--out", tmp_path / "3.run", "--method", "rrf")
    assert data(*words)["queries"] == 2
    assert runs.read(tmp_path / "3.run") == {
        "q": {"b": pytest.approx(1 / 62 + 1 / 61), "a": pytest.approx(1 / 61), "c": pytest.approx(1 / 62)},
        "p": {"a": pytest.approx(1 / 61)},
    }
    good(*words, "--method", "sum", "--weights", "1,0.5", "--depth", 2)
    assert runs.read(tmp_path / "3.run")["q"] == {"a": 2.0, "b": 1.0}, "a spread of 1 and of 4"
    for wrong, hint in (
        (("fuse", tmp_path / "1.run", "--out", tmp_path / "4.run"), "two run files or more"),
        ((*words, "--weights", "1"), "1 numbers for 2"),
        ((*words, "--weights", "1,x"), '"x" is no weight'),
    ):
        refused = run(*wrong)
        assert refused.exit_code == 2
        assert hint in refused.stderr


# --- concepts and words of an index ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Several segments, with deleted documents."""
    made = small.build(tmp_path_factory.mktemp("index") / "a.lexent", small.documents(20))
    made.add(small.documents(40)[20:])
    made.delete(["d3", "d25"])
    return made


@settings(deadline=None, max_examples=40)
@given(
    query=st.sampled_from(["yeast dough", "night light", "the king and his queen", "xyzzy"]),
    method=METHODS,
    weight=st.none() | st.floats(0, 3),
    feedback=st.none() | st.integers(1, 4),
)
def test_fused_hits_sum_twice(
    living: Index, query: str, method: Method, weight: float | None, feedback: int | None
) -> None:
    found = living.search_fused(query, k=30, fuse={"bm25": weight}, fusion=method, feedback=feedback)
    assert all(above.score >= below.score for above, below in pairwise(found))
    assert [hit.rank for hit in found] == list(range(1, len(found) + 1))
    concepts = {hit.id: hit for hit in living.search(query, k=1000, feedback=feedback)}
    for hit in found:
        assert hit.id not in ("d3", "d25"), "deleted"
        assert sum(part.value for part in hit.parts) == pytest.approx(hit.score, abs=1e-9)
        for part in hit.parts:
            reason = hit.reasons[part.name]
            assert abs(sum(one.value for one in reason.contributions) - part.score) <= 1e-5
        own = {part.name: part for part in hit.parts}.get("latent-terms")
        assert (own is not None) == (hit.id in concepts)
        assert own is None or (own.rank, own.score) == (concepts[hit.id].rank, concepts[hit.id].score)
    with_nothing = living.search_fused(query, k=30, fuse={"bm25": 0.0}, fusion=method, feedback=feedback)
    shared = [hit.id for hit in with_nothing if hit.id in concepts]
    assert shared == [id for id in concepts if id in shared], "a side of weight 0 moves nothing"


def test_words_are_found_by_bm25(living: Index) -> None:
    documents = [document for document in small.documents(40) if document.id not in ("d3", "d25")]
    collection = Collection("words", documents, {"q": "gravity light"}, {"q": {"d1": 1}})
    rival = runs.ranked(baselines.bm25(collection, k=40)["q"])
    side = living.searcher.lexical()
    query = side.query("gravity light")
    best = side.document_scorer.top_weighted(query.vectors(side.document_scorer.size), 40)
    places = best.positions[0][best.positions[0] >= 0].tolist()
    ours = dict(zip(living.documents.ids(places), best.scores[0].tolist(), strict=False))
    assert ours.keys() == dict(rival).keys()
    # A factor of k1 + 1 is left out there, and counts and lengths are kept on a logarithmic scale here.
    assert {id: score / 2.5 for id, score in ours.items()} == pytest.approx(dict(rival), rel=0.03)
    assert living.searcher.lexical() is side
    assert len(side.query("the of").ids) == 0


def test_a_word_counts_as_often_as_it_stands_in_a_text(tmp_path: Path) -> None:
    """BM25 by its formula, for texts of equal length."""
    texts = ["comet dust dust dust", "comet comet dust dust", "comet comet comet dust"]
    with small.build(tmp_path / "a", [Document(str(place), text) for place, text in enumerate(texts)]) as index:
        side = index.searcher.lexical()
        query = side.query("comet")
        found = side.document_scorer.scores(query.ids, query.weights)[0]
    expected = [count * 2.5 / (count + 1.5) * float(query.weights[0]) for count in (1, 2, 3)]
    assert found.tolist() == pytest.approx(expected, rel=0.03)


def test_fused_search_takes_filters_and_refuses_what_it_lacks(living: Index) -> None:
    found = living.search_fused("light", k=40, filter={"n": {"gte": 30}})
    assert found
    assert all(int(hit.id[1:]) >= 30 for hit in found)
    with pytest.raises(NotFoundError, match='cannot be fused with "splade"; allowed: bm25, dense'):
        living.search_fused("light", fuse=["splade"])
    with pytest.raises(NotFoundError, match="keeps no vectors; build it with them"):
        living.search_fused("light", fuse=["dense"])
    with pytest.raises(InputError, match="nothing to fuse"):
        living.search_fused("light", fuse=[])
    with pytest.raises(InputError, match="k is -1"):
        living.search_fused("light", k=-1)


def test_dense_vectors_are_fused_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hit of another side has its cosine, also where the dense ranking alone would be cut before it."""
    with small.build(tmp_path / "a", extras=["dense", "lexical"]) as index:
        index.delete(["d3"])
        cosines = {hit.id: hit.score for hit in index.dense_search("night light", k=40)}
        every = index.search_fused("night light", k=40, fuse=["bm25", "dense"])
        monkeypatch.setattr("lexent.search.fused.FUSED_DOCUMENTS", 2)
        few = index.search_fused("night light", k=40, fuse={"bm25": 1.0, "dense": 2.0})
        for found in (every, few):
            for hit in found:
                parts = {part.name: part for part in hit.parts}
                assert parts["dense"].score == cosines[hit.id]
                assert sum(part.value for part in hit.parts) == pytest.approx(hit.score, abs=1e-9)
                (reason,) = hit.reasons["dense"].contributions
                assert (reason.label, reason.value) == ("cosine of the vectors", pytest.approx(cosines[hit.id]))
        assert {hit.id for hit in every} == cosines.keys()
        best = [index.search("night light", k=2), index.dense_search("night light", k=2)]
        assert {hit.id for hit in few} >= {hit.id for hits in best for hit in hits}
        assert len(few) < 7


def test_fused_search_as_a_command(tmp_path: Path) -> None:
    place = furnished(tmp_path) / "docs.lexent"
    found = data("search", place, "dough", "--fuse", "bm25=0.5", "-k", 3, "--contributions", 2)
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3]
    for hit in found["hits"]:
        assert sum(part["value"] for part in hit["parts"]) == pytest.approx(hit["score"])
        for part in hit["parts"]:
            assert len(part["contributions"]) <= 2
            own = sum(one["value"] for one in part["contributions"]) + part["rest"]
            assert own == pytest.approx(part["score"], abs=1e-5)
    words = [
        one["label"] for part in found["hits"][0]["parts"] if part["name"] == "bm25" for one in part["contributions"]
    ]
    assert words == ["dough"]
    shown = good("search", place, "dough", "--fuse", "bm25", "--fusion", "rrf").stdout
    assert "bm25  rank 1" in shown
    assert run("search", place, "dough", "--fuse", "dense").exit_code == 3
