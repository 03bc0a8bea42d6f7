"""Metadata fields: the types of CSV columns, one kind for each field of an index, and metadata in every answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lexent
import small
from commands import data, good, program, run
from lexent.corpus import read
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.errors import FieldWarning, InputError, NotFoundError
from lexent.lexicon import Lexicon
from lexent.types import Document
from serving import serving

PARTS: dict[str, Any] = {"encoder": TinyEncoder(), "lexicon": small.lexicon()}
NOTES = """id,title,text,year,price,read,day,zip
a,Bread,flour and yeast,2018,1.5,true,2018-03-01,00501
b,Dough,dough and yeast,2019,2,FALSE,2019/12/24,10001
c,Oven,yeast in the oven,2021,,,2021-07-05 10:30,
d,Loaf,a loaf with yeast,,3.25,true,,94105
"""


def metadata(path: Path, **columns: str) -> dict[str, dict[str, Any]]:
    return {document.id: dict(document.metadata) for document in read(path, **columns)}


def test_a_csv_file_can_be_filtered_by_its_years(tmp_path: Path) -> None:
    """The README's example, as a program: index notes.csv, then search with a filter on a column."""
    (tmp_path / "notes.csv").write_text(NOTES)
    Lexicon.random(TinyEncoder(), size=96).save(tmp_path / "lexicon")
    parts = ("--encoder", "tiny", "--lexicon", "lexicon")
    built = program("index", "notes.csv", *parts, cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    assert "year (integer), price (number), read (boolean), day (date), zip (text)" in built.stderr
    for where, expected in (
        ("year>=2019", {"b", "c"}),
        ("year=2018", {"a"}),
        ("price<2.5", {"a", "b"}),
        ("read=true", {"a", "d"}),
        ("read=false", {"b"}),
        ("day>=2019-12-24", {"b", "c"}),
        ("zip=00501", {"a"}),
        ('{"year": {"exists": false}}', {"d"}),
    ):
        found = data("search", tmp_path / "notes.lexent", "yeast", "--filter", where, "--lexicon", tmp_path / "lexicon")
        assert {hit["id"] for hit in found["hits"]} == expected, where
    shown = program("search", "notes.lexent", "yeast", "--filter", "year>=2019", *parts, "--json", cwd=tmp_path)
    assert {hit["id"] for hit in json.loads(shown.stdout)["hits"]} == {"b", "c"}, shown.stderr


def test_columns_have_the_type_that_all_values_have(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text(NOTES)
    assert metadata(path) == {
        "a": {"year": 2018, "price": 1.5, "read": True, "day": "2018-03-01", "zip": "00501"},
        "b": {"year": 2019, "price": 2, "read": False, "day": "2019-12-24", "zip": "10001"},
        "c": {"year": 2021, "price": None, "read": None, "day": "2021-07-05T10:30:00", "zip": ""},
        "d": {"year": None, "price": 3.25, "read": True, "day": None, "zip": "94105"},
    }


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", "0"], [1, -2, 0]),
        (["007", "12"], ["007", "12"]),
        (["1", "n/a", "NaN", "2"], [1, None, None, 2]),
        (["n/a", "NA"], ["n/a", "NA"]),
        (["1", "none of it"], ["1", "none of it"]),
        (["1", "1.0", "-2e3"], [1, 1.0, -2000.0]),
        (["1e999", "1"], ["1e999", "1"]),
        (["1.5", ".5"], ["1.5", ".5"]),
        (["18446744073709551615", "1"], [2**64 - 1, 1]),
        (["18446744073709551616", "1"], ["18446744073709551616", "1"]),
        (["True", "FALSE"], [True, False]),
        (["true", "1"], ["true", "1"]),
        (["yes", "no"], ["yes", "no"]),
        (["2020-02-30", "2020-02-01"], ["2020-02-30", "2020-02-01"]),
        (["2020-02-01T10:00:00+02:00", "2020-02-01T09:00:00.5Z"],
         ["2020-02-01T08:00:00+00:00", "2020-02-01T09:00:00.500000+00:00"]),
        (["2020-02-01T10:00:00+02:00", "2020-02-01T09:00:00"], ["2020-02-01T10:00:00+02:00", "2020-02-01T09:00:00"]),
        (["31/12/2020", "01/02/2021"], ["2020-12-31", "2021-02-01"]),
        (["12/31/2020", "1/2/2021"], ["2020-12-31", "2021-01-02"]),
        (["01/02/2020", "3/4/2021"], ["01/02/2020", "3/4/2021"]),
        (["31/12/2020", "12/31/2020"], ["31/12/2020", "12/31/2020"]),
        (["31.12.2020", "1.2.2021", "NA"], ["2020-12-31", "2021-02-01", None]),
        (["31 May 2020", "1 Sept 2021"], ["2020-05-31", "2021-09-01"]),
        (["May 31 2020", "Sep 1 2021"], ["2020-05-31", "2021-09-01"]),
        (["31-Dec-2020", "30-Feb-2021"], ["31-Dec-2020", "30-Feb-2021"]),
        (["", ""], ["", ""]),
        ([" 5 ", "6"], [5, 6]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_the_rule_for_types(tmp_path: Path, cells: list[str], expected: list[Any], suffix: str) -> None:
    mark = "," if suffix == "csv" else "\t"
    path = tmp_path / f"x.{suffix}"
    path.write_text(f"text{mark}v{mark}w\n" + "".join(f"salt{mark}{cell}{mark}x\n" for cell in cells))
    found = [fields["v"] for fields in metadata(path).values()]
    assert found == expected
    assert [type(one) for one in found] == [type(one) for one in expected]


def test_ids_and_texts_keep_their_letters(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,title,text,parent_id,uid\n01,1.50,2001,7,3\n2,2.0,true,8,4\n")
    found = list(read(path))
    assert [(one.id, one.title, one.text) for one in found] == [("01", "1.50", "2001"), ("2", "2.0", "true")]
    assert [dict(one.metadata) for one in found] == [{"parent_id": "7", "uid": "3"}, {"parent_id": "8", "uid": "4"}]


def test_the_last_row_decides_too(tmp_path: Path) -> None:
    """Types come from all rows, not from the sample by which columns are guessed."""
    path = tmp_path / "x.csv"
    path.write_text("text,v\n" + "salt,1\n" * 500 + "salt,unknown\n")
    assert {type(fields["v"]) for fields in metadata(path).values()} == {str}


# --- one kind for each field of an index -------------------------------------------------------------------------


def ids(index: Index, where: dict[str, Any]) -> set[str]:
    return {hit.id for hit in index.search("yeast", filter=where, k=50)}


def test_a_text_among_numbers_is_converted_or_refused(tmp_path: Path) -> None:
    rows = [{"id": "1", "text": "yeast", "year": 2000}, {"id": "2", "text": "yeast dough", "year": "2001"}]
    with pytest.warns(FieldWarning, match='the field "year" holds numbers: 1 value of another kind was converted'):
        index = lexent.index(rows, out=tmp_path / "i", **PARTS)
    with index:
        assert ids(index, {"year": {"gte": 2001}}) == {"2"}
        assert index.document("2").metadata == {"year": 2001}
        with pytest.warns(FieldWarning):
            index.add([{"id": "3", "text": "yeast", "year": " 2002.5 "}, {"id": "4", "text": "yeast", "year": ""}])
        assert ids(index, {"year": {"gte": 2001}}) == {"2", "3"}
        assert ids(index, {"year": {"exists": False}}) == {"4"}
        for wrong in ("n/a", "007", "1e999", True, ["2003", "x"]):
            with pytest.raises(InputError, match='document "5": the field "year" holds numbers in this index'):
                index.add([{"id": "5", "text": "yeast", "year": wrong}])
        assert len(index) == 4, "all or none"
        index.compact()
        with pytest.raises(InputError, match="write a number, leave the field out, or give it another name"):
            index.upsert([{"id": "1", "text": "yeast", "year": "unknown"}])


def test_numbers_among_texts_and_booleans(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "text": "yeast", "volume": "12A", "open": True, "at": {"page": "iv"}},
        {"id": "2", "text": "yeast", "volume": 13, "open": "false", "at": {"page": [5, True]}},
    ]
    with pytest.warns(FieldWarning):
        lexent.index(rows, out=tmp_path / "i", **PARTS).close()
    with lexent.open(tmp_path / "i", **PARTS) as index:
        assert ids(index, {"volume": "13"}) == {"2"}
        assert ids(index, {"open": False}) == {"2"}
        assert index.document("2").metadata == {"volume": "13", "open": False, "at": {"page": ["5", "true"]}}
        with pytest.raises(InputError, match='the field "open" holds booleans'):
            index.add([{"id": "3", "text": "yeast", "open": 1}])
        with pytest.raises(InputError, match='the field "volume" holds text values, not number ones'):
            ids(index, {"volume": {"gte": 13}})


def test_a_csv_added_later_fits_or_is_refused(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,text,year\na,yeast,2018\nb,yeast,2019\n")
    (tmp_path / "2.csv").write_text("id,text,year\nc,yeast,2020\nd,yeast,unknown\n")
    (tmp_path / "3.csv").write_text('id,text,year\nc,yeast,2020\nd,yeast,""\n')
    Lexicon.random(TinyEncoder(), size=96).save(tmp_path / "lexicon")
    words = ("--encoder", "tiny", "--lexicon", tmp_path / "lexicon")
    good("index", tmp_path / "1.csv", "--out", tmp_path / "i", *words)
    refused = run("add", tmp_path / "i", tmp_path / "2.csv", *words)
    assert refused.exit_code == 2
    assert 'document "d": the field "year" holds numbers in this index, and here it is \'unknown\'' in refused.stderr
    good("add", tmp_path / "i", tmp_path / "3.csv", *words)
    found = data("search", tmp_path / "i", "yeast", "--filter", "year>=2019", *words)
    assert {hit["id"] for hit in found["hits"]} == {"b", "c"}


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_field_that_is_text_keeps_the_spelling_of_a_file(tmp_path: Path, suffix: str) -> None:
    """A later file whose values would be numbers, booleans or dates alone: the index knows that the field is text."""
    first = "id,text,version,open,code,day\na,yeast,1.2-rc1,maybe,A/1,2019/12/24\n"
    later = (
        "id,text,version,open,code,day\nb,yeast,1.10,TRUE,2019/05/31,2020/01/02\nc,yeast,1e3,False,2020/01/02,\n"
        "d,yeast, 7.0,true,2020/01/02,2020/01/03\ne,yeast,,,,\n"
    )
    for name, content in (("first", first), ("later", later)):
        (tmp_path / f"{name}.{suffix}").write_text(content if suffix == "csv" else content.replace(",", "\t"))
    expected = {
        "b": {"version": "1.10", "open": "TRUE", "code": "2019/05/31", "day": "2020-01-02"},
        "c": {"version": "1e3", "open": "False", "code": "2020/01/02", "day": None},
        "d": {"version": " 7.0", "open": "true", "code": "2020/01/02", "day": "2020-01-03"},
        "e": {"version": "", "open": "", "code": "", "day": None},
    }
    with lexent.index(tmp_path / f"first.{suffix}", out=tmp_path / "i", **PARTS) as index:
        with pytest.warns(FieldWarning, match='"version" holds text: 3 values of another kind were converted'):
            index.add(tmp_path / f"later.{suffix}")
        assert {id: index.document(id).metadata for id in expected} == expected
        assert ids(index, {"version": "1.10"}) == {"b"}
        assert ids(index, {"day": {"gte": "2020-01-02"}}) == {"b", "d"}


def test_several_files_keep_the_spelling_of_a_text_field(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,text,version\na,yeast,1.2-rc1\n")
    (tmp_path / "2.csv").write_text("id,text,version\nb,yeast,1.10\n")
    with pytest.warns(FieldWarning):
        index = lexent.index([tmp_path / "1.csv", tmp_path / "2.csv"], out=tmp_path / "i", **PARTS)
    with index:
        assert index.document("b").metadata == {"version": "1.10"}


def test_the_command_line_keeps_the_spelling_of_a_text_field(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,text,version\na,yeast,1.2-rc1\n")
    (tmp_path / "2.csv").write_text("id,text,version\nb,yeast,1.10\n")
    Lexicon.random(TinyEncoder(), size=96).save(tmp_path / "lexicon")
    words = ("--encoder", "tiny", "--lexicon", tmp_path / "lexicon")
    good("index", tmp_path / "1.csv", "--out", tmp_path / "i", *words)
    good("add", tmp_path / "i", tmp_path / "2.csv", *words)
    found = data("search", tmp_path / "i", "yeast", "--filter", '{"version": "1.10"}', *words)
    assert [hit["metadata"] for hit in found["hits"]] == [{"version": "1.10"}]


def test_the_command_line_says_what_was_converted(tmp_path: Path) -> None:
    rows = [{"id": "1", "text": "yeast", "year": 2000}, {"id": "2", "text": "dough", "year": "2001"}]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Lexicon.random(TinyEncoder(), size=96).save(tmp_path / "lexicon")
    done = program("index", "x.jsonl", "--encoder", "tiny", "--lexicon", "lexicon", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'note: the field "year" holds numbers: 1 value of another kind was converted' in done.stderr.splitlines()


# --- metadata that is given, and given back ----------------------------------------------------------------------


def test_the_key_metadata_gives_the_metadata(tmp_path: Path) -> None:
    rows = [{"id": "1", "text": "yeast", "metadata": {"year": 2000, "by": {"name": "A"}}, "lang": "en"},
            {"id": "2", "text": "yeast", "metadata": None}, {"id": "3", "text": "yeast", "metadata": {}}]  # fmt: skip
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for source in (rows, tmp_path / "x.jsonl"):
        found = [dict(document.metadata) for document in read(source)]
        assert found == [{"lang": "en", "year": 2000, "by": {"name": "A"}}, {}, {}]
    with lexent.index(rows, out=tmp_path / "i", **PARTS) as index:
        assert ids(index, {"year": {"gte": 1999}, "by.name": "A"}) == {"1"}
    with pytest.raises(InputError, match='item 1: both "year" and "metadata" give the field "year"'):
        list(read([{"text": "yeast", "year": 1, "metadata": {"year": 2}}]))
    assert [
        dict(one.metadata) for one in read([{"text": "a", "metadata": "free text that is longer"}], text="text")
    ] == [{"metadata": "free text that is longer"}]


def test_every_answer_has_the_metadata(tmp_path: Path) -> None:
    rows = [{"id": "1", "text": "yeast", "year": 2000, "tags": ["a"]}, {"id": "2", "text": "yeast dough", "year": 2001}]
    expected = {"1": {"year": 2000, "tags": ["a"]}, "2": {"year": 2001}}
    Lexicon.random(TinyEncoder(), size=96).save(tmp_path / "lexicon")
    with lexent.index(rows, out=tmp_path / "i", encoder="tiny", lexicon=tmp_path / "lexicon", extras="dense") as index:
        hits: list[Any] = [*index.search("yeast"), *index.search_fused("yeast"), *index.dense_search("yeast")]
        assert len(hits) == 6
        assert all(hit.to_dict()["metadata"] == expected[hit.id] for hit in hits)
        assert all(hit["metadata"] == expected[hit["id"]] for hit in index.search("yeast").to_dict()["hits"])
    for more in ((), ("--fuse", "bm25")):
        shown = data("search", tmp_path / "i", "yeast", *more)["hits"]
        assert {hit["id"]: hit["metadata"] for hit in shown} == expected
        for k in (0, -1):
            refused = run("search", tmp_path / "i", "yeast", "-k", k, *more)
            assert refused.exit_code == 2
            assert f"error: k is {k}; allowed: 1 or more" in refused.stderr


# --- lists of files ----------------------------------------------------------------------------------------------


def test_a_list_of_files_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("flour and yeast")
    Path("b.csv").write_text("text,year\ndough,2000\nsalt,2001\n")
    Path("c.csv").write_text("text\noven\n")
    (tmp_path / "deep").mkdir()
    Path("deep/a.txt").write_text("a king and a rook")
    for source in (
        ["a.txt", "b.csv", "c.csv"],
        [Path("a.txt"), "b.csv", Path("c.csv")],
        iter(["a.txt", "b.csv", "c.csv"]),
    ):
        with lexent.index(source, out=tmp_path / "i", overwrite=True, **PARTS) as index:
            found = {id: index.document(id) for id in ("a.txt", "1", "2", "3")}
            assert len(index) == 4
            assert [one.text for one in found.values()] == ["flour and yeast", "dough", "salt", "oven"]
            assert found["1"].metadata == {"year": 2000}
    assert [one.id for one in read(["a.txt", "deep/a.txt"])] == ["a.txt", "deep/a.txt"]
    assert [one.id for one in read(["a.txt", Path("deep")])] == ["a.txt", "deep/a.txt"]
    with lexent.index([Path("deep")], out=tmp_path / "j", **PARTS) as index:
        assert index.add(["a.txt"]) == 1
        assert index.document("a.txt").text == "flour and yeast"


def test_texts_and_files_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("flour and yeast")
    Path("notes").mkdir()
    assert [one.text for one in read(["notes", "other notes"])] == ["notes", "other notes"], "a folder by chance"
    assert [one.text for one in read(["see a.txt", "I read b.csv"])] == ["see a.txt", "I read b.csv"]
    assert [one.text for one in read([{"text": "a.txt"}])] == ["a.txt"]
    with pytest.raises(NotFoundError, match=r'item 2: no such file: "b\.csv"; .* give \{"text": "b\.csv"\}'):
        read(["a.txt", "b.csv"])
    with pytest.raises(NotFoundError, match=r'item 1: no such file: "b\.csv"'):
        read(["b.csv", "c.csv"])
    with pytest.raises(InputError, match=r'mixes files and other items: item 1 names the file "a\.txt", item 2 is'):
        read(["a.txt", "flour and yeast"])
    with pytest.raises(InputError, match="mixes files and other items"):
        read([{"text": "salt"}, Path("a.txt")])
    late = ["a text"] * 150 + ["a.txt"]
    with pytest.raises(InputError, match=r"item 151: a\.txt is a file, and the items before it are none"):
        list(read(iter(late)))


def test_what_is_no_list_of_documents_is_refused(tmp_path: Path) -> None:
    class Frame:
        """Iterates over the names of its columns, as data frames do."""

        columns = ("id", "text")

        def __iter__(self) -> Any:
            return iter(self.columns)

    index = Index.build([{"id": "1", "text": "yeast"}], out=tmp_path / "i", **PARTS)
    for wrong in ({"id": "9", "text": "yeast bread"}, Frame()):
        with pytest.raises(InputError, match="is no corpus"):
            Index.build(wrong, out=tmp_path / "j", **PARTS)
        with pytest.raises(InputError, match="is no corpus"):
            index.add(wrong)
    with pytest.raises(InputError):
        index.add(iter([None, {"id": "3", "text": "dough"}]))
    assert len(index) == 1


def test_a_missing_file_among_texts_is_named(tmp_path: Path) -> None:
    for items in (["a text about ovens", "absent.md"], [{"text": "a text about ovens"}, "absent.md"]):
        with pytest.raises(NotFoundError, match=r'item 2: no such file: "absent\.md"'):
            read(items)


def test_an_empty_value_decides_no_kind(tmp_path: Path) -> None:
    with Index.build([{"id": "1", "text": "yeast", "year": ""}], out=tmp_path / "i", **PARTS) as index:
        index.add([{"id": "2", "text": "yeast", "year": 2019}])
        assert ids(index, {"year": {"gte": 2000}}) == {"2"}
    (tmp_path / "empty.csv").write_text("id,text,year\n1,yeast,\n")
    (tmp_path / "years.csv").write_text("id,text,year\n2,yeast,2019\n")
    with lexent.index(tmp_path / "empty.csv", out=tmp_path / "j", **PARTS) as index:
        index.add(tmp_path / "years.csv")
        assert ids(index, {"year": {"gte": 2000}}) == {"2"}


def test_a_time_that_utc_cannot_write_is_text(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(
        "id,text,when\n1,yeast,0001-01-01T00:00:00+01:00\n2,oven,2019-05-01T10:00:00+01:00\n"
    )
    assert metadata(tmp_path / "d.csv")["1"] == {"when": "0001-01-01T00:00:00+01:00"}


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    rows = [{"id": "1", "text": "yeast", "x": np.int64(15)}, {"id": "2", "text": "yeast", "x": np.float64(1.5)}]
    with Index.build(rows, out=tmp_path / "i", **PARTS) as index:
        index.add([Document(id="3", text="yeast", metadata={"x": np.int32(20)})])
        assert ids(index, {"x": {"gte": 15}}) == {"1", "3"}
        index.retune(k1=np.float32(2), document_cap=np.int64(3))
        assert (index.recipe.weighting.k1, index.recipe.document_cap) == (2.0, 3)
        with pytest.raises(InputError):
            index.search("yeast", steer={0: 10**400})


# --- the same over HTTP ------------------------------------------------------------------------------------------


def test_http_checks_and_gives_the_same(tmp_path: Path) -> None:
    rows = [{"id": "1", "text": "yeast", "year": 2000}, {"id": "2", "text": "yeast dough", "year": 2001}]
    lexent.index(rows, out=tmp_path / "i", **PARTS).close()
    with serving([tmp_path / "i"]) as client:
        found = client.post("/v1/indexes/i/search", json={"query": "yeast"}).json()["hits"]
        assert {hit["id"]: hit["metadata"] for hit in found} == {"1": {"year": 2000}, "2": {"year": 2001}}
        systems = client.post("/v1/indexes/i/compare", json={"query": "yeast"}).json()["systems"]
        assert [hit["metadata"] for hit in systems[0]["hits"]] == [hit["metadata"] for hit in found]
        for wrong, where in (
            ({"query": "yeast", "k": 0}, "k"),
            ({"query": "yeast", "k": "ten"}, "k"),
            ({"query": None}, "query"),
            ({"query": ["yeast"]}, "query"),
            ({"query": 12}, "query"),
            ({"query": "yeast", "filter": ["year"]}, "filter"),
            ({"query": "yeast", "filter": {"year": {"gte": "2000"}}}, "year"),
            ({"query": "yeast", "steer": {"zip": "much"}}, "steer"),
            ({"query": "yeast", "settings": {"k1": "x"}}, "k1"),
            ({"query": "yeast", "like": "1"}, "like"),
            ({"query": "yeast", "mode": 3}, "mode"),
        ):
            reply = client.post("/v1/indexes/i/search", json=wrong)
            assert reply.status_code == 422, (wrong, reply.text)
            assert where in reply.text
        refused = client.post("/v1/indexes/i/search", json={"query": "yeast", "k": 0}).json()["detail"]
        assert "1" in refused, "the allowed range"
        added = {"documents": [{"id": "3", "text": "yeast", "metadata": {"year": "unknown"}}]}
        reply = client.post("/v1/indexes/i/documents", json=added)
        assert reply.status_code == 422
        assert 'the field "year" holds numbers in this index' in reply.json()["detail"]
        rows_sent = (
            b'{"id": "4", "text": "yeast", "metadata": {"year": 2002}}\n' + json.dumps(added["documents"][0]).encode()
        )
        lines = client.post(
            "/v1/indexes/i/documents/bulk", content=rows_sent, headers={"content-type": "application/x-ndjson"}
        ).text.splitlines()
        assert json.loads(lines[-1]) == {"done": True, "lines": 2, "added": 1, "replaced": 0, "failed": 1}
        where = {"query": "yeast", "filter": {"year": {"gte": 2001}}}
        assert {hit["id"] for hit in client.post("/v1/indexes/i/search", json=where).json()["hits"]} == {"2", "4"}
        for setting in ({"document_cap": 5}, {"query_cap": 5}, {"k1": 2}, {"k1": 2.5}):
            reply = client.post("/v1/indexes/i/search", json={"query": "yeast", "settings": setting})
            assert reply.status_code == 200, reply.text
        assert client.post("/v1/indexes/i/search", json={"query": "yeast", "settings": {"k1": True}}).status_code == 422
