"""What documents are read from: a path, a list of paths, a data frame, or Python objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast, get_args

from lexent import arguments
from lexent.corpus import encodings, formats
from lexent.corpus.columns import choose
from lexent.corpus.corpus import Corpus
from lexent.corpus.file_lists import files_of, names_file
from lexent.corpus.folders import check_not_empty, files_below, is_table
from lexent.corpus.frames import frame_name, frame_table, is_frame, rows_once
from lexent.corpus.lines import PACKED
from lexent.corpus.problems import OnError, RowError
from lexent.corpus.readers import READERS
from lexent.corpus.rows import Place, Row, Table
from lexent.corpus.unread import Unread
from lexent.errors import InputError, LexentError, NotFoundError
from lexent.types import Document

SAMPLED_ROWS = 100
"""How many rows are looked at to guess the columns."""
FORMATS = (
    "a BEIR folder, a folder of files, .jsonl, .json, .csv, .tsv, .parquet, .txt, .md, .rst, .html, .pdf, .docx, "
    ".epub, .eml, .mbox, source code (also .gz, .zst)"
)
BEIR_NAMES = ("corpus.jsonl", "corpus.jsonl.gz")
Source = str | Path | Iterable[Document | Mapping[str, Any] | str | Path] | Any
"""A path, or objects, or a data frame, which has no type of its own here."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How sources are read: what `read` was given."""

    text: str | None
    title: str | None
    id: str | None
    encoding: str | None
    on_error: OnError

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns that were named."""
        return {"text": self.text, "title": self.title, "id": self.id}


def read(
    source: Source,
    *,
    text: str | None = None,
    title: str | None = None,
    id: str | None = None,
    encoding: str | None = None,
    on_error: OnError = "stop",
) -> Corpus:
    """Open a corpus: a file, a folder, a data frame (pandas, polars, Arrow), or objects. A corpus is given as it is.

    Objects are Documents, mappings or strings; or paths, which are read one after the other (`lexent.corpus.file_lists`
    has the rule for strings that name files). Columns that are not named are guessed from the first rows; `title=""`
    and `id=""` mean that there is none; "doc.body" is a key within a column. Rows without an id are numbered from 0. A
    generator can be read only once. All other columns are metadata, and so are the keys of a mapping under "metadata".
    Those of CSV and TSV files get types, by the rule of `lexent.corpus.field_types`.

    Of a folder, all files below it are read, each by its suffix; `Corpus.unread` counts those that no reader is for.
    encoding: of text files without a byte order mark; UTF-8 where it is not given. on_error: a bad row or file raises
    an error ("stop"), or is left out and noted in `Corpus.problems` ("skip"). A row with neither title nor text is bad,
    except in a BEIR corpus.jsonl, where every document counts.
    """
    for option, given in {"text": text, "title": title, "id": id, "encoding": encoding}.items():
        arguments.text_or_none(option, given)
    arguments.choice("on_error", on_error, get_args(OnError))
    if isinstance(source, Corpus):
        if (text, title, id, encoding, on_error) != (None, None, None, None, "stop"):
            raise InputError(
                f"{source.name} is a corpus that was opened already; give text, title, id, encoding and on_error to "
                "lexent.read, which opened it"
            )
        return source
    reading = Reading(text, title, id, encodings.checked(encoding), on_error)
    if arguments.is_path(source):
        return _path_corpus(arguments.path("source", source), reading)
    if is_frame(source):
        once = rows_once(source)
        if once is None:
            return _table_corpus(frame_table(source), reading)
        return _table_corpus(_items_table(once, list(islice(once, SAMPLED_ROWS)), frame_name(source)), reading)
    items, name = cast(Any, source), f"the given {type(source).__name__}"
    if isinstance(items, Mapping | bytes | bytearray) or hasattr(items, "columns") or not isinstance(items, Iterable):
        raise InputError(
            f"{name} is no corpus; give a path, a data frame, or an iterable of documents, dicts or strings"
        )
    held = list(items if isinstance(items, Sequence) else islice(items, SAMPLED_ROWS))
    if files_of(held, name) is not None:
        every = [*held, *items] if isinstance(items, Iterator) else list(items)
        return _files_corpus(files_of(every, name) or [], name, reading)
    return _table_corpus(_items_table(items, held, name), reading)


def _path_corpus(path: Path, reading: Reading, id: str = "") -> Corpus:
    """id: what stands before the paths of a folder's files, or the id of a file that is a document."""
    if not path.exists():
        hint = "; texts are given as a list" if " " in path.name and not path.suffix else ""
        raise NotFoundError(f"no such file or folder: {path}; a corpus is {FORMATS}{hint}")
    if path.is_dir():
        beir = next((path / name for name in BEIR_NAMES if (path / name).exists()), None)
        return _path_corpus(beir, reading) if beir else _folder_corpus(path, reading, id)
    if formats.format_of(path):
        _refuse_columns(str(path), reading)
        return _file_corpus(path, id or path.name, reading)
    suffix = formats.suffix_of(path)
    if suffix not in READERS or (suffix == ".parquet" and path.suffix.lower() in PACKED):
        raise InputError(f'{path}: cannot read a "{path.suffix or path.name}" file; a corpus is {FORMATS}')
    table = READERS[suffix](path, reading.encoding)
    return _table_corpus(table, reading, empty=path.name in BEIR_NAMES)


