"""One reader a format of tables: JSON lines, JSON arrays, CSV, TSV and Parquet, each to a Table of numbered rows.

A row that cannot be read is given as a RowError, in its place; the rows after it are read all the same.
"""

from __future__ import annotations

import csv
import reprlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from lexent.corpus.encodings import decoded
from lexent.corpus.lines import Line, most_bytes, opened, show_line, text_lines, unpacked_name, whole
from lexent.corpus.problems import RowError
from lexent.corpus.rows import Row, Table
from lexent.errors import InputError, MissingExtraError

COUNT_LIMIT = 100_000_000
"""Files of more bytes than this are not read once more only to count their rows."""
Numbered = Iterator[tuple[int, Row]]


def json_table(path: Path, encoding: str | None = None) -> Table:
    """JSON lines, or one array of objects."""
    with opened(path) as file:
        array = file.read(4096).lstrip(b"\xef\xbb\xbf\xff\xfe\0 \r\n\t").startswith(b"[")
    if array:
        return _table(path, "item", lambda: _json_array(path, encoding))
    return _table(path, "line", lambda: json_rows(path, encoding))


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON lines file with their line numbers. The first bad line is an InputError."""
    for number, row in json_rows(path):
        if isinstance(row, RowError):
            raise row
        yield number, row


def json_rows(path: Path, encoding: str | None = None) -> Iterator[tuple[int, dict[str, Any] | RowError]]:
    """The objects of a JSON lines file with their line numbers; blank lines are no rows."""
    for number, text, error in text_lines(path, encoding):
        if error or not text.strip():
            if error:
                yield number, error
            continue
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as broken:
            yield (
                number,
                _bad(
                    f"{path}, line {number}",
                    f"broken JSON ({broken.msg}, column {broken.colno}): {_short(text.strip())}; "
                    f"mend that line; to see it: {show_line(path, number)}",
                    "broken JSON",
                ),
            )
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            where = f"{path}, line {number}"
            yield (
                number,
                _bad(where, f"{_short(reprlib.repr(value))} is no object; a line reads {_EXAMPLE}", "no object"),
            )


def csv_table(path: Path, encoding: str | None = None) -> Table:
    """Comma-separated values with a header line; also with semicolons, as some spreadsheets write them."""
    # The csv module refuses fields above 128 KB, for the whole process; a document may well be longer.
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))
    return _table(path, "line", lambda: _csv_rows(path, encoding), cells_are_text=True)


def tsv_table(path: Path, encoding: str | None = None) -> Table:
    """Tab-separated values with a header line. A row is a line: quotes are text, except around a whole field."""
    return _table(path, "line", lambda: _tsv_rows(path, encoding), cells_are_text=True)


def parquet_table(path: Path, encoding: str | None = None) -> Table:
    """A Parquet file, read a batch at a time."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", extra="parquet", purpose=f"reading {path}") from error

    def broken(error: Exception) -> RowError:
        return _bad(str(path), f"not a readable Parquet file ({_short(str(error))})", "damaged file")

    try:
        size = int(parquet.read_metadata(path).num_rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise broken(error) from error

    def rows() -> Numbered:
        number = 0
        try:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=1024):
                    for row in batch.to_pylist():
                        number += 1
                        yield number, row
        except (pyarrow.ArrowException, OSError) as error:
            raise broken(error) from error

    return Table(name=str(path), unit="row", rows=rows, count=lambda: size)


READERS: dict[str, Callable[[Path, str | None], Table]] = {
    **dict.fromkeys((".jsonl", ".json", ".ndjson"), json_table),
    ".csv": csv_table,
    ".tsv": tsv_table,
    ".parquet": parquet_table,
}
"""By the suffix of a file, without that of packed files. A Parquet file is never packed."""
_EXAMPLE = '{"id": "7", "text": "..."}'


def _table(path: Path, unit: str, rows: Any, *, cells_are_text: bool = False) -> Table:
    @cache
    def count() -> int | None:
        return sum(1 for _ in rows()) if path.stat().st_size <= COUNT_LIMIT else None

    return Table(name=str(path), unit=unit, rows=rows, count=count, cells_are_text=cells_are_text)


