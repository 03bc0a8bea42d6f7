"""Bad rows: each stops the reading by name, or is left out and reported with its reason, and the rest is read."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import lexent
import small
from commands import data, furnished, good, run, tiny
from lexent.corpus import read, texts
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.errors import FieldWarning, InputError, SkippedWarning
from lexent.types import Document

PARTS = {"encoder": TinyEncoder(), "lexicon": small.lexicon()}

CASES = {
    "rows.csv": (
        b'id,text\na,flour\nb,yeast,more\na,dough\n,oven\nc,\nd,"never\ne,crust\nf,caf\xe9\ng,"two\nlines"\nh,salt',
        ["a", "e", "g", "h"],
        [
            ("line 3", "ragged row"), ("line 4", "duplicate id"), ("line 5", "empty id"), ("line 6", "empty text"),
            ("line 7", "broken CSV"), ("line 9", "undecodable bytes"),
        ],
    ),
    "rows.tsv": (
        b"id\ttext\na\tflour\nb\nc\tcaf\xe9\nd\tsalt\n",
        ["a", "d"],
        [("line 3", "ragged row"), ("line 4", "undecodable bytes")],
    ),
    "rows.jsonl": (
        b'{"id": "a", "text": "flour"}\n{"id": "b"\n[1]\n{"id": ["c"], "text": "x"}\n{"id": "d", "text": "caf\xe9"}\n'
        b'{"id": "e", "text": {"a": 1}}\n{"id": "f", "text": "half \\ud800"}\n{"id": "g", "text": "salt"}\n',
        ["a", "g"],
        [
            ("line 2", "broken JSON"), ("line 3", "no object"), ("line 4", "bad id"), ("line 5", "undecodable bytes"),
            ("line 6", "no text"), ("line 7", "broken JSON"),
        ],
    ),
    "rows.json": (
        b'[{"id": "a", "text": "flour"}, 3, {"id": "a", "text": "x"}, {"id": "b", "text": "salt"}]',
        ["a", "b"],
        [("item 2", "no object"), ("item 3", "duplicate id")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_rows_of_tables(tmp_path: Path, name: str) -> None:
    content, ids, problems = CASES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as stopped:
        list(read(path))
    assert str(stopped.value).startswith(f"{path}, {problems[0][0]}: ")
    corpus = read(path, on_error="skip")
    assert [one.id for one in corpus] == ids
    assert [(one.where, one.reason) for one in corpus.problems] == [
        (f"{path}, {where}", reason) for where, reason in problems
    ]
    assert all(str(one).startswith(f"{one.where}") for one in corpus.problems)
    assert [one.id for one in corpus] == ids
    assert len(corpus.problems) == len(problems), "each reading notes its own"


def test_the_first_problem_of_a_file_that_stops_is_the_first_of_one_that_skips(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(CASES["rows.csv"][0])
    corpus = read(path, on_error="skip")
    list(corpus)
    with pytest.raises(InputError) as stopped:
        list(read(path))
    assert corpus.problems[0].message == str(stopped.value)


def test_columns_keep_their_types_beside_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,year\nflour,1994\nyeast\ndough,2001\n")
    assert [one.metadata for one in read(path, on_error="skip")] == [{"year": 1994}, {"year": 2001}]


def test_objects(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "flour"}, 3, {"id": "b", "text": " "}, None, {"id": "c", "text": "salt"}]
    corpus = read(rows, on_error="skip")
    assert [one.id for one in corpus] == ["a", "c"]
    assert [one.reason for one in corpus.problems] == ["no document", "empty text", "no document"]


def nested(levels: int, kind: type) -> Any:
    """A value within lists or mappings within each other."""
    found: Any = 1
    for _ in range(levels):
        found = [found] if kind is list else {"a": found}
    return found


def test_rows_that_are_nested_deeply(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    deep = [nested(900, dict), nested(900, list), nested(100, list)]
    rows = [{"id": str(place), "text": "flour", "m": value} for place, value in enumerate([1, *deep, nested(98, list)])]
    values = ["1", '{"a":' * 900 + "1" + "}" * 900, *("[" * n + "1" + "]" * n for n in (900, 100, 98))]
    lines = [f'{{"id": "{place}", "text": "flour", "m": {value}}}' for place, value in enumerate(values)]
    path.write_text("\n".join([*lines, "[" * 900 + "]" * 900]))
    with pytest.raises(InputError, match=r"line 2: nested in more than 100 levels"):
        read(path)
    for source in (path, rows):
        corpus = read(source, on_error="skip")
        assert [one.id for one in corpus] == ["0", "4"]
        assert corpus.description
        problems = [(one.where.split(", ")[1], one.reason) for one in corpus.problems]
        unit = "line" if source is path else "item"
        assert problems[:3] == [(f"{unit} {place}", "nested too deeply") for place in (2, 3, 4)]
        assert [reason for _, reason in problems[3:]] == (["no object"] if source is path else [])
    with pytest.raises(InputError, match='metadata of the document "a" is nested in more than 100 levels'):
        Document("a", "flour", metadata={"m": nested(100, dict)})
    itself: dict[str, Any] = {}
    itself["a"] = itself["b"] = itself
    with pytest.raises(InputError, match="more than 100 levels"):
        Document("a", "flour", metadata=itself)


def test_a_damaged_file_keeps_what_stands_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    rows = "".join(
        json.dumps({"id": number, "text": f"text {number} {hash(str(number))}"}) + "\n" for number in range(9999)
    )
    path.write_bytes(gzip.compress(rows.encode())[:-4000])
    with pytest.raises(InputError, match="not a whole gzip file"):
        list(read(path))
    corpus = read(path, on_error="skip")
    found = [one.id for one in corpus]
    assert 100 < len(found) < 9999
    assert found == [str(number) for number in range(len(found))]
    assert [one.reason for one in corpus.problems] == ["damaged file"]


def test_a_folder_goes_on_after_a_bad_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("flour")
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    (tmp_path / "c.csv").write_text("n\n")
    (tmp_path / "d.jsonl").write_text("{\n")
    (tmp_path / "e.jsonl.gz").write_bytes(b"no gzip")
    (tmp_path / "f.md").write_text("salt")
    corpus = read(tmp_path, on_error="skip")
    assert corpus.count() is None
    assert corpus.description.startswith("6 files (2 .md, 2 .jsonl, 1 .txt, 1 .csv); id = path")
    assert [one.id for one in corpus] == ["a.md", "f.md"]
    assert [(Path(one.where.split(",")[0]).name, one.reason) for one in corpus.problems] == [
        ("b.txt", "undecodable bytes"), ("c.csv", "unreadable file"), ("d.jsonl", "unreadable file"),
        ("e.jsonl.gz", "damaged file"),
    ]  # fmt: skip
    assert set(texts(tmp_path, on_error="skip")) == {"flour", "salt"}


def test_a_folder_without_permission(tmp_path: Path) -> None:
    from lexent.corpus.folders import files_below

    (tmp_path / "a.md").write_text("flour")
    (tmp_path / "shut").mkdir(mode=0o000)
    errors = files_below(tmp_path).errors
    if not errors:
        pytest.skip("this user may read every folder")
    with pytest.raises(InputError, match="the folder cannot be read"):
        list(read(tmp_path))
    corpus = read(tmp_path, on_error="skip")
    assert [one.id for one in corpus] == ["a.md"]
    assert [one.reason for one in corpus.problems] == ["no permission"]


def test_nothing_but_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("{\n[]\n")
    with pytest.raises(InputError, match=r"holds no documents; 2 could not be read, the first: .*line 1: broken JSON"):
        read(path, on_error="skip")
    with pytest.raises(InputError, match=r"nothing could be read; 1 row or file left out \(empty text 1\)"):
        list(read([{"text": ""}], on_error="skip"))


def test_in_python_what_was_skipped_is_said(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "flour"}, {"id": "a", "text": "yeast"}]
    with pytest.warns(
        SkippedWarning, match=r"1 row or file left out \(duplicate id 1\); the first: the given list, item 2"
    ):
        index = lexent.index(rows, out=tmp_path / "i", on_error="skip", **PARTS)
    assert len(index) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corpus = lexent.read(rows, on_error="skip")
        lexent.index(corpus, out=tmp_path / "j", **PARTS)
    assert [one.reason for one in corpus.problems] == ["duplicate id"]
    with pytest.raises(InputError, match="a corpus that was opened already"):
        lexent.index(corpus, out=tmp_path / "k", text="text", **PARTS)
    with pytest.raises(InputError, match=r'on_error is "ignore"; allowed: stop, skip'):
        lexent.read(rows, on_error="ignore")  # type: ignore[arg-type]


def test_documents_that_do_not_fit_the_index_are_skipped(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "flour", "year": 1994}, {"id": "b", "text": "yeast", "year": "unknown"}]
    corpus = read([*rows, {"id": "c", "text": "dough", "year": "2001"}], on_error="skip")
    with pytest.warns(FieldWarning, match="1 value of another kind"):
        index = Index.build(corpus, out=tmp_path / "i", **PARTS)
    assert [(one.where, one.reason) for one in corpus.problems] == [('the given list, document "b"', "kind of a field")]
    later = [{"id": "c", "text": "oven"}, {"id": "d", "text": "crust", "year": "soon"}, {"id": "e", "text": "salt"}]
    more = read(later, on_error="skip")
    assert index.add(more) == 1
    assert [one.reason for one in more.problems] == ["kind of a field", "id in the index"]
    assert {index.document(id).text for id in "ace"} == {"flour", "dough", "salt"}
    assert index.add(read([{"id": "a", "text": "x"}], on_error="skip")) == 0
    with pytest.raises(InputError, match='already has a document "a"'):
        index.add([{"id": "f", "text": "x"}, {"id": "a", "text": "x"}])
    assert index.upsert(read([{"id": "a", "text": "x"}], on_error="skip")) == 1
    assert len(index) == 3


def test_the_command_line_shows_the_first_problems_and_counts_the_rest(tmp_path: Path) -> None:
    furnished(tmp_path)
    path = tmp_path / "rows.csv"
    path.write_text("id,text\na,flour\n" + "a,again\n" * 23 + "x\n" * 2 + "b,salt\n")
    place = tmp_path / "rows.lexent"
    assert run("index", path, "--out", place, *tiny(tmp_path)).exit_code == 2
    assert not place.exists()
    made = good("index", path, "--out", place, "--on-error", "skip", *tiny(tmp_path))
    lines = [line for line in made.stderr.splitlines() if line.startswith("skipped")]
    assert len(lines) == 22
    assert f"{path}, line 3: the id" in lines[0]
    assert lines[20].split(maxsplit=1)[1] == "5 more: duplicate id 3, ragged row 2"
    assert lines[21].split(maxsplit=1)[1] == "in all: 25 rows or files left out (duplicate id 23, ragged row 2)"
    path.write_text("id,text\nc,oven\nx\n")
    facts = data("add", place, path, "--on-error", "skip", "--encoder", "tiny", "--lexicon", tmp_path / "lexicon")
    assert (facts["added"], facts["skipped"]) == (1, {"ragged row": 1})
    assert facts["problems"][0]["where"] == f"{path}, line 3"


# --- size ------------------------------------------------------------------------------------------------------------

LARGE = "bread " * 300_000  # 1.8 MB


def packed(path: Path, content: str) -> Path:
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "found", "where"),
    [
        ("a.jsonl.gz", json.dumps({"text": "flour"}) + "\n" + json.dumps({"text": LARGE}), ["flour"], ", line 2"),
        ("a.jsonl", json.dumps({"text": LARGE}), [], ""),
        ("a.json.gz", json.dumps([{"text": LARGE}]), [], ""),
        ("a.tsv", f"id\ttext\n1\tflour\n2\t{LARGE}\n", ["flour"], ", line 3"),
        ("a.txt.gz", LARGE, [], ""),
        ("a.html", f"<p>{LARGE}</p>", [], ""),
        ("a.mbox", "From a\n\nflour\n\nFrom b\n\n" + "bread\n" * 300_000, ["flour"], ", the message before line"),
    ],
)
def test_a_row_or_file_above_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, found: list[str], where: str
) -> None:
    path = packed(tmp_path / name, content)
    monkeypatch.setenv("LEXENT_MAX_DOCUMENT_MB", "1")
    with pytest.raises(InputError, match=r"larger than 1 MB; .* LEXENT_MAX_DOCUMENT_MB=10"):
        list(read(path))
    if found:
        corpus = read(path, on_error="skip")
        assert [one.text.strip() for one in corpus] == found
        (problem,) = corpus.problems
        assert problem.reason == "too large"
        assert problem.where.startswith(f"{path}{where}")
    monkeypatch.setenv("LEXENT_MAX_DOCUMENT_MB", "2")
    assert len(list(read(path))) == len(found) + 1


def test_a_quote_without_an_end_does_not_hold_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"{number},flour\n" for number in range(200_000))
    path = packed(tmp_path / "a.csv.gz", f'id,text\na,"never\n{rows}')
    monkeypatch.setenv("LEXENT_MAX_DOCUMENT_MB", "1")
    corpus = read(path, on_error="skip")
    assert len(list(corpus)) == 200_000
    assert [problem.reason for problem in corpus.problems] == ["broken CSV"]


def test_chapters_of_a_book_share_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zipfile

    body = f"<w:document xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'><!--{LARGE}--></w:document>"
    with zipfile.ZipFile(tmp_path / "a.docx", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("word/document.xml", body)
        file.writestr("[Content_Types].xml", "<Types/>")
    monkeypatch.setenv("LEXENT_MAX_DOCUMENT_MB", "1")
    with pytest.raises(InputError, match="larger than 1 MB"):
        list(read(tmp_path / "a.docx"))


@pytest.mark.parametrize("given", ["0", "-1", "much", "1.5"])
def test_a_wrong_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("LEXENT_MAX_DOCUMENT_MB", given)
    with pytest.raises(InputError, match="LEXENT_MAX_DOCUMENT_MB"):
        list(read(packed(tmp_path / "a.jsonl", '{"text": "flour"}\n')))
