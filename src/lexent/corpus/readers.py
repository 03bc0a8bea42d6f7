"""One reader a file format: JSON lines, JSON arrays, CSV, TSV, Parquet and prose, each to a Table of numbered rows."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from lexent.corpus.lines import decoded, lines, opened, raw_lines, show_line
from lexent.errors import InputError, MissingExtraError
from lexent.types import Document

COUNT_LIMIT = 100_000_000
"""Files of more bytes than this are not read once more only to count their rows."""
PROSE_SUFFIXES = (".txt", ".md")
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*\s*")
Row = Mapping[str, Any] | Document
"""A row with named columns; sources that know what they hold give Documents."""


@dataclass(frozen=True, slots=True)
class Table:
    """A source of rows. `rows` starts again from the first one each time it is called."""

    name: str
    """What messages call it: mostly a path."""
    unit: str
    """What a row is there: line, row, item or file."""
    rows: Callable[[], Iterator[tuple[int, Row]]]
    """The rows, each with its number in the source."""
    count: Callable[[], int | None]
    """How many rows there are; None where only a full pass over something large would tell."""
    cells_are_text: bool = False
    """Whether the source has no types of its own (CSV, TSV): they are inferred from all values of a column."""

    def where(self, number: int) -> str:
        """How a message names one row."""
        return f"{self.name}, {self.unit} {number}"


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


def folder_table(folder: Path) -> Table:
    """Every .txt and .md file below the folder, by path; hidden files and folders are left out."""
    paths = prose_paths(folder)
    if not paths:
        others = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
        shown = ", ".join(others[:8]) + (", …" if len(others) > 8 else "")
        raise InputError(
            f"{folder} holds no corpus.jsonl, no .txt and no .md file" + (f"; it holds: {shown}" if others else "")
            + "; give a folder that does, or one file: .jsonl, .csv, .tsv, .parquet"
        )  # fmt: skip

    def rows() -> Iterator[tuple[int, Row]]:
        for number, path in enumerate(paths, 1):
            yield number, prose_document(path, id=path.relative_to(folder).as_posix())

    return Table(name=str(folder), unit="file", rows=rows, count=lambda: len(paths))


def file_table(path: Path) -> Table:
    """One .txt or .md file as one document."""

    def rows() -> Iterator[tuple[int, Row]]:
        yield 1, prose_document(path, id=path.name)

    return Table(name=str(path), unit="file", rows=rows, count=lambda: 1)


def prose_paths(folder: Path) -> list[Path]:
    """The .txt and .md files below a folder, sorted; hidden folders are left out."""
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            Path(root, name) for name in names if name.lower().endswith(PROSE_SUFFIXES) and not name.startswith(".")
        ]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def prose_document(path: Path, *, id: str) -> Document:
    """The file's text. The title is the first Markdown heading, else the file's name without its ending."""
    text = "".join(line for _, line in lines(path)).replace("\r\n", "\n").strip()
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    title = name.stem
    if name.suffix.lower() == ".md":
        fenced = False
        for place, line in enumerate(text.split("\n")):
            if line.startswith(("```", "~~~")):
                fenced = not fenced
            heading = None if fenced else _HEADING.fullmatch(line)
            if heading and heading.group(1):
                title = heading.group(1)
                if place == 0:  # the title is encoded with the text: do not count the heading twice
                    text = text[len(line) :].strip()
                break
    return Document(id=id, text=text, title=title)


def _table(path: Path, unit: str, rows: Any, *, cells_are_text: bool = False) -> Table:
    @cache
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
    reader = csv.reader(chain(filter(None, [first]), source), delimiter=separator, strict=True)
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
