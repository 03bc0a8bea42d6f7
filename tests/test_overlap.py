"""Test queries by what training has seen of them: new, document seen, query seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lexent.evaluation.collections import Collection, load
from lexent.evaluation.measures import Scores
from lexent.evaluation.overlap import groups_of, nearest_overlap, parts_of, train_groups
from lexent.types import Document

pytest.importorskip("bm25s")
pytest.importorskip("ir_measures")


def collection(queries: dict[str, tuple[str, dict[str, int]]], split: str) -> Collection:
    documents = [Document(f"d{at}", f"text {at}") for at in range(6)]
    texts = {id: text for id, (text, _) in queries.items()}
    return Collection("c", documents, texts, {id: judged for id, (_, judged) in queries.items()}, split)


TRAIN = collection(
    {
        "t1": ("Dexamethasone increases risk of postoperative bleeding.", {"d1": 1, "d4": 0}),
        "t2": ("Zebrafish regenerate heart muscle", {"d2": 1}),
        "t3": ("is it?", {"d0": 1}),
    },
    "train",
)
TEST = collection(
    {
        "q1": ("dexamethasone decreases risk of postoperative bleeding", {"d5": 1}),  # one word differs
        "q2": ("Statins lower cholesterol", {"d1": 1, "d3": 1}),
        "q3": ("Statins prevent dementia", {"d3": 1}),
        "q4": ("Aspirin thins blood", {"d4": 1}),  # d4 was judged not relevant
        "q5": ("Is it?", {"d5": 1}),  # the same, and without a content word
        "q6": ("was it?", {"d5": 1}),
    },
    "test",
)


def test_queries_are_told_apart_by_what_training_has_seen() -> None:
    assert groups_of(TEST, TRAIN) == {
        "q1": "query seen",
        "q2": "document seen",
        "q3": "new",
        "q4": "new",
        "q5": "query seen",
        "q6": "new",
    }
    assert set(groups_of(TRAIN, TRAIN).values()) == {"query seen"}
    assert train_groups(TEST, TEST) == {}


def test_overlap_is_the_jaccard_index_of_content_words() -> None:
    texts = ["red blue green", "red", "nothing shared", "Red, BLUE and the green"]
    others = ["blue green yellow", "red blue green"]
    assert nearest_overlap(texts, others) == pytest.approx([1, 1 / 3, 0, 1])
    assert nearest_overlap(texts, []).tolist() == [0, 0, 0, 0]
    random = np.random.default_rng(0)
    many = [" ".join(f"w{n}" for n in random.integers(0, 30, 6)) for _ in range(600)]  # more than a chunk
    sets = [set(text.split()) for text in many]
    wanted = [max(len(one & two) / len(one | two) for two in sets[:40]) for one in sets]
    assert nearest_overlap(many, many[:40]) == pytest.approx(wanted)


def test_new_queries_come_first_and_all_last() -> None:
    per_query = {"base": [0.0, 0.0, 0.0, 0.5, 0.0, 0.25], "ours": [1.0, 1.0, 0.0, 0.5, 0.9, 0.5]}
    scores = {
        name: Scores({"RR@10": float(np.mean(values))}, {"RR@10": dict(zip(TEST.queries, values, strict=True))})
        for name, values in per_query.items()
    }
    parts = parts_of(groups_of(TEST, TRAIN), scores, "base")
    assert list(parts) == ["new", "document seen", "query seen", "all"]
    assert [part.queries for part in parts.values()] == [3, 1, 2, 6]
    assert parts["new"].values["ours"]["RR@10"] == pytest.approx(1 / 3)
    assert parts["new"].values["base"]["RR@10"] == pytest.approx(0.25)
    assert parts["all"].values["ours"]["RR@10"] == scores["ours"].means["RR@10"]
    assert set(parts["new"].p_values) == {"ours"}
    assert 0 < parts["new"].p_values["ours"]["RR@10"] < 1
    assert parts_of({}, scores, "base") == {}


@pytest.mark.parametrize(("recipe", "trained"), [("latent-terms", False), ("ssr", True), ("uhd", True)])
def test_lexicons_that_learned_from_queries_are_known(recipe: str, trained: bool) -> None:
    from lexent.evaluation.systems import Bench
    from lexent.recipes import get

    assert Bench().lexicon(get(recipe)).learned_from_pairs is trained


@pytest.mark.data
def test_most_of_scifacts_test_queries_were_seen(data_dir: Path) -> None:
    if not (data_dir / "scifact").is_dir():
        pytest.skip(f"no SciFact in {data_dir}")
    found = list(train_groups(data_dir / "scifact", load(data_dir / "scifact", split="test")).values())
    assert {group: found.count(group) for group in dict.fromkeys(found)} == {
        "query seen": 112,
        "document seen": 85,
        "new": 103,
    }
