"""A corpus: documents from a file, a folder or Python objects, checked while they are read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, cast

from lexent import arguments
from lexent.corpus.columns import Columns, value_at, without
from lexent.corpus.field_types import FieldType, converted, infer, text_kind
from lexent.corpus.problems import OnError, Problem, RowError, summary
from lexent.corpus.rows import Place, Row, Table
from lexent.corpus.unread import Unread
from lexent.corpus.values import is_missing, plain
from lexent.errors import InputError
from lexent.types import ConvertedCells, Document

METADATA = "metadata"
"""The key whose mapping holds further fields."""


@dataclass(frozen=True)
class Corpus:
    """Documents, read afresh each time one iterates.

    A bad row raises an error that names it, or is left out and noted in `problems`, by `on_error`.
    """

    table: Table
    columns: Columns | None
    """None: the source gives whole documents."""
    empty: bool = False
    """Documents without a word are kept, not refused: test collections have them (Cranfield's 471 and 995)."""
    sample: tuple[Mapping[str, Any], ...] = field(default=(), repr=False, compare=False)
    """The first rows."""
    on_error: OnError = "stop"
    problems: list[Problem] = field(default_factory=list, repr=False, compare=False)
    """What the last iteration left out, in the order of the source; empty unless on_error is "skip"."""
    unread: Unread = field(default=Unread(), repr=False, compare=False)
    """The files of a folder that no reader is for."""
    suffixes: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    """How many files of a folder are read, by suffix."""

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.table.name

    def __iter__(self) -> Iterator[Document]:
        return self._kept(self.entries())

    def contents(self) -> Iterator[str]:
        """Titles with texts, for training: ids are of no matter here, and may be missing or repeated."""
        return (document.content for document in self.training_documents())

    def training_documents(self) -> Iterator[Document]:
        """The documents that have words. Their ids are of no matter."""
        return (document for document in self._kept(self.entries(training=True)) if document.content)

    def entries(self, *, training: bool = False) -> Iterator[Document | RowError]:
        """The documents, with the error for each row that is none in its place."""
        for _, entry in self.placed_entries(training=training):
            yield entry

    def placed_entries(self, *, training: bool = False) -> Iterator[tuple[Place, Document | RowError]]:
        """As `entries`, each with its place."""
        seen: dict[str, Place] = {}
        has_ids = self.columns is None or self.columns.id is not None
        for position, (place, row) in enumerate(self._rows()):
            try:
                document = self._document(position, place, row, training=training)
                if has_ids and not training and seen.setdefault(document.id, place) != place:
                    first = self.table.at(seen[document.id])
                    raise self._bad(
                        place,
                        f'the id "{document.id}" stands already at {first}; ids must be unique: remove one, name '
                        f'another column (--id COLUMN), or number the rows (--id "")',
                        "duplicate id",
                    )
            except RowError as error:
                yield place, error
            else:
                yield place, document

    def count(self) -> int | None:
        """How many documents there are; None when only reading everything would tell."""
        return self.table.count()

    def _kept(self, entries: Iterator[Document | RowError]) -> Iterator[Document]:
        """The documents among the entries; an error is raised or noted."""
        self.problems.clear()
        some = False
        for entry in entries:
            if isinstance(entry, Document):
                some = True
                yield entry
            elif self.on_error == "stop":
                raise entry
            else:
                self.problems.append(Problem.of(entry))
        if self.problems and not some:
            raise InputError(
                f"{self.name}: nothing could be read; {summary(self.problems)}; the first: {self.problems[0]}"
            )

    def _rows(self) -> Iterator[tuple[Place, Row]]:
        """The rows. An error that ends the source is the last one."""
        rows = self.table.rows()
        while True:
            try:
                yield next(rows)
            except StopIteration:
                return
            except RowError as error:
                yield (), error
                return

    def _bad(self, place: Place, message: str, reason: str) -> RowError:
        where = self.table.where(place)
        return RowError(f"{where}: {message}", where=where, reason=reason)

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
            kinds = ", ".join(f"{count:,} {suffix}" for suffix, count in self.suffixes.items())
            if kinds:
                files = sum(self.suffixes.values())
                size = f"{files:,} file{'' if files == 1 else 's'} ({kinds}); "
            return f"{size}id = path, title = first heading or file name, text = the file"
        return f"{size}id, title and text as given"

    @cached_property
    def field_types(self) -> dict[str, FieldType]:
        """The types of the fields, where the source's cells are all text: inferred by a pass over all rows."""
        if not self.table.cells_are_text or self.columns is None:
            return {}
        used = (self.columns.id, self.columns.title, self.columns.text)
        rows = (cast("Mapping[str, str]", row) for _, row in self._rows() if not isinstance(row, RowError))
        first = next(rows, {})
        return infer(chain([first], rows), [column for column in first if column not in used])

    def _kinds(self) -> dict[str, str]:
        """The fields that a filter can read and their kinds, in the first rows of a source that has types itself."""
        columns = self.columns or Columns(text="text")
        rows = (self._metadata(row, columns, ()) for row in self.sample)
        found: dict[str, str] = {}
        for name, kind in chain.from_iterable(map(_kinds_of, rows)):
            if found.setdefault(name, kind) != kind and "text" in (found[name], kind):
                found[name] = "text"  # dates and other strings
        return found

    def _metadata(self, row: Mapping[str, Any], columns: Columns, place: Place) -> dict[str, Any]:
        """All columns that are not used otherwise. A mapping under "metadata" gives its own keys, not one key."""
        fields = without(row, (columns.id, columns.title, columns.text))
        types = self.field_types
        found = {
            column: converted(value, types[column]) if column in types else plain(value)
            for column, value in fields.items()
            if column != METADATA or not isinstance(value, Mapping | None)
        }
        for name, value in (fields.get(METADATA) or {}).items() if METADATA not in found else ():
            if name in found:
                message = f'both "{name}" and "{METADATA}" give the field "{name}"; remove one of them'
                raise self._bad(place, message, "repeated field")
            found[name] = plain(value)
        spelling = {column: row[column] for column, kind in types.items() if kind != "text"}
        return ConvertedCells(found, spelling) if spelling else found

    def _document(self, position: int, place: Place, row: Row, *, training: bool) -> Document:
        """training: without id and metadata, which may be missing or bad there."""
        if isinstance(row, RowError):
            raise row
        if isinstance(row, Document):
            document = row
        else:
            columns = self.columns or Columns(text="text")
            document = Document(
                id=self._id(row, columns.id, place) if columns.id and not training else str(position),
                title=self._text(row, columns.title, place) if columns.title else "",
                text=self._text(row, columns.text, place),
                metadata={} if training else self._metadata(row, columns, place),
            )
        if not document.id.strip():
            raise self._bad(place, 'the document has an empty id; give it one, or number the rows: --id ""', "empty id")
        if not self.empty and not document.text.strip() and not document.title.strip():
            used = "" if self.columns is None else f" ({self.columns.description})"
            message = f"the document has neither text nor title{used}; fill it in or remove that row"
            raise self._bad(place, message, "empty text")
        for part in (document.id, document.title, document.text):
            if not part.isascii():
                self._check_unicode(place, part)
        return document

    def _check_unicode(self, place: Place, part: str) -> None:
        where = self.table.where(place)
        try:
            arguments.unicode(where, part)
        except InputError as error:
            raise RowError(str(error), where=where, reason="not Unicode") from error

    def _id(self, row: Mapping[str, Any], column: str, place: Place) -> str:
        value = value_at(row, column)
        if isinstance(value, bool | dict | list | bytes):
            message = f'the id column "{column}" holds {value!r:.40}; an id is a string or a number'
            raise self._bad(place, message, "bad id")
        id = self._text(row, column, place)
        if not id.strip():
            raise self._bad(
                place,
                f'the id column "{column}" is empty; fill it in, name another column (--id COLUMN), '
                f'or number the rows (--id "")',
                "empty id",
            )
        return id

    def _text(self, row: Mapping[str, Any], column: str | None, place: Place) -> str:
        value = value_at(row, column or "")
        if isinstance(value, str):
            return value
        if is_missing(value) or (isinstance(value, float) and math.isnan(value)):
            return ""  # how data frames write an empty cell
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            return " ".join(value)  # sentences, as some abstracts are kept
        if isinstance(value, int | float):
            return str(value)
        message = f'the column "{column}" holds a {type(value).__name__}, not text; name another one: --text COLUMN'
        raise self._bad(place, message, "no text")


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
