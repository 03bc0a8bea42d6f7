"""Hits and results as values: short to read, to copy, to pickle, as dicts and as tables in notebooks."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict
from html.parser import HTMLParser

import pytest

import small
from lexent.engine import Index
from lexent.errors import InputError
from lexent.search.results import Results
from lexent.types import Document


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    rude = Document("<b>", "yeast <script>alert(1)</script> dough & crust " * 20, '"Bread" <i>')
    return small.build(
        tmp_path_factory.mktemp("results") / "i", [*small.documents(), rude], extras=["lexical", "dense"]
    )


@pytest.fixture(scope="module")
def found(index: Index) -> Results:
    return index.search("yeast dough crust", k=5)


def test_a_hit_is_short_to_read(index: Index, found: Results) -> None:
    hit = found[0]
    title = hit.title or " ".join(hit.text.split())[:60]
    assert repr(hit) == f"Hit(1, {hit.id!r}, {hit.score:.3f}, {title!r})"
    assert all(len(repr(one)) < 120 for one in found)
    fused = index.search_fused("yeast dough", k=2)[0]
    assert repr(fused).startswith("FusedHit(1, ")
    assert repr(index.dense_search("yeast", k=1)[0]).startswith("DenseHit(1, ")
    assert repr(index.search("yeast", k=1, unit="passage")[0]).startswith("PassageHit(1, ")


def test_a_pickled_hit_keeps_its_values_and_loses_its_index(found: Results) -> None:
    again: Results = pickle.loads(pickle.dumps(found))
    assert again == found
    for old, new in zip(found, again, strict=True):
        assert (new.strength, new.metadata, new.is_detached) == (old.strength, old.metadata, True)
        assert new.to_dict() == {
            key: old.to_dict()[key] for key in ("rank", "id", "score", "title", "text", "metadata", "strength")
        }
        assert str(new) == str(old).split("\n")[0]
        for ask in (
            new.explain,
            new.words,
            new.align,
            lambda new=new: new.tokens("yeast"),
            lambda new=new: new.passages,
        ):
            with pytest.raises(InputError, match=r"was pickled, .* search again: lexent\.open\(.*yeast dough crust"):
                ask()
    assert pickle.loads(pickle.dumps(again)) == found, "twice"
    assert again.groups == ()
    assert json.loads(json.dumps(again.to_dict()))["hits"][0]["id"] == found[0].id
    assert "yeast dough crust" in again._repr_html_()


def test_passages_and_fused_hits_pickle(index: Index) -> None:
    passage = index.search("yeast", k=1, unit="passage")[0]
    assert pickle.loads(pickle.dumps(passage)) == passage
    fused = index.search_fused("yeast dough", k=3)
    again = pickle.loads(pickle.dumps(fused))
    assert again.to_dict() == fused.to_dict()


def test_copies_and_dicts(found: Results) -> None:
    assert copy.copy(found[0]).explain() == found[0].explain()
    assert copy.deepcopy(found).to_dict() == found.to_dict()
    hit = asdict(found[0])
    assert (hit["id"], hit["score"], hit["text"]) == (found[0].id, found[0].score, found[0].text)
    assert [one["id"] for one in asdict(found)["hits"]] == [one.id for one in found]
    json.dumps(found.to_dict())


class Cells(HTMLParser):
    """The text of the cells of a table, and every tag."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        assert not {name for name, _ in attrs} - {"style"}

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_results_are_a_table_in_a_notebook(index: Index, found: Results) -> None:
    shown = Cells(found._repr_html_())
    assert shown.tags == {"div", "p", "table", "thead", "tbody", "tr", "th", "td", "br"}
    assert shown.cells[:7] == ["rank", "strength", "score", "id", "title", "text", "why"]
    rows = [shown.cells[start : start + 7] for start in range(7, len(shown.cells), 7)]
    assert [row[3] for row in rows] == [hit.id for hit in found]
    assert [row[1] for row in rows] == [f"{hit.strength:.2f}" for hit in found]
    assert all(row[6].startswith(hit.explain().groups[0].label) for row, hit in zip(rows, found, strict=True))
    rude = next(row for row in rows if row[3] == "<b>")
    assert rude[4] == '"Bread" <i>'
    assert rude[5].startswith("yeast <script>alert(1)</script> dough & crust")
    assert len(rude[5]) <= 240
    assert "score" in Cells(index.search_fused("yeast", k=2)._repr_html_()).cells
    assert Cells(index.search("yeast", k=1, filter={"n": -1})._repr_html_()).tags == {"div", "p"}
