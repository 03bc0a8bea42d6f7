"""Data frames and Arrow tables: rows are read as they are, with their types, and nothing is imported for it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import small
from lexent.corpus import read
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.errors import InputError
from lexent.training.reconstruction.train import lessons_of
from lexent.types import Document

COLUMNS: dict[str, list[Any]] = {
    "Doc ID": ["a", "b", "c"],
    "title": ["Bread", None, "Stars"],
    "text": ["flour yeast dough", "oven crust bake", "telescope galaxy"],
    "year": [1994, None, 2001],
    "price": [1.5, float("nan"), 2.0],
    "read": [True, False, None],
    "day": [date(2019, 5, 31), None, date(2020, 1, 1)],
    "seen": [datetime(2019, 5, 31, 10, 30), datetime(2020, 1, 1, 8), None],
    "sent": [datetime(2019, 5, 31, 10, tzinfo=UTC), None, None],
    "tags": [["x", "y"], [], None],
    "author": [{"name": "Ada", "born": date(1815, 12, 10)}, None, {"name": "Bob", "born": None}],
}
EXPECTED = [
    Document("a", "flour yeast dough", "Bread", {
        "year": 1994, "price": 1.5, "read": True, "day": "2019-05-31", "seen": "2019-05-31T10:30:00",
        "sent": "2019-05-31T10:00:00+00:00", "tags": ["x", "y"], "author": {"name": "Ada", "born": "1815-12-10"},
    }),
    Document("b", "oven crust bake", "", {
        "year": None, "price": None, "read": False, "day": None, "seen": "2020-01-01T08:00:00", "sent": None,
        "tags": [], "author": None,
    }),
    Document("c", "telescope galaxy", "Stars", {
        "year": 2001, "price": 2.0, "read": None, "day": "2020-01-01", "seen": None, "sent": None, "tags": None,
        "author": {"name": "Bob", "born": None},
    }),
]  # fmt: skip


def of_pandas() -> Any:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COLUMNS)
    return frame.assign(day=pandas.to_datetime(frame["day"]), seen=pandas.to_datetime(frame["seen"]))


def of_pandas_with_nullable_types() -> Any:
    return of_pandas().convert_dtypes()


def of_pandas_with_an_index() -> Any:
    return of_pandas().set_index("Doc ID")


def of_polars() -> Any:
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def of_arrow() -> Any:
    return pytest.importorskip("pyarrow").table(COLUMNS)


def of_record_batch() -> Any:
    return of_arrow().to_batches()[0]


def of_reader() -> Any:
    return of_arrow().to_reader()


class Stream:
    """Knows the Arrow protocol, and nothing else."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


FRAMES = [
    of_pandas, of_pandas_with_nullable_types, of_pandas_with_an_index, of_polars, of_arrow, of_record_batch, of_reader,
    lambda: Stream(of_arrow()),
]  # fmt: skip


@pytest.mark.parametrize("make", FRAMES)
def test_rows_and_their_types(make: Any) -> None:
    corpus = read(make())
    found = list(corpus)
    assert found == EXPECTED
    assert [type(one.metadata["year"]) for one in found] == [int, type(None), int]
    described = corpus.description
    assert 'id = "Doc ID", title = "title", text = "text"' in described
    for field in ("year (number)", "day (date)", "seen (date)", "sent (time)", "author.born (date)", "read (boolean)"):
        assert field in described


def test_a_frame_can_be_read_again_and_a_reader_cannot() -> None:
    corpus = read(of_polars())
    assert list(corpus) == list(corpus) == EXPECTED
    assert corpus.count() == 3
    once = read(of_reader())
    assert list(once) == EXPECTED
    with pytest.raises(InputError, match="the given RecordBatchReader was read already"):
        list(once)


def test_columns_that_are_attributes_of_the_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"index": ["i"], "chunks": ["c"], "dtype": ["d"], "text": ["flour"], 7: [1]})
    assert list(read(frame)) == [Document("0", "flour", "", {"index": "i", "chunks": "c", "dtype": "d", "7": 1})]
    twice = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(InputError, match='two columns named "text"'):
        read(twice)


def test_a_series_is_a_list_of_texts() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for series in (pandas.Series(["flour", "yeast"]), polars.Series(["flour", "yeast"])):
        assert [one.text for one in read(series)] == ["flour", "yeast"]


def test_bad_rows_of_a_frame_are_named_or_skipped() -> None:
    frame = pytest.importorskip("polars").DataFrame({"id": ["a", "a", None], "text": ["x", "y", "z"]})
    with pytest.raises(InputError, match='the given DataFrame, row 2: the id "a" stands already at row 1'):
        list(read(frame))
    corpus = read(frame, on_error="skip")
    assert [one.id for one in corpus] == ["a"]
    assert [one.reason for one in corpus.problems] == ["duplicate id", "empty id"]


def test_a_lazy_frame_is_collected_first() -> None:
    with pytest.raises(InputError, match=r"LazyFrame has no rows yet; .*frame\.collect\(\)"):
        read(of_polars().lazy())


def test_frames_are_indexed_added_and_trained_on(tmp_path: Path) -> None:
    index = Index.build(of_polars(), out=tmp_path / "i", encoder=TinyEncoder(), lexicon=small.lexicon())
    assert {hit.id for hit in index.search("flour", filter={"day": {"lt": "2020"}})} <= {"a"}
    pandas = pytest.importorskip("pandas")
    assert {hit.id for hit in index.search("flour", filter={"day": {"lt": pandas.Timestamp(2019, 12, 31)}})} <= {"a"}
    more = of_arrow().set_column(0, "Doc ID", [["d", "e", "f"]])
    assert index.add(more.to_reader()) == 3
    assert index.upsert(of_pandas()) == 3
    assert len(index) == 6
    assert dict(index.document("d").metadata) == EXPECTED[0].metadata
    assert list(lessons_of(of_pandas())) == [(0, one.content) for one in EXPECTED]


def test_nothing_is_imported_for_frames() -> None:
    code = (
        "import sys; from lexent.corpus import read; list(read(['a'])); "
        "print(sorted({'pandas', 'polars', 'pyarrow', 'lxml', 'pypdf', 'pygments'} & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


def test_a_polars_frame_is_read_without_pyarrow() -> None:
    code = """
import sys; sys.modules["pyarrow"] = None
import polars
from lexent.corpus import read
print([one.text for one in read(polars.DataFrame({"text": ["flour", "yeast"]}))])
"""
    pytest.importorskip("polars")
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "['flour', 'yeast']"
