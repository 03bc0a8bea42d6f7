"""TREC run files, and the order in which a run's documents stand."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexent.errors import InputError, NotFoundError, WriteError
from lexent.evaluation import Collection, runs
from lexent.types import Document

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
SCORES = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.dictionaries(IDS, st.dictionaries(IDS, SCORES, min_size=1, max_size=4), min_size=1, max_size=3))
def test_a_run_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, run: runs.Run) -> None:
    path = tmp_path_factory.mktemp("runs") / "any.run"
    runs.write(run, path)
    assert runs.read(path) == run


@given(IDS)
def test_escaped_ids_have_no_blanks_and_turn_back(id: str) -> None:
    assert len(runs.escape(id).encode().split()) == 1
    assert runs.unescape(runs.escape(id)) == id


def test_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "people.run"
    runs.write({"query_0": {"Dorathea Bastress": 0.1, "Geneva Durben": 2.5, "100%": 0.1}}, path, tag="my system")
    assert path.read_text() == (
        "query_0 Q0 Geneva%20Durben 1 2.5 my%20system\n"
        "query_0 Q0 Dorathea%20Bastress 2 0.1 my%20system\n"
        "query_0 Q0 100%25 3 0.1 my%20system\n"
    )
    assert [file.name for file in path.parent.iterdir()] == ["people.run"]
    runs.write({"q": {"a": 1.0}}, tmp_path / "a.run.gz")
    assert (tmp_path / "a.run.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert runs.read(tmp_path / "a.run.gz") == {"q": {"a": 1.0}}


def test_ids_that_only_look_escaped_are_kept_when_known(tmp_path: Path) -> None:
    path = tmp_path / "others.run"
    path.write_text("q 0 http://x/a%20b 1 2.0 theirs\n")
    assert runs.read(path) == {"q": {"http://x/a b": 2.0}}
    assert runs.read(path, known={"http://x/a%20b"}) == {"q": {"http://x/a%20b": 2.0}}


def test_ranks_are_those_of_trec_eval() -> None:
    """Ties, also those that only float32 makes, are ordered as trec_eval (through ir_measures) orders them."""
    random = np.random.default_rng(5)
    for _ in range(50):
        names = [chr(int(code)) for code in random.choice(np.r_[65:91, 97:123, 0x3B1:0x3C9], 12, replace=False)]
        results = {name: float(random.integers(3)) + 1e-12 * random.random() for name in names}
        order = [document for document, _ in runs.ranked(results)]
        for depth in (1, 3, 7):
            found = ir_measures.calc_aggregate(
                [ir_measures.parse_measure(f"P@{depth}")], {"q": dict.fromkeys(order[:depth], 1)}, {"q": results}
            )
            assert list(found.values()) == [1.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q Q0 a 1 2.0\n", "line 1: 5 columns; a TREC run has 6: query Q0 document rank score tag"),
        ("q Q0 a 1 2.0 t\n\nq Q0 b 2 high t\n", 'line 3: the score is "high"; column 5 must be a number'),
        ("q Q0 a 1 nan t\n", 'line 1: the score is "nan"'),
        ("q Q0 a 1 2.0 t\nq Q0 a 2 1.0 t\n", 'line 2: the document "a" twice for the query "q"'),
        ("", "an empty run"),
    ],
)
def test_bad_run_files(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.run"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        runs.read(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_what_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        runs.read(tmp_path / "none.run")
    with pytest.raises(InputError, match="score nan"):
        runs.write({"q": {"a": float("nan")}}, tmp_path / "a.run")
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError):
        runs.write({"q": {"a": 1.0}}, tmp_path / "file" / "a.run")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_only_a_document_that_is_the_query_is_left_out() -> None:
    collection = Collection(
        name="arguments",
        documents=[
            Document("1", "Meat  is murder.", "ethics"),
            Document("2", "Wings in a slipstream"),
            Document("3", "x"),
        ],
        queries={"1": "Meat is murder.", "2": "What is lift?", "3": "y"},
        qrels={"1": {"2": 1}, "2": {"2": 1}, "3": {"3": 1}},
    )
    assert runs.self_matches(collection) == {"1": "1"}
    positions = np.array([[0, 1, 2], [1, 0, -1], [-1, -1, -1]])
    scores = np.array([[3.0, 2.0, 1.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]], np.float32)
    assert runs.from_top(collection, positions, scores=scores, depth=2) == {
        "1": {"2": 2.0, "3": 1.0},
        "2": {"2": 2.0, "1": 1.0},
        "3": {},
    }
    assert runs.from_top(collection, positions, scores=scores, depth=1)["1"] == {"2": 2.0}
