"""A corpus: documents from a file, a folder or Python objects, checked while they are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

from lexent.corpus.columns import Columns, choose
from lexent.corpus.folder import SUFFIXES, file_table, folder_table
from lexent.corpus.readers import csv_table, json_table, parquet_table, tsv_table
from lexent.corpus.table import Row, Table
from lexent.errors import InputError, NotFoundError
from lexent.types import Document

SAMPLE = 100
"""How many rows are looked at to guess the columns."""

FORMATS = "a BEIR folder, a folder of .txt or .md files, .jsonl, .json, .csv, .tsv (also .gz), .parquet, .txt, .md"

BEIR_NAMES = ("corpus.jsonl", "corpus.jsonl.gz")

Source = str | Path | Iterable[Document | Mapping[str, Any] | str]


@dataclass(frozen=True)
class Corpus:
    """Documents, read afresh each time one iterates. A bad row raises an error that names it; none is skipped."""

    table: Table
    columns: Columns | None
    """None: the source gives whole documents."""
    empty: bool = False
    """Documents without a word are kept, not refused: test collections have them (Cranfield's 471 and 995)."""

    @property
    def name(self) -> str:
        return self.table.name

    def __iter__(self) -> Iterator[Document]:
        seen: dict[str, int] = {}
        for position, (number, row) in enumerate(self.table.rows()):
            document = self._document(position, number, row)
            if isinstance(row, Document) or (self.columns and self.columns.id):
                first = seen.setdefault(document.id, number)
                if first != number:
                    raise InputError(
                        f'{self.table.where(number)}: the id "{document.id}" stands already at {self.table.unit} '
                        f"{first}; ids must be unique: remove one, name another column (--id COLUMN), "
                        f'or number the rows (--id "")'
                    )
            yield document

    def contents(self) -> Iterator[str]:
        """Titles with texts, for training: ids are of no matter here, and may be missing or repeated."""
        for position, (number, row) in enumerate(self.table.rows()):
            content = self._document(position, number, row, ids=False).content
            if content:
                yield content

    def count(self) -> int | None:
        """How many documents there are; None when only reading everything would tell."""
        return self._count

    @cached_property
    def _count(self) -> int | None:
        return self.table.count()

    @property
    def description(self) -> str:
        """One line for people: how many rows, and which columns are used."""
        unit = {"file": "file", "item": "item"}.get(self.table.unit, "row")
        size = "" if self._count is None else f"{self._count:,} {unit}{'' if self._count == 1 else 's'}; "
        if self.columns:
            return size + self.columns.description
        if self.table.unit == "file":
            return f"{size}id = path, title = first heading or file name, text = the file"
        return f"{size}id, title and text as given"

    def _document(self, position: int, number: int, row: Row, *, ids: bool = True) -> Document:
        where = self.table.where(number)
        if isinstance(row, Document):
            document = row
        else:
            columns = self.columns or Columns(text="text")
            names = (columns.id, columns.title, columns.text)
            document = Document(
                id=_id(row, columns.id, where) if ids and columns.id else str(position),
                title=_text(row.get(columns.title), columns.title, where) if columns.title else "",
                text=_text(row.get(columns.text), columns.text, where),
                metadata={column: _plain(value) for column, value in row.items() if column not in names},
            )
        if not document.id.strip():
            raise InputError(f'{where}: the document has an empty id; give it one, or number the rows: --id ""')
        if not self.empty and not document.text.strip() and not document.title.strip():
            columns_used = "" if self.columns is None else f" ({self.columns.description})"
            raise InputError(
                f"{where}: the document has neither text nor title{columns_used}; fill it in or remove that row"
            )
        for part in (document.id, document.title, document.text):
            _check_unicode(part, where)
        return document


def read(source: Source, *, text: str | None = None, title: str | None = None, id: str | None = None) -> Corpus:
    """Open a corpus: a path (BEIR folder, .jsonl, .csv, .tsv, .parquet, folder of .txt or .md files), or objects.

    Objects are Documents, mappings or strings. Columns that are not named are guessed from the first rows; `title=""`
    and `id=""` mean that there is none. Rows without an id are numbered from 0. A generator can be read only once.
    A row with neither title nor text is an error, except in a BEIR corpus.jsonl, where every document counts.
    """
    table = _path_table(Path(source)) if isinstance(source, str | Path) else _items_table(source)
    sample = [row for _, row in islice(table.rows(), SAMPLE)]
    if not sample:
        raise InputError(f"{table.name} holds no documents; give a source with at least one: {FORMATS}")
    mappings = [row for row in sample if not isinstance(row, Document)]
    if not mappings:
        for option, given in (("text", text), ("title", title), ("id", id)):
            if given:
                raise InputError(f'{table.name} has no columns, so --{option} "{given}" names nothing; leave it out')
        return Corpus(table, None)
    columns = choose(mappings, name=table.name, text=text, title=title, id=id)
    return Corpus(table, columns, empty=Path(table.name).name in BEIR_NAMES)


def _path_table(path: Path) -> Table:
    if not path.exists():
        raise NotFoundError(f"no such file or folder: {path}; a corpus is {FORMATS}")
    if path.is_dir():
        beir = next((path / name for name in BEIR_NAMES if (path / name).exists()), None)
        return json_table(beir) if beir else folder_table(path)
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending in (".jsonl", ".json", ".ndjson"):
        return json_table(path)
    if ending == ".csv":
        return csv_table(path)
    if ending == ".tsv":
        return tsv_table(path)
    if path.suffix.lower() == ".parquet":
        return parquet_table(path)
    if ending in SUFFIXES:
        return file_table(path)
    raise InputError(f'{path}: cannot read a "{path.suffix or path.name}" file; a corpus is {FORMATS}')


def _items_table(items: Iterable[Document | Mapping[str, Any] | str]) -> Table:
    name = f"the given {type(items).__name__}"
    if isinstance(items, Mapping | bytes) or hasattr(items, "columns") or not isinstance(items, Iterable):
        raise InputError(
            f"{name} is no corpus; give a path, or an iterable of documents, dicts or strings "
            f'(of a data frame: frame.to_dict("records"))'
        )
    if not isinstance(items, Iterator):
        size = len(items) if isinstance(items, Sized) else None
        return Table(name, "item", lambda: _item_rows(items, name), lambda: size)
    # A generator gives its items once: the sample is held back for the one reading that follows it.
    held = list(islice(items, SAMPLE))
    turns = iter((iter(held), chain(held, items)))

    def rows() -> Iterator[tuple[int, Row]]:
        turn = next(turns, None)
        if turn is None:
            raise InputError(f"{name} was read already and cannot start again; give a list or a file")
        return _item_rows(turn, name)

    return Table(name, "item", rows, lambda: None)


def _item_rows(items: Iterable[Any], name: str) -> Iterator[tuple[int, Row]]:
    for number, item in enumerate(items, 1):
        if isinstance(item, Document | Mapping):
            yield number, item
        elif isinstance(item, str):
            yield number, {"text": item}
        else:
            raise InputError(
                f"{name}, item {number}: a {type(item).__name__}; allowed: a lexent Document, a dict or a string"
            )


def _id(row: Mapping[str, Any], column: str, where: str) -> str:
    value = row.get(column)
    if isinstance(value, bool | dict | list | bytes):
        raise InputError(f'{where}: the id column "{column}" holds {value!r:.40}; an id is a string or a number')
    id = _text(value, column, where)
    if not id.strip():
        raise InputError(
            f'{where}: the id column "{column}" is empty; fill it in, name another column (--id COLUMN), '
            f'or number the rows (--id "")'
        )
    return id


def _text(value: Any, column: str | None, where: str) -> str:
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""  # how data frames write an empty cell
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " ".join(value)  # sentences, as some abstracts are kept
    if isinstance(value, int | float):
        return str(value)
    raise InputError(
        f'{where}: the column "{column}" holds a {type(value).__name__}, not text; name another one: --text COLUMN'
    )


def _plain(value: Any) -> Any:
    """Metadata is kept as JSON; what JSON does not know (dates, decimals) is kept as it prints."""
    return value if isinstance(value, str | int | float | list | dict | None) else str(value)


def _check_unicode(part: str, where: str) -> None:
    if part.isascii():
        return
    try:
        part.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: character {error.start + 1} is half a surrogate pair ({part[error.start]!r}), which no file "
            f'can hold; mend it: text.encode("utf-8", "replace").decode()'
        ) from error
