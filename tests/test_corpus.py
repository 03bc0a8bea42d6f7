"""Stage 0: files to documents, and what is said about bad ones."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from lexent.corpus import read, texts
from lexent.errors import InputError, LexentError, NotFoundError
from lexent.types import Document

ROWS = [
    {"_id": "a", "title": "Statins", "text": "Statins lower cholesterol.", "year": 1994},
    {"_id": "b", "title": "", "text": "Mice were fed.", "year": 2001},
]
DOCUMENTS = [
    Document("a", "Statins lower cholesterol.", "Statins", {"year": 1994}),
    Document("b", "Mice were fed.", "", {"year": 2001}),
]


def json_lines(path: Path, rows: list[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def refused(source: object, kind: type[LexentError] = InputError, **options: str) -> str:
    """The message with which a corpus is refused, when opened or when read."""
    with pytest.raises(kind) as caught:
        list(read(source, **options))  # type: ignore[arg-type]
    return str(caught.value)


# --- formats ---------------------------------------------------------------------------------------------------------


def test_json_lines(tmp_path: Path) -> None:
    corpus = read(json_lines(tmp_path / "papers.jsonl", ROWS))
    assert list(corpus) == DOCUMENTS
    assert list(corpus) == DOCUMENTS, "a file can be read again"
    assert corpus.count() == 2
    assert corpus.description == (
        '2 rows; id = "_id", title = "title", text = "text"  (override: --id, --title, --text); fields: year (number)'
    )


def test_the_fields_of_json_are_listed_with_their_kinds(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "metadata": {"lang": "en", "year": None}, "tags": ["x", "y"], "author": {"name": "B", "age": 7}},
        {"text": "b", "metadata": {"lang": "de", "year": 1994, "open": True}, "tags": [], "note": ""},
    ]
    kinds = "tags (text), author.name (text), author.age (number), lang (text), year (number), open (boolean)"
    assert read(json_lines(tmp_path / "papers.jsonl", rows)).description.endswith(f"; fields: {kinds}")
    assert read(rows).description.endswith(f"; fields: {kinds}")
    assert len(list(generated := read(iter(rows)))) == 2
    assert generated.description.endswith(f"; fields: {kinds}"), "the sample is kept, and nothing is read again"


def test_dates_of_json_are_listed_as_filters_read_them(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "opened": "2025-01-31", "seen": "2025-01-31T10:00:00Z", "due": "2025-02-01"},
        {"text": "b", "opened": "2025-02-01", "seen": "2025-02-01T10:00:00+02:00", "due": "soon"},
    ]
    described = read(json_lines(tmp_path / "papers.jsonl", rows)).description
    assert described.endswith("; fields: opened (date), seen (time), due (text)")


def test_gzip_blank_lines_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "papers.jsonl.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + "\r\n\n".join(map(json.dumps, ROWS)).encode() + b"\n\n"))
    assert list(read(str(path))) == DOCUMENTS


def test_beir_folder_prefers_its_corpus_to_prose(tmp_path: Path) -> None:
    json_lines(tmp_path / "corpus.jsonl", ROWS)
    (tmp_path / "SOURCE.md").write_text("# Source")
    assert list(read(tmp_path)) == DOCUMENTS
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress((tmp_path / "corpus.jsonl").read_bytes()))
    (tmp_path / "corpus.jsonl").unlink()
    assert list(read(tmp_path)) == DOCUMENTS


def test_json_array(tmp_path: Path) -> None:
    path = tmp_path / "papers.json"
    path.write_text(json.dumps(ROWS, indent=2))
    assert list(read(path)) == DOCUMENTS


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv"])
def test_delimited(tmp_path: Path, ending: str) -> None:
    rows = [{**ROWS[0], "text": 'He said "LDL", twice'}, ROWS[1]]
    path = tmp_path / f"papers.{ending}"
    opener = gzip.open if ending.endswith("gz") else open
    with opener(path, "wt", newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]), delimiter="\t" if ending == "tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
    found = list(read(path))
    assert [(row.id, row.title, row.text) for row in found] == [
        ("a", "Statins", 'He said "LDL", twice'), ("b", "", "Mice were fed."),
    ]  # fmt: skip
    assert found[0].metadata == {"year": 1994}


def test_csv_with_line_breaks_semicolons_and_an_unnamed_index(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(';id;text\n0;a;"one\ntwo"\n1;b;"three, four"\n')
    found = list(read(path))
    assert [document.text for document in found] == ["one\ntwo", "three, four"]
    assert found[0].metadata == {"column 1": 0}


def test_tsv_quotes_are_text(tmp_path: Path) -> None:
    path = tmp_path / "passages.tsv"
    path.write_text('id\ttext\n1\t"Yes" he said\n2\t"open\n3\t"a ""b"" c"\n')
    assert [document.text for document in read(path)] == ['"Yes" he said', '"open', 'a "b" c']


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "papers.parquet"
    rows = [{**row, "seen": date(2024, 5, 1)} for row in ROWS]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    corpus = read(path)
    assert corpus.count() == 2
    assert [(document.id, document.text) for document in corpus] == [(row["_id"], row["text"]) for row in ROWS]
    assert next(iter(corpus)).metadata == {"year": 1994, "seen": "2024-05-01"}


def test_folder_of_prose(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "no.md").write_text("# Hidden")
    (tmp_path / "b.txt").write_text("Plain text.\n")
    (tmp_path / "a.md").write_text("```\n# a comment\n```\n\n## The heading ##\n\nBody.\n")
    (tmp_path / "deep" / "c.md").write_text("# Title\n\nMore.\n")
    (tmp_path / "deep" / "empty.txt").write_text("")
    corpus = read(tmp_path)
    assert [(document.id, document.title, document.text) for document in corpus] == [
        ("a.md", "The heading", "```\n# a comment\n```\n\n## The heading ##\n\nBody."),
        ("b.txt", "b", "Plain text."),
        ("deep/c.md", "Title", "More."),
    ]
    assert corpus.unread.counts == {"hidden": 1, "empty": 1}
    assert (
        corpus.description == "3 files (2 .md, 1 .txt); id = path, title = first heading or file name, text = the file"
    )
    assert [document.id for document in read(tmp_path / "b.txt")] == ["b.txt"]


def test_python_objects() -> None:
    assert list(read(ROWS)) == DOCUMENTS
    assert list(read(DOCUMENTS)) == DOCUMENTS
    assert list(read(["first", "second"])) == [Document("0", "first"), Document("1", "second")]
    assert read(["first"]).description.startswith('1 item; id = row number, from 0, title = none, text = "text"')
    assert [document.id for document in read([{"id": 7, "text": "seven"}])] == ["7"]
    nan = float("nan")
    assert list(read([{"id": 1, "title": nan, "text": ["One.", "Two."], "x": None}])) == [
        Document("1", "One. Two.", "", {"x": None})
    ]


def test_a_generator_is_read_once() -> None:
    corpus = read({"text": f"text {number}"} for number in range(250))
    assert corpus.count() is None
    assert [document.id for document in corpus] == [str(number) for number in range(250)]
    with pytest.raises(InputError, match=r"read already.*give a list or a file"):
        list(corpus)


def test_a_long_document(tmp_path: Path) -> None:
    long = "word " * 200_000
    assert next(iter(read(json_lines(tmp_path / "long.jsonl", [{"id": 1, "text": long}])))).text == long
    path = tmp_path / "long.csv"
    path.write_text(f'id,text\n1,"{long}"\n')
    assert next(iter(read(path))).text == long


# --- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"DocNo": "7", "Headline": "T", "Body": "B"}, Document("7", "B", "T")),
        ({"pid": "7", "short": "s", "what": "a longer string"}, Document("7", "a longer string", "", {"short": "s"})),
        ({"doc_id": 4, "title": "T", "abstract": ["S1.", "S2."]}, Document("4", "S1. S2.", "T")),
        ({"id": "1", "title": "only a title"}, Document("1", "only a title")),
        ({"Doc ID": "7", "Document Text": "no", "Body Text": "t"}, Document("7", "no", "", {"Body Text": "t"})),
        ({"doc-id": 7, "TITLE": "T", "Full_Text": "x", "text": "B"}, Document("7", "B", "T", {"Full_Text": "x"})),
        ({"DocumentId": 7, "id": 8, "text": "B"}, Document("8", "B", "", {"DocumentId": 7})),
        ({"ID": 7, "_id": 8, "text": "B"}, Document("8", "B", "", {"ID": 7})),
        ({"content": {"no": "text"}, "passage": "P"}, Document("0", "P", "", {"content": {"no": "text"}})),
    ],
)
def test_guesses(row: dict[str, object], expected: Document) -> None:
    assert list(read([row])) == [expected]


def test_columns_within_columns(tmp_path: Path) -> None:
    row = {"doc": {"body": "flour", "head": "Bread", "lang": "en"}, "meta": {"key": 7}, "a.b": "dotted"}
    found = next(iter(read([row], text="doc.body", title="doc.head", id="meta.key")))
    assert found == Document("7", "flour", "Bread", {"doc": {"lang": "en"}, "a.b": "dotted"})
    assert row["doc"] == {"body": "flour", "head": "Bread", "lang": "en"}, "the caller's row is left alone"
    assert next(iter(read([row], text="a.b"))).text == "dotted", "a column of that name comes first"
    path = json_lines(tmp_path / "nested.jsonl", [row])
    assert next(iter(read(path, text="doc.body"))).text == "flour"
    message = refused(path, NotFoundError, text="doc.bdy")
    assert 'has no column "doc.bdy"; columns: doc.body ("flour"), doc.head ("Bread"), doc.lang ("en")' in message
    assert "is empty" in refused([row, {"doc": {"body": "yeast"}}], text="doc.body", id="meta.key")


def test_overrides() -> None:
    row = {"id": "1", "text": "the text", "title": "the title", "note": "the note"}
    found = next(iter(read([row], text="note", title="text", id="title")))
    assert (found.id, found.title, found.text, found.metadata) == ("the title", "the text", "the note", {"id": "1"})
    assert list(read([row], title="", id="")) == [
        Document("0", "the text", "", {"id": "1", "title": "the title", "note": "the note"})
    ]


# --- bad input: each names the place and what to type ---------------------------------------------------------------


def test_missing_file(tmp_path: Path) -> None:
    message = refused(tmp_path / "none.jsonl", NotFoundError)
    assert f"no such file or folder: {tmp_path / 'none.jsonl'}" in message
    assert "texts are given as a list" not in message
    with pytest.raises(NotFoundError, match="texts are given as a list"):
        read("a sentence about dogs")
    assert ".parquet" in message


def test_unknown_format_and_useless_folder(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"")
    assert 'cannot read a ".xlsx" file; a corpus is' in refused(tmp_path / "a.xlsx")
    assert "no file that is read; not read: 1 .xlsx; give a folder that does" in refused(tmp_path)


def test_missing_text_column(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "n.jsonl", [{"n": 12, "m": [1, 2]}])
    assert refused(path) == f"{path} has no text column; columns: n (12), m ([1, 2]); name it: --text COLUMN"
    path = json_lines(tmp_path / "papers.jsonl", ROWS)
    message = refused(path, NotFoundError, text="boddy")
    assert f'{path} has no column "boddy"; columns: _id ("a"), title ("Statins"), text ("Statins lower' in message
    assert "choose one: --text COLUMN" in message


def test_broken_json(tmp_path: Path) -> None:
    path = tmp_path / "papers.jsonl"
    path.write_text('{"id": "a", "text": "good"}\n\n{"id": "b", "text": \n')
    message = refused(path)
    assert f"{path}, line 3: broken JSON" in message
    assert f"sed -n 3p {path}" in message
    path.write_text('["a", 3]\n')
    assert f"{path}, item 1: 'a' is no object" in refused(path)
    path.write_text('{"id": "a", "text": "good"}\n"text"\n')
    assert f"{path}, line 2: 'text' is no object" in refused(path)
    array = tmp_path / "papers.json"
    array.write_text('[{"text": "a"},\n {"text": }]')
    assert f"{array}, line 2: broken JSON" in refused(array)
    packed = tmp_path / "papers.jsonl.gz"
    packed.write_bytes(gzip.compress(b"{\n"))
    assert f"zcat {packed} | sed -n 1p" in refused(packed)


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "papers.jsonl"
    path.write_bytes(b'{"id": "a", "text": "good"}\n{"id": "b", "text": "caf\xe9"}\n')
    message = refused(path)
    assert (
        f"{path}, line 2, byte 25 of the line (0xE9): not UTF-8 text; name its encoding: --encoding cp1252" in message
    )
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "n.txt").write_bytes(b"one\ntwo \x81\xff\n")
    message = refused(folder)
    assert f"{folder / 'n.txt'}, line 2, byte 5 of the line (0x81)" in message
    assert "--encoding latin-1" in message
    packed = tmp_path / "papers.csv.gz"
    packed.write_bytes(gzip.compress("id,text\n1,привет, мир\n".encode("cp1251")))
    assert "--encoding cp1251" in refused(packed)
    packed.write_bytes(gzip.compress('id,text\n1,"привет, мир"\n'.encode("cp1251")))
    assert [one.text for one in read(packed, encoding="cp1251")] == ["привет, мир"]
    assert "not ascii text" in refused(packed, encoding="ascii")
    assert "an encoding that Python knows, such as utf-8, cp1252" in refused(packed, encoding="windows")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json", "a.txt"])
def test_a_byte_order_mark_names_the_encoding(tmp_path: Path, name: str, encoding: str) -> None:
    path = tmp_path / name
    table = {"a.csv": "id,text\n1,café\n", "a.json": '[{"id": 1, "text": "café"}]', "a.txt": "café"}
    path.write_bytes(table.get(name, '{"id": 1, "text": "café"}\n').encode(encoding))
    assert [one.text for one in read(path)] == ["café"]
    assert [one.text for one in read(path, encoding="cp1252")] == ["café"], "the mark says more than the caller"


def test_truncated_gzip(tmp_path: Path) -> None:
    path = tmp_path / "papers.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "some words"}\n' * 99)[:-12])
    assert f"{path}: not a whole gzip file" in refused(path)
    path.write_bytes(b'{"text": "not packed"}\n')
    assert f"{path}: not a whole gzip file" in refused(path)


def test_empty_and_duplicate_ids(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "papers.jsonl", [{"id": "a", "text": "x"}, {"id": " ", "text": "y"}])
    message = refused(path)
    assert f'{path}, line 2: the id column "id" is empty' in message
    assert 'number the rows (--id "")' in message
    json_lines(path, [{"id": "a", "text": "x"}, {"text": "y"}])
    assert f'{path}, line 2: the id column "id" is empty' in refused(path)
    json_lines(path, [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}, {"id": "a", "text": "z"}])
    message = refused(path)
    assert f'{path}, line 3: the id "a" stands already at line 1' in message
    assert "--id COLUMN" in message
    assert [document.id for document in read(path, id="")] == ["0", "1", "2"]
    assert 'item 2: the id "a" stands already at item 1' in refused([Document("a", "x"), Document("a", "y")])
    assert "item 1: the document has an empty id" in refused([Document("", "x")])
    assert "an id is a string or a number" in refused([{"id": ["a"], "text": "x"}])


def test_a_document_without_words(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "papers.jsonl", [*ROWS, {"_id": "c", "title": " ", "text": None}])
    message = refused(path)
    assert f"{path}, line 3: the document has neither text nor title" in message
    assert "fill it in or remove that row" in message
    assert len(list(read(json_lines(path, [*ROWS, {"_id": "c", "title": "T", "text": ""}])))) == 3

    collection = read(json_lines(tmp_path / "corpus.jsonl", [*ROWS, {"_id": "c", "title": "", "text": ""}]))
    assert list(collection) == [*DOCUMENTS, Document("c", "")], "test collections have such documents"
    assert len(list(texts(tmp_path / "corpus.jsonl"))) == 2


def test_empty_corpus(tmp_path: Path) -> None:
    for name in ("papers.jsonl", "papers.csv", "papers.tsv", "papers.json"):
        path = tmp_path / name
        path.write_text({"papers.json": "[]", "papers.csv": "id,text\n"}.get(name, ""))
        assert f"{path} holds no documents" in refused(path)
    assert "the given list holds no documents" in refused([])
    (tmp_path / "none").mkdir()
    assert "holds no corpus.jsonl and no file that is read" in refused(tmp_path / "none")


def test_broken_tables(tmp_path: Path) -> None:
    path = tmp_path / "papers.csv"
    path.write_text('id,text\n1,"a\nb"\n2,b,c\n')
    assert f"{path}, line 4: 3 fields, but the header names 2 (id, text)" in refused(path)
    path.write_text('id,text\n1,"never closed\n2,b\n')
    assert f"{path}, line 2: broken CSV" in refused(path)
    path.write_text("id,text,id\n1,a,2\n")
    assert 'two columns are named "id"' in refused(path)
    bare = tmp_path / "collection.tsv"
    bare.write_text("0\tThe presence of communication amid scientific minds\n1\tMore\n")
    assert f"{bare}, line 1: expected column names, found '0'; put a header line first" in refused(bare)
    bare.write_text("id\ttext\n1\ta\tb\n")
    assert f"{bare}, line 2: 3 fields" in refused(bare)
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no")
    assert "x.parquet: not a readable Parquet file" in refused(tmp_path / "x.parquet")


def test_wrong_objects() -> None:
    assert "the given dict is no corpus" in refused({"a": "text"})
    assert "item 2: a int; allowed: a lexent Document, a dict or a string" in refused(["a", 3])
    assert 'item 1: the column "text" holds a dict' in refused([{"text": {"a": 1}}], text="text")
    assert "half a surrogate pair" in refused(["\ud800"])
    assert '--text "x" names nothing' in refused(DOCUMENTS, text="x")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"")
    code = f"""
