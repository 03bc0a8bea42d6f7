"""lexent concepts on an index: names from its documents, what they come from, and naming anew."""

from __future__ import annotations

from pathlib import Path

import pytest

import named
import small
from commands import data, good, run
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.lexicon import Concept, Concepts

YEAST, FLOUR = named.WORDS.index("yeast"), named.WORDS.index("flour")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An index whose lexicon calls its concepts by what they are not, and keeps the words that raise one of them."""
    lexicon = named.lexicon()
    raised = {YEAST: (("leaven", 0.25), ("bread", 0.125))}
    wrong = [Concept(at, f"wrong {at}", raised_by=raised.get(at, ())) for at in range(lexicon.size)]
    lexicon.renamed(Concepts(wrong)).save(tmp_path / "lexicon")
    texts = [text.replace("yeast", "flour") for text in named.texts(80)]
    Index.build(texts, out=tmp_path / "a.lexent", encoder=TinyEncoder(), lexicon=str(tmp_path / "lexicon")).close()
    return tmp_path


def test_list_and_find_know_the_names_of_the_index(place: Path) -> None:
    own = ("--index", place / "a.lexent")
    listed = {row["id"]: row["label"] for row in data("concepts", "list", *own, "-n", 100)["concepts"]}
    assert listed[FLOUR].startswith("flour")
    assert data("concepts", "find", "flour", *own)["concepts"][0]["id"] == FLOUR
    assert f"#{FLOUR}" in good("concepts", "find", "flour", *own).stdout
    assert data("concepts", "find", "flour", "--lexicon", place / "lexicon")["concepts"] == []


def test_show_says_what_a_name_comes_from(place: Path) -> None:
    shown = data("concepts", "show", "flour", "--index", place / "a.lexent")
    assert (shown["id"], shown["source"], shown["plain"]) == (FLOUR, "documents", f"wrong {FLOUR}")
    assert shown["raised_here"][0]["word"] == "flour"
    texts = [text.replace("yeast", "flour") for text in named.texts(80)]
    assert shown["raised_here"][0]["count"] == sum(text.split().count("flour") for text in texts)
    assert (shown["raised_by"], shown["former"]) == ([], [])
    text = good("concepts", "show", "flour", "--index", place / "a.lexent").stdout
    assert f"in the lexicon: wrong {FLOUR}" in text
    assert f"{shown['raised_here'][0]['count']}  flour" in text
    own = data("concepts", "show", YEAST, "--lexicon", place / "lexicon")
    assert own["raised_by"] == [{"word": "leaven", "share": 0.25}, {"word": "bread", "share": 0.125}]
    assert "raised_here" not in own
    text = good("concepts", "show", YEAST, "--index", place / "a.lexent").stdout
    assert "25%  leaven" in text


def test_concepts_are_named_anew_on_request(place: Path) -> None:
    path = place / "a.lexent"
    with Index.open(path) as index:
        before = [concept.label for concept in index.lexicon.concepts]
        index.add([{"id": f"new{at}", "text": text} for at, text in enumerate(named.texts(300, seed=1))])
        assert [concept.label for concept in index.lexicon.concepts] == before
    found = data("concepts", "name", path)
    changed = [row["id"] for row in found["names"]]
    assert found["changed"] == len(changed) > 0
    row = next(row for row in found["names"] if row["id"] == YEAST)
    assert row["label"].startswith("yeast")
    assert row["before"] == before[YEAST]
    assert data("concepts", "show", f"wrong {YEAST}", "--index", path)["id"] == YEAST  # by the lexicon's name, too
    again = good("concepts", "name", path)
    assert f"named  0 of {len(named.WORDS)} concepts anew" in again.stdout
    assert "such as" not in again.stderr


def test_former_names_still_find_their_concepts(tmp_path: Path) -> None:
    path = tmp_path / "b.lexent"
    small.lexicon().save(tmp_path / "lexicon")
    with small.build(path, small.documents(12), lexicon=str(tmp_path / "lexicon")) as index:
        index.add(small.documents(40)[12:])
    names = data("concepts", "name", path)["names"]
    now = {row["label"] for row in names}
    row = next(row for row in names if not row["before"].startswith("concept ") and row["before"] not in now)
    shown = data("concepts", "show", row["before"], "--index", path)
    assert (shown["id"], shown["label"], shown["former"]) == (row["id"], row["label"], [row["before"]])
    text = good("concepts", "show", row["id"], "--index", path).stdout
    assert f"until it was named anew: {row['before']}" in text


def test_naming_wants_an_index(place: Path) -> None:
    result = run("concepts", "name", place / "lexicon")
    assert result.exit_code == 4
    assert "index" in result.stderr
    assert result.stdout == ""