def _json_array(path: Path, encoding: str | None) -> Numbered:
    text = decoded(whole(path), path, encoding)
    try:
        values = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _bad(
            f"{path}, line {error.lineno}",
            f"broken JSON ({error.msg}, column {error.colno}); "
            f"mend that line; to see it: {show_line(path, error.lineno)}",
            "broken JSON",
        ) from error
    for number, value in enumerate(values, 1):
        if isinstance(value, dict):
            yield number, value
        else:
            where = f"{path}, item {number}"
            yield (
                number,
                _bad(where, f"{_short(reprlib.repr(value))} is no object; an item reads {_EXAMPLE}", "no object"),
            )


class _Lines:
    """The lines of a file for a CSV reader, which takes one or more for a row."""

    def __init__(self, source: Iterator[Line]) -> None:
        self._source = source
        self._ahead: list[Line] = []
        self._most = self._left = most_bytes()
        self.taken: list[Line] = []
        """The lines of the row that is read."""

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._ahead.pop() if self._ahead else next(self._source)
        self._left = (self._left if self.taken else self._most) - len(line.text)
        self.taken.append(line)
        if self._left < 0:
            raise csv.Error("a field has no end")
        return line.text

    def give_back(self, kept: int) -> None:
        """The lines of the row are read again, except for the first ones."""
        self._ahead += reversed(self.taken[kept:])
        self.taken.clear()


def _csv_rows(path: Path, encoding: str | None) -> Numbered:
    """A row whose quotes are broken is one line: the lines after it are read again as rows of their own."""
    source = _Lines(text_lines(path, encoding))
    first = next(source, "")
    separator = ";" if "," not in first and ";" in first else ","
    source.give_back(0)
    header: list[str] = []
    reader = csv.reader(source, delimiter=separator, strict=True)
    while True:
        source.taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            line = source.taken[0]
            hint = f'a field with quotes is written "like ""this"""; to see the line: {show_line(path, line.number)}'
            broken = _bad(f"{path}, line {line.number}", f"broken CSV ({error}); {hint}", "broken CSV")
            if not header:
                raise broken from error
            source.give_back(1)
            reader = csv.reader(source, delimiter=separator, strict=True)
            yield line.number, line.error or broken
            continue
        start = source.taken[0].number
        undecodable = next((line.error for line in source.taken if line.error), None)
        if not header:
            if undecodable:
                raise undecodable
            header = _header(cells, path)
        elif undecodable:
            yield start, undecodable
        elif cells:
            yield start, _cells(header, cells, path, start)


def _tsv_rows(path: Path, encoding: str | None) -> Numbered:
    header: list[str] | None = None
    for number, line, error in text_lines(path, encoding):
        if not line.strip():
            continue
        cells = [_unquoted(cell) for cell in line.rstrip("\r\n").split("\t")]
        if header is None:
            if error:
                raise error
            header = _header(cells, path)
        else:
            yield number, error or _cells(header, cells, path, number)


def _unquoted(cell: str) -> str:
    """The field without the quotes that a CSV writer puts around one that holds quotes."""
    if len(cell) >= 2 and cell[0] == cell[-1] == '"' and '"' not in cell[1:-1].replace('""', ""):
        return cell[1:-1].replace('""', '"')
    return cell


def _header(cells: list[str], path: Path) -> list[str]:
    """The column names; a first row of data is refused, since reading it as names would lose a document."""
    # data frames write their index as a column without a name
    names = [cell.strip() or f"column {place}" for place, cell in enumerate(cells, 1)]
    odd = next((name for name in names if name.isdigit() or len(name) > 64), None)
    if names and odd is not None:
        mark = "\\t" if unpacked_name(path.name).lower().endswith(".tsv") else ","
        raise InputError(
            f"{path}, line 1: expected column names, found {_short(repr(odd))}; "
            f"put a header line first, such as: id{mark}title{mark}text"
        )
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise InputError(f'{path}, line 1: two columns are named "{twice}"; rename one of them')
    return names


def _cells(header: list[str], cells: list[str], path: Path, number: int) -> dict[str, str] | RowError:
    if len(cells) != len(header):
        return _bad(
            f"{path}, line {number}",
            f"{len(cells)} fields, but the header names {len(header)} ({', '.join(header)}); "
            f"to see the line: {show_line(path, number)}",
            "ragged row",
        )
    return dict(zip(header, cells, strict=True))


def _bad(where: str, message: str, reason: str) -> RowError:
    return RowError(f"{where}: {message}", where=where, reason=reason)


def _short(text: str, width: int = 60) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
