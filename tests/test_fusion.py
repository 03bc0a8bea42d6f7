"""Fusion of rankings: parts that sum to the score, against hand-written formulas."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import small
from commands import data, good, run
from lexent.encoders import TinyEncoder
from lexent.errors import InputError, NotFoundError
from lexent.evaluation import Collection, evaluate, measures, runs
from lexent.evaluation.fused import fused
from lexent.search.fusion import WEIGHTS, Fusion, Method, fuse

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
            share = 1 / (60 + part.rank) if method == "rrf" else (part.score - low) / spread if spread > 1e-9 else 1
            assert part.value == pytest.approx(share * (weight if part.name == "b" else 1))
    assert fuse(rankings, Fusion(method, {"b": weight}), depth=3) == found[:3]


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
    return {"encoder": TinyEncoder(), "lexicon": small.lexicon(), **settings}


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
        assert gain.p == measures.p_value(report.per_query[name][measure], report.per_query[best][measure])
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