import sys; sys.modules["pyarrow"] = None
from lexent.corpus import read
from lexent.errors import MissingExtraError
try: read({str(tmp_path / "x.parquet")!r})
except MissingExtraError as error: print(error)
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 'needs the package "pyarrow"; install it: pip install "lexent[parquet]"' in output


# --- training text ---------------------------------------------------------------------------------------------------


def test_texts_from_many_sources(tmp_path: Path) -> None:
    one = json_lines(tmp_path / "one.jsonl", [*ROWS, ROWS[0]])
    found = texts([one, str(one)])
    expected = ["Statins Statins lower cholesterol.", "Mice were fed.", "Statins Statins lower cholesterol."]
    assert list(found) == expected * 2, "repeated ids do not matter here"
    assert list(found) == expected * 2
    assert found.count() == 6
    with pytest.raises(NotFoundError):
        texts([one, tmp_path / "missing.jsonl"])
    with pytest.raises(InputError, match="lexent train TEXTS"):
        texts([])


def test_texts_of_prose_are_paragraphs(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Head\n\nOne\ntwo.\n\n\nThree.")
    (tmp_path / "b.txt").write_text(("x" * 99 + "\n") * 20)
    found = list(texts(tmp_path))
    assert found[:3] == ["Head", "One two.", "Three."]
    assert [len(text) for text in found[3:]] == [11 * 99 + 10, 9 * 99 + 8]


def test_the_module_is_light() -> None:
    code = "import sys, lexent.corpus; print(sorted({'torch', 'pyarrow', 'numba'} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


@pytest.mark.data
def test_real_collections(data_dir: Path) -> None:
    corpus = read(data_dir / "cranfield")
    assert corpus.description.startswith('1,400 rows; id = "_id", title = "title", text = "text"')


@pytest.mark.parametrize("source", [[""], [" \n", ""], [{"text": ""}], [{"id": "a", "text": None, "title": " "}]])
def test_an_empty_text_is_not_a_missing_column(source: list[Any]) -> None:
    with pytest.raises(InputError, match="the given list, item 1: the document has neither text nor title") as caught:
        list(read(source))
    assert "no text column" not in str(caught.value)


def test_an_empty_text_column_of_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,body\na,\n")
    with pytest.raises(InputError, match=r"x\.csv, line 2: the document has neither text nor title .*text = \"body\""):
        list(read(tmp_path / "x.csv"))
    with pytest.raises(InputError, match="has no text column; columns: year"):
        read([{"year": 3}])