def _table_corpus(table: Table, reading: Reading, *, empty: bool = False) -> Corpus:
    """The rows of a table, with columns that are chosen by the first ones."""
    table = table if table.cells_are_text else replace(table, rows=partial(_shallow_rows, table))
    bad: list[RowError] = []
    sample = list(islice(_good_rows(table, reading, bad), SAMPLED_ROWS))
    if not sample:
        first = f"; {len(bad):,} could not be read, the first: {bad[0]}" if bad else ""
        raise InputError(f"{table.name} holds no documents{first}; give a source with at least one: {FORMATS}")
    mappings = [row for row in sample if not isinstance(row, Document)]
    if not mappings:
        _refuse_columns(table.name, reading)
        return Corpus(table, None, on_error=reading.on_error)
    chosen = choose(mappings, name=table.name, **reading.columns)
    return Corpus(table, chosen, empty=empty, sample=tuple(mappings), on_error=reading.on_error)


def _good_rows(table: Table, reading: Reading, bad: list[RowError]) -> Iterator[Mapping[str, Any] | Document]:
    """The rows that can be read; the errors of the others are raised, or put into `bad`."""
    try:
        for _, row in table.rows():
            if not isinstance(row, RowError):
                yield row
            elif reading.on_error == "stop":
                raise row
            else:
                bad.append(row)
    except RowError as error:  # nothing after it can be read
        if reading.on_error == "stop":
            raise
        bad.append(error)


def _shallow_rows(table: Table) -> Iterator[tuple[Any, Row]]:
    """The rows, with an error in the place of each one that holds lists or mappings in too many levels."""
    for place, row in table.rows():
        if isinstance(row, Mapping) and arguments.is_too_deep(row):
            where = table.where(place)
            message = (
                f"{where}: nested in more than {arguments.MOST_LEVELS} levels of lists and objects; "
                "keep what is deeper as text, or remove it"
            )
            yield place, RowError(message, where=where, reason="nested too deeply")
        else:
            yield place, row


def _refuse_columns(name: str, reading: Reading) -> None:
    for option, given in reading.columns.items():
        if given:
            raise InputError(f'{name} has no columns, so --{option} "{given}" names nothing; leave it out')


# --- files ---------------------------------------------------------------------------------------------------------


def _file_corpus(path: Path, id: str, reading: Reading) -> Corpus:
    """A file whose content is one document or several."""
    known = formats.format_of(path)
    many = known is not None and known.many

    def rows() -> Iterator[tuple[int, Row]]:
        yield from formats.documents_of(path, id=id, encoding=reading.encoding)

    def named(place: Place) -> str:
        return f"{path}, message {place}" if many and place != () else str(path)

    table = Table(str(path), "file", rows, lambda: None if many else 1, named=named)
    formats.check_installed(path, purpose=f"reading {path}")
    return Corpus(table, None, on_error=reading.on_error)


@dataclass(frozen=True, slots=True)
class _Part:
    """A file or folder of a corpus that is made of several."""

    path: Path
    open: Callable[[], Corpus]
    id: str
    """What stands before the numbers of rows without an id; empty: rows are numbered through all parts."""


