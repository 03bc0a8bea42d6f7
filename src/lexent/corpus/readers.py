"""One reader a file format: JSON lines, JSON arrays, CSV, TSV and Parquet, each to a Table."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from lexent.corpus.lines import decoded, lines, opened, raw_lines, show_line
from lexent.corpus.table import Row, Table
from lexent.errors import InputError, MissingExtraError

COUNT_LIMIT = 100_000_000
"""Files of more bytes than this are not read once more only to count their rows."""


def json_table(path: Path) -> Table:
    """JSON lines, or one array of objects."""
    with opened(path) as file:
        array = file.read(4096).lstrip().startswith(b"[")
    if array:
        return _table(path, "item", lambda: _json_array(path))
    return _table(path, "line", lambda: json_lines(path))


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON lines file with their line numbers; blank lines are no rows."""
    for number, line in raw_lines(path):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            text = decoded(line, path, number)  # says so when the bytes, not the JSON, are at fault
            raise InputError(
                f"{path}, line {number}: broken JSON ({error.msg}, column {error.colno}): {_short(text.strip())}; "
                f"mend that line; to see it: {show_line(path, number)}"
            ) from error
        if not isinstance(value, dict):
            raise InputError(
                f'{path}, line {number}: {_short(repr(value))} is no object; a line reads {{"id": "7", "text": "..."}}'
            )
        yield number, value


def csv_table(path: Path) -> Table:
    """Comma-separated values with a header line; also with semicolons, as some spreadsheets write them."""
    # The csv module refuses fields above 128 KB, for the whole process; a document may well be longer.
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))
    return _table(path, "line", lambda: _csv_rows(path), cells_are_text=True)


def tsv_table(path: Path) -> Table:
    """Tab-separated values with a header line. A row is a line: quotes are text, except around a whole field."""
    return _table(path, "line", lambda: _tsv_rows(path), cells_are_text=True)


def parquet_table(path: Path) -> Table:
    """A Parquet file, read a batch at a time."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", extra="parquet", purpose=f"reading {path}") from error

    try:
        size = int(parquet.read_metadata(path).num_rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({_short(str(error))})") from error

    def rows() -> Iterator[tuple[int, Row]]:
        number = 0
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row

    return Table(name=str(path), unit="row", rows=rows, count=lambda: size)


def _table(path: Path, unit: str, rows: Any, *, cells_are_text: bool = False) -> Table:
    def count() -> int | None:
        return sum(1 for _ in rows()) if path.stat().st_size <= COUNT_LIMIT else None

    return Table(name=str(path), unit=unit, rows=rows, count=count, cells_are_text=cells_are_text)


def _json_array(path: Path) -> Iterator[tuple[int, Row]]:
    with opened(path) as file:
        content = file.read()
    try:
        values = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        for number, line in enumerate(content.split(b"\n"), 1):
            decoded(line, path, number)
        raise InputError(
            f"{path}, line {error.lineno}: broken JSON ({error.msg}, column {error.colno}); "
            f"mend that line; to see it: {show_line(path, error.lineno)}"
        ) from error
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise InputError(
                f'{path}, item {number}: {_short(repr(value))} is no object; an item reads {{"id": "7", "text": "..."}}'
            )
        yield number, value


def _csv_rows(path: Path) -> Iterator[tuple[int, Row]]:
    source = (line for _, line in lines(path))
    first = next(source, "")
    separator = ";" if "," not in first and ";" in first else ","
    reader = csv.reader(_chain(first, source), delimiter=separator, strict=True)
    try:
        header = _header(next(reader, []), path)
        start = reader.line_num + 1
        for cells in reader:
            if cells:
                yield start, _cells(header, cells, path, start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}, line {max(1, reader.line_num)}: broken CSV ({error}); a field with quotes is written "
            f'"like ""this"""; to see the line: {show_line(path, max(1, reader.line_num))}'
        ) from error


def _chain(first: str, rest: Iterable[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest


def _tsv_rows(path: Path) -> Iterator[tuple[int, Row]]:
    header: list[str] | None = None
    for number, line in lines(path):
        if not line.strip():
            continue
        cells = [_unquoted(cell) for cell in line.rstrip("\r\n").split("\t")]
        if header is None:
            header = _header(cells, path)
        else:
            yield number, _cells(header, cells, path, number)


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
        mark = "\\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
        raise InputError(
            f"{path}, line 1: expected column names, found {_short(repr(odd))}; "
            f"put a header line first, such as: id{mark}title{mark}text"
        )
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise InputError(f'{path}, line 1: two columns are named "{twice}"; rename one of them')
    return names


def _cells(header: list[str], cells: list[str], path: Path, number: int) -> dict[str, str]:
    if len(cells) != len(header):
        raise InputError(
            f"{path}, line {number}: {len(cells)} fields, but the header names {len(header)} ({', '.join(header)}); "
            f"to see the line: {show_line(path, number)}"
        )
    return dict(zip(header, cells, strict=True))


def _short(text: str, width: int = 60) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
