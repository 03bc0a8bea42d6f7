"""A corpus: documents from a file, a folder or Python objects, checked while they are read."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import numpy as np

from lexent import arguments
from lexent.corpus import readers
from lexent.corpus.columns import Columns, choose
from lexent.corpus.field_types import FieldType, converted, infer, text_kind
from lexent.corpus.file_lists import files_of, names_file
from lexent.corpus.readers import Row, Table
from lexent.errors import InputError, NotFoundError
from lexent.types import ConvertedCells, Document

SAMPLED_ROWS = 100
"""How many rows are looked at to guess the columns."""

FORMATS = "a BEIR folder, a folder of .txt or .md files, .jsonl, .json, .csv, .tsv (also .gz), .parquet, .txt, .md"

BEIR_NAMES = ("corpus.jsonl", "corpus.jsonl.gz")

METADATA = "metadata"
"""The key whose mapping holds further fields."""

_READERS = {
    **dict.fromkeys((".jsonl", ".json", ".ndjson"), readers.json_table),
    **dict.fromkeys(readers.PROSE_SUFFIXES, readers.file_table),
    ".csv": readers.csv_table,
    ".tsv": readers.tsv_table,
}
"""By the suffix of a file, before .gz. Parquet files are never gzipped."""

Source = str | Path | Iterable[Document | Mapping[str, Any] | str | Path]


@dataclass(frozen=True)
class Corpus:
    """Documents, read afresh each time one iterates. A bad row raises an error that names it; none is skipped."""

    table: Table
    columns: Columns | None
    """None: the source gives whole documents."""
    empty: bool = False
    """Documents without a word are kept, not refused: test collections have them (Cranfield's 471 and 995)."""
    sample: tuple[Mapping[str, Any], ...] = field(default=(), repr=False, compare=False)
    """The first rows."""

    @property
    def name(self) -> str:
        """The name of the source."""
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
            content = self._document(position, number, row, training=True).content
            if content:
                yield content

    def count(self) -> int | None:
        """How many documents there are; None when only reading everything would tell."""
        return self.table.count()

    @property
    def description(self) -> str:
        """One line for people: how many rows, and which columns are used."""
        unit = {"file": "file", "item": "item"}.get(self.table.unit, "row")
        count = self.count()
        size = "" if count is None else f"{count:,} {unit}{'' if count == 1 else 's'}; "
        if self.columns:
            types = ", ".join(f"{name} ({kind})" for name, kind in (self.field_types or self._kinds()).items())
            return f"{size}{self.columns.description}{f'; fields: {types}' if types else ''}"
        if self.table.unit == "file":
            return f"{size}id = path, title = first heading or file name, text = the file"
        return f"{size}id, title and text as given"

    @cached_property
    def field_types(self) -> dict[str, FieldType]:
        """The types of the fields, where the source's cells are all text: inferred by a pass over all rows."""
        if not self.table.cells_are_text or self.columns is None:
            return {}
        used = (self.columns.id, self.columns.title, self.columns.text)
        rows = (cast("Mapping[str, str]", row) for _, row in self.table.rows())
        first = next(rows, {})
        return infer(chain([first], rows), [column for column in first if column not in used])

    def _kinds(self) -> dict[str, str]:
        """The fields that a filter can read and their kinds, in the first rows of a source that has types itself."""
        columns = self.columns or Columns(text="text")
        rows = (self._metadata(row, columns, self.name) for row in self.sample)
        found: dict[str, str] = {}
        for name, kind in chain.from_iterable(map(_kinds_of, rows)):
            if found.setdefault(name, kind) != kind and "text" in (found[name], kind):
                found[name] = "text"  # dates and other strings
        return found

    def _metadata(self, row: Mapping[str, Any], columns: Columns, where: str) -> dict[str, Any]:
        """All columns that are not used otherwise. A mapping under "metadata" gives its own keys, not one key."""
        used = (columns.id, columns.title, columns.text)
        fields = {column: value for column, value in row.items() if column not in used}
        types = self.field_types
        found = {
            column: converted(value, types[column]) if column in types else _plain(value)
            for column, value in fields.items()
            if column != METADATA or not isinstance(value, Mapping | None)
        }
        for name, value in (fields.get(METADATA) or {}).items() if METADATA not in found else ():
            if name in found:
                raise InputError(f'{where}: both "{name}" and "{METADATA}" give the field "{name}"; remove one of them')
            found[name] = _plain(value)
        spelling = {column: row[column] for column, kind in types.items() if kind != "text"}
        return ConvertedCells(found, spelling) if spelling else found

    def _document(self, position: int, number: int, row: Row, *, training: bool = False) -> Document:
        """training: without id and metadata, which may be missing or bad there."""
        where = self.table.where(number)
        if isinstance(row, Document):
            document = row
        else:
            columns = self.columns or Columns(text="text")
            document = Document(
                id=_id(row, columns.id, where) if columns.id and not training else str(position),
                title=_text(row.get(columns.title), columns.title, where) if columns.title else "",
                text=_text(row.get(columns.text), columns.text, where),
                metadata={} if training else self._metadata(row, columns, where),
            )
        if not document.id.strip():
            raise InputError(f'{where}: the document has an empty id; give it one, or number the rows: --id ""')
        if not self.empty and not document.text.strip() and not document.title.strip():
            columns_used = "" if self.columns is None else f" ({self.columns.description})"
            raise InputError(
                f"{where}: the document has neither text nor title{columns_used}; fill it in or remove that row"
            )
        for part in (document.id, document.title, document.text):
            arguments.unicode(where, part)
        return document


def read(source: Source, *, text: str | None = None, title: str | None = None, id: str | None = None) -> Corpus:
    """Open a corpus: a path (BEIR folder, .jsonl, .csv, .tsv, .parquet, folder of .txt or .md files), or objects.

    Objects are Documents, mappings or strings; or paths, which are read one after the other (`lexent.corpus.file_lists`
    has the rule for strings that name files). Columns that are not named are guessed from the first rows; `title=""`
    and `id=""` mean that there is none. Rows without an id are numbered from 0. A generator can be read only once.
    All other columns are metadata, and so are the keys of a mapping under "metadata". Those of CSV and TSV files get
    types, by the rule of `lexent.corpus.field_types`. A row with neither title nor text is an error, except in a BEIR
    corpus.jsonl, where every document counts.
    """
    columns = {"text": text, "title": title, "id": id}
    for option, given in columns.items():
        arguments.text_or_none(option, given)
    if arguments.is_path(source):
        table = _path_table(arguments.path("source", source))
    else:
        items, name = cast(Any, source), f"the given {type(source).__name__}"
        if (
            isinstance(items, Mapping | bytes | bytearray)
            or hasattr(items, "columns")
            or not isinstance(items, Iterable)
        ):
            raise InputError(
                f"{name} is no corpus; give a path, or an iterable of documents, dicts or "
                f'strings (of a data frame: frame.to_dict("records"))'
            )
        held = list(items if isinstance(items, Sequence) else islice(items, SAMPLED_ROWS))
        if files_of(held, name) is not None:
            every = [*held, *items] if isinstance(items, Iterator) else list(items)
            return _files_corpus(files_of(every, name) or [], name, columns)
        table = _items_table(items, held, name)
    sample = [row for _, row in islice(table.rows(), SAMPLED_ROWS)]
    if not sample:
        raise InputError(f"{table.name} holds no documents; give a source with at least one: {FORMATS}")
    mappings = [row for row in sample if not isinstance(row, Document)]
    if not mappings:
        for option, given in columns.items():
            if given:
                raise InputError(f'{table.name} has no columns, so --{option} "{given}" names nothing; leave it out')
        return Corpus(table, None)
    chosen = choose(mappings, name=table.name, text=text, title=title, id=id)
    return Corpus(table, chosen, empty=Path(table.name).name in BEIR_NAMES, sample=tuple(mappings))


def _path_table(path: Path) -> Table:
    if not path.exists():
        raise NotFoundError(f"no such file or folder: {path}; a corpus is {FORMATS}")
    if path.is_dir():
        beir = next((path / name for name in BEIR_NAMES if (path / name).exists()), None)
        return readers.json_table(beir) if beir else readers.folder_table(path)
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    reader = readers.parquet_table if path.suffix.lower() == ".parquet" else _READERS.get(ending)
    if reader is not None:
        return reader(path)
    raise InputError(f'{path}: cannot read a "{path.suffix or path.name}" file; a corpus is {FORMATS}')


def _files_corpus(paths: Sequence[Path], name: str, columns: Mapping[str, str | None]) -> Corpus:
    """Files and folders as one corpus.

    Rows without an id are numbered through all files, from 0; a prose file's id is its path below the folder that all
    of them are in.
    """
    root = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    parts = [(path.absolute().relative_to(root).as_posix(), read(path, **columns)) for path in paths]

    def rows() -> Iterator[tuple[int, Row]]:
        number = 0
        for place, corpus in parts:
            for document in corpus:
                number += 1
                if corpus.columns is not None and corpus.columns.id is None:
                    document = replace(document, id=str(number - 1))
                elif corpus.table.unit == "file":
                    document = replace(document, id=f"{place}/{document.id}" if Path(corpus.name).is_dir() else place)
                yield number, document

    def count() -> int | None:
        counts = [corpus.count() for _, corpus in parts]
        return None if None in counts else sum(one or 0 for one in counts)

    return Corpus(Table(name, "document", rows, count), None, empty=any(corpus.empty for _, corpus in parts))


def _items_table(items: Iterable[Any], held: list[Any], name: str) -> Table:
    """held: the first items, of an iterator taken out of it."""
    if not isinstance(items, Iterator):
        size = len(items) if isinstance(items, Sized) else None
        return Table(name, "item", lambda: _item_rows(items, name), lambda: size)
    # A generator gives its items once: the sample is held back for the one reading that follows it.
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
        elif isinstance(item, str) and not names_file(item):
            yield number, {"text": item}
        elif names_file(item):
            raise InputError(
                f"{name}, item {number}: {item} is a file, and the items before it are none; give files alone, or give "
                f'a text that is no file as {{"text": "..."}}'
            )
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


def _kinds_of(metadata: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Each field with the kind of its value; one within another is "author.name", a list has those of its elements."""
    for name, value in metadata.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Mapping):
                yield from _kinds_of(one, f"{prefix}{name}.")
            elif isinstance(one, bool):
                yield prefix + name, "boolean"
            elif one is not None and one != "":
                yield prefix + name, "number" if isinstance(one, int | float) else text_kind(str(one))


def _plain(value: Any) -> Any:
    """Metadata is kept as JSON; what JSON does not know (dates, decimals) is kept as it prints."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | int | float | list | dict | None) else str(value)