def _folder_corpus(folder: Path, reading: Reading, prefix: str) -> Corpus:
    """All files below a folder.

    A file that is a document has its path as its id; a row without an id has that of its file, # and its number.
    """
    files = files_below(folder)
    check_not_empty(files)
    if not files.tables:
        _refuse_columns(str(folder), reading)
    if reading.on_error == "stop":
        for error in files.errors:
            raise error
        _check_installed(files.paths, folder)

    def part(path: Path) -> _Part:
        id = prefix + files.id_of(path)
        return _Part(path, lambda: _path_corpus(path, reading, id), f"{id}#")

    parts = [part(path) for path in files.paths]
    table = _joined(str(folder), "file", parts, reading, before=files.errors)
    return Corpus(table, None, on_error=reading.on_error, unread=files.unread, suffixes=files.counts())


def _check_installed(paths: Sequence[Path], folder: Path) -> None:
    """A MissingExtraError that says how many files need a package that is missing."""
    by_suffix: dict[str, list[Path]] = {}
    for path in paths:
        if not is_table(path):
            by_suffix.setdefault(formats.suffix_of(path), []).append(path)
    for suffix, found in by_suffix.items():
        n = len(found)
        purpose = f"reading the {n:,} {suffix} file{'' if n == 1 else 's'} in {folder} (such as {found[0].name})"
        formats.check_installed(found[0], purpose=purpose)


def _files_corpus(paths: Sequence[Path], name: str, reading: Reading) -> Corpus:
    """Files and folders as one corpus.

    Rows without an id are numbered through all files, from 0; the id of a file that is a document is its path below the
    folder that all of them are in.
    """
    root = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    places = [path.absolute().relative_to(root).as_posix() for path in paths]
    corpora = [
        _path_corpus(path, reading, f"{place}/" if path.is_dir() else place)
        for path, place in zip(paths, places, strict=True)
    ]
    table = _joined(name, "document", [_Part(Path(one.name), partial(_same, one), "") for one in corpora], reading)
    empty = any(corpus.empty for corpus in corpora)
    unread = sum((corpus.unread for corpus in corpora), start=Unread())
    return Corpus(table, None, empty=empty, on_error=reading.on_error, unread=unread)


def _same(corpus: Corpus) -> Corpus:
    return corpus


def _joined(name: str, unit: str, parts: Sequence[_Part], reading: Reading, before: Sequence[RowError] = ()) -> Table:
    """The documents of all parts. before: errors that come first. A part that cannot be opened is one bad row."""
    tables: dict[int, Table] = {}

    def rows() -> Iterator[tuple[tuple[Any, ...], Row]]:
        yield from (((-1, place), error) for place, error in enumerate(before))
        number = -1
        for index, part in enumerate(parts):
            try:
                corpus = part.open()
            except LexentError as error:
                if not isinstance(error, RowError):
                    if reading.on_error == "stop":
                        raise
                    error = RowError(str(error), where=str(part.path), reason=_reason(error))
                yield (index, ()), error
                continue
            tables[index] = corpus.table
            without_id = corpus.columns is not None and corpus.columns.id is None
            for position, (place, entry) in enumerate(corpus.placed_entries()):
                number += 1
                if without_id and isinstance(entry, Document):
                    entry = replace(entry, id=f"{part.id}{position}" if part.id else str(number))
                yield (index, place), entry

    def named(place: Any) -> str:
        index, inner = place
        table = tables.get(index)
        return str(parts[index].path) if table is None or inner == () else table.where(inner)

    def count() -> int | None:
        try:
            counts = [part.open().count() for part in parts]
        except LexentError:  # told when the documents are read
            return None
        return None if None in counts else sum(one or 0 for one in counts)

    return Table(name, unit, rows, count, named=named)


def _reason(error: LexentError) -> str:
    return {"MissingExtraError": "package missing", "NotFoundError": "column missing"}.get(
        type(error).__name__, "unreadable file"
    )


# --- objects -------------------------------------------------------------------------------------------------------


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
        where = f"{name}, item {number}"
        if isinstance(item, Document | Mapping):
            yield number, item
        elif isinstance(item, str) and not names_file(item):
            yield number, {"text": item}
        elif names_file(item):
            yield (
                number,
                RowError(
                    f"{where}: {item} is a file, and the items before it are none; give files alone, or give "
                    f'a text that is no file as {{"text": "..."}}',
                    where=where,
                    reason="a file",
                ),
            )
        else:
            yield (
                number,
                RowError(
                    f"{where}: a {type(item).__name__}; allowed: a lexent Document, a dict or a string",
                    where=where,
                    reason="no document",
                ),
            )
