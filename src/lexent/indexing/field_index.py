"""Metadata as fields that filters look up: for each value of a field, the positions of the documents that have it."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import artifact, forks
from lexent.bounded_cache import BoundedCache
from lexent.errors import ArtifactError, InputError
from lexent.indexing.filters import KINDS, FieldKind, Filter, Match, Node, Span, Stored, mask, stored

UNREADABLE = (sqlite3.DatabaseError, ValueError, TypeError, IndexError, OverflowError)
"""What a damaged file raises; a ValueError where text or JSON is, or where SQLite's own complaint quotes such bytes."""
STEPS_PER_CALL = 100_000
"""Instructions of SQLite between two looks at whether a query should have ended."""
MIN_STEPS = 2_000_000
STEPS_PER_BYTE = 16
"""Instructions that a query may take for each byte of its file: pages that point to each other have no end."""

SCHEMA = """
CREATE TABLE names (field INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE fields (
    field INTEGER NOT NULL,
    value NOT NULL,             -- no type: numbers, text and bytes stay what they are
    first INTEGER NOT NULL,
    positions BLOB NOT NULL,    -- little-endian uint32, the first among them
    PRIMARY KEY (field, value, first)
) WITHOUT ROWID;
"""

POSITIONS_PER_ROW = 128
"""Positions in a row: more would not fit on a page of SQLite beside others, and every search would read them all."""

BUFFERED_POSITIONS = 2**19
"""Positions that are held in memory before they are written."""

MASK_BYTES = 2**26
"""Memory for the masks that one store remembers."""

_BATCH = 8192
_ROWS_PER_CHECK = 256
_MIN_LENGTH, _MAX_LENGTH = 2**12, 10**9
_MASTER = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_OF_FIELD = "field = (SELECT field FROM names WHERE name = ?)"
_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_IS_DATE = f"value GLOB '{_DAY}' OR value GLOB '{_DAY}[T ][0-9][0-9]:[0-9][0-9]*'"
"""A date in the form of ISO 8601, with a time or without, as `lexent.corpus.field_types` and JSON write it."""
_OTHER_TEXT = f"SELECT 1 FROM fields WHERE {_OF_FIELD} AND value > '' AND value < x'' AND NOT ({_IS_DATE}) LIMIT 1"


class FieldWriter:
    """Collects the fields of documents and writes them in order. The caller begins and ends transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._connection.executescript(SCHEMA)
        self._known: dict[str, int] = {}
        self._lists: dict[str, dict[Stored, array[int]]] = {}
        self._held = 0

    def add(self, position: int, metadata: Mapping[str, Any]) -> None:
        """The metadata of one document, as JSON gives it. Positions ascend."""
        for name, value in flattened(metadata):
            lists = self._lists.setdefault(name, {})
            found = lists.get(value)
            if found is None:
                lists[value] = array("I", (position,))
            elif found[-1] != position:  # a list may hold a value twice
                found.append(position)
            self._held += 1
        if self._held >= BUFFERED_POSITIONS:
            self.flush()

    def copy(self, rows: Iterable[list[tuple[str, Stored, bytes]]], target: NDArray[np.int64]) -> None:
        """Batches of names, values and positions of another store; a position moves to its target, or goes if < 0."""
        for batch in rows:
            moved = target[np.frombuffer(b"".join(row[2] for row in batch), "<u4")]
            kept = moved >= 0
            ends = np.cumsum([len(row[2]) // 4 for row in batch])
            stops = (4 * np.cumsum(kept)[ends - 1]).tolist()
            data = moved[kept].astype(np.uint32).tobytes()
            start = 0
            for (name, value, _), stop in zip(batch, stops, strict=True):
                if stop > start:
                    self._lists.setdefault(name, {}).setdefault(value, array("I")).frombytes(data[start:stop])
                start = stop
            self._held += len(data) // 4
            if self._held >= BUFFERED_POSITIONS:
                self.flush()

    def flush(self) -> None:
        """Write the positions that are buffered."""
        for name, lists in self._lists.items():
            if name not in self._known:
                self._known[name] = len(self._known)
                self._connection.execute("INSERT INTO names VALUES (?, ?)", (self._known[name], name))
            self._connection.executemany("INSERT INTO fields VALUES (?, ?, ?, ?)", _rows(self._known[name], lists))
        self._lists.clear()
        self._held = 0


def flattened(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Stored]]:
    """Names and stored values: {"author": {"name": "A"}} gives author.name, a list its elements, null nothing."""
    for name, value in metadata.items():
        if isinstance(value, dict):
            for inner, found in flattened(value):
                yield f"{name}.{inner}", found
        elif isinstance(value, list):
            for element in value:
                yield from flattened({name: element})
        elif value is not None:
            yield name, stored(value)


def _rows(field: int, lists: Mapping[Stored, array[int]]) -> Iterator[tuple[int, Stored, int, bytes]]:
    """Rows in the table's own order, so that they are appended and not strewn over it."""
    for kinds in ((int, float), (str,), (bytes,)):
        for value in sorted(value for value in lists if isinstance(value, kinds)):
            found = lists[value]
            for start in range(0, len(found), POSITIONS_PER_ROW):
                part = found[start : start + POSITIONS_PER_ROW]
                first = part[0]
                if sys.byteorder == "big":
                    part.byteswap()
                yield field, value, first, part.tobytes()


_inherited: list[sqlite3.Connection] = []
"""Connections of the parent process, which are never closed here."""


class StepLimit:
    """Ends queries of a connection to a file that somebody else may have made. A context for each query."""

    def __init__(self, connection: sqlite3.Connection, n_bytes: int) -> None:
        """n_bytes: the size of the file. No value can be larger."""
        self._connection, self._most = connection, MIN_STEPS + STEPS_PER_BYTE * n_bytes
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA mmap_size = 0")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(n_bytes, _MIN_LENGTH), _MAX_LENGTH))

    def __enter__(self) -> None:
        self._done = 0
        self._connection.set_progress_handler(self._is_over, STEPS_PER_CALL)

    def __exit__(self, *_: object) -> None:
        self._connection.set_progress_handler(None, 0)

    def _is_over(self) -> bool:
        self._done += STEPS_PER_CALL
        return self._done > self._most


def _schema(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """The tables and indexes of a file, without the comments and blanks of their statements."""
    return sorted(" ".join(" ".join(re.sub(r"--.*", "", str(value)) for value in row).split()) for row in rows)


@cache
def _expected(statements: tuple[str, ...]) -> list[str]:
    """What `_schema` gives of a file that was made with these statements."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(";".join(statements))
        return _schema(connection.execute(_MASTER))


class StoreConnection:
    """A connection to the SQLite file of a store that no longer changes, for any thread. A damaged file is named."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.uri = f"{path.as_uri()}?mode=ro&immutable=1"
        """The file, for SQLite. Immutable, as it never changes: no lock files are needed, also on a read-only disk."""
        self.lock = threading.RLock()
        self._closed = False
        self._connect()
        forks.wait_for(self)
        forks.renew(self)

    def _connect(self) -> None:
        with self.damage():
            self._connection = sqlite3.connect(self.uri, uri=True, check_same_thread=False)
            self.size = self._path.stat().st_size
            self._steps = StepLimit(self._connection, self.size)

    def after_fork(self) -> None:
        """Opens a connection of its own: SQLite allows none to be used, or closed, in a child."""
        _inherited.append(self._connection)
        if not self._closed:
            self._connect()

    def read(self, query: str, *values: Stored) -> list[tuple[Any, ...]]:
        """The rows of a query, which together cannot have more bytes than the file."""
        rows: list[tuple[Any, ...]] = []
        n_bytes = 0
        with self.lock, self.damage(), self._steps:
            cursor = self._connection.execute(query, values)
            while batch := cursor.fetchmany(_ROWS_PER_CHECK):
                n_bytes += sum(len(value) for row in batch for value in row if isinstance(value, str | bytes))
                if n_bytes > self.size:
                    raise ValueError("it gives more than it holds")
                rows += batch
        return rows

    def check_schema(self, *expected: str) -> None:
        """Refuse a file with other tables than these statements make: a view or a trigger is a program."""
        with self.damage():
            found = self._connection.execute(_MASTER).fetchmany(100)
            if _schema(found) != _expected(expected):
                raise ValueError("its tables are not those of an index")

    @contextmanager
    def damage(self) -> Iterator[None]:
        """Turns what is raised while the file is read into an ArtifactError."""
        try:
            yield
        except UNREADABLE as error:
            self.check_open()
            self._check_shortage()
            folder = self._folder
            if self._path.exists() and not os.access(self._path, os.R_OK):
                raise ArtifactError(
                    f'no permission to read "{self._path}"; allow it: chmod u+r {self._path}'
                ) from error
            raise ArtifactError(
                f'"{folder}" is damaged: {self._path.name} cannot be read ({error}); '
                f"build the index again: lexent index CORPUS --out {folder} --overwrite"
            ) from error

    def check_open(self) -> None:
        """An InputError once the connection is closed."""
        if self._closed:
            raise InputError(f'the index "{self._folder}" is closed; open it again: lexent.open("{self._folder}")')

    def _check_shortage(self) -> None:
        """A ResourceError where the file cannot be opened for want of one; SQLite does not say why it could not."""
        try:
            self._path.open("rb").close()
        except OSError as error:
            artifact.check_shortage(self._path, error)

    @property
    def _folder(self) -> Path:
        """The folder of the index."""
        folder = self._path.parent
        return folder.parent.parent if folder.parent.name == "segments" else folder

    def close(self) -> None:
        """Closes the connection."""
        with self.lock:
            self._closed = True
            self._connection.close()


class FieldReader:
    """Answers filters over the fields of a store that no longer changes. To be used from any thread."""

    def __init__(self, connection: StoreConnection, size: int) -> None:
        self._fields, self._size = connection, size
        capacity = min(256, max(4, MASK_BYTES // max(1, size)))
        self._other_text: dict[str, bool] = {}
        self._masks: BoundedCache[Filter | Node, NDArray[np.bool_]] = BoundedCache(capacity)

    def matching(self, where: Filter) -> NDArray[np.bool_]:
        """bool[size], read-only: where the filter holds. Remembered, as are its parts."""
        return self._masks.get_or_make(where, lambda: _read_only(mask(where.root, self._size, self._match)))

    def field_names(self) -> list[str]:
        """The fields that any document has; a field within a field is "author.name"."""
        names = [name for (name,) in self._fields.read("SELECT name FROM names ORDER BY name")]
        with self._fields.damage():
            if not all(isinstance(name, str) for name in names):
                raise ValueError("the name of a field is no text")
        return names

    def field_kinds(self, name: str) -> frozenset[FieldKind]:
        """The kinds of value that a field has: number, text, boolean; none where no document has it."""
        return frozenset(
            kind for kind, spans in KINDS.items() if any(self._select(name, span, limit=1) for span in spans)
        )

    def has_other_text(self, name: str) -> bool:
        """Whether a field has texts that are no dates; empty ones do not count. Found once for each field."""
        if name not in self._other_text:
            self._other_text[name] = bool(self._fields.read(_OTHER_TEXT, name))
        return self._other_text[name]

    def value_counts(self, name: str, live: NDArray[np.bool_]) -> dict[Stored, int]:
        """How many of the live documents have each value of a field. live: bool[size]."""
        query = f"SELECT value, positions FROM fields WHERE {_OF_FIELD} ORDER BY value, first"
        found: dict[Stored, int] = {}
        with self._fields.damage():
            for value, positions in self._fields.read(query, name):
                count = int(np.count_nonzero(live[np.frombuffer(positions, "<u4")]))
                if count:
                    found[value] = found.get(value, 0) + count
        return found

    def _match(self, match: Match) -> NDArray[np.bool_]:
        found = self._masks.get(match)
        if found is not None:
            return found
        with self._fields.lock:  # another thread may have looked it up meanwhile
            return self._masks.get_or_make(match, lambda: self._looked_up(match))

    def _looked_up(self, match: Match) -> NDArray[np.bool_]:
        found = np.zeros(self._size, dtype=np.bool_)
        with self._fields.damage():
            for span in match.spans:
                found[np.frombuffer(b"".join(self._select(match.field, span)), "<u4")] = True
        return _read_only(found)

    def _select(self, name: str, span: Span, *, limit: int = -1) -> list[bytes]:
        low, high = ">" if span.low_open else ">=", "<" if span.high_open else "<="
        ends = [(sign, end) for sign, end in ((low, span.low), (high, span.high)) if end is not None]
        conditions = "".join(f" AND value {sign} ?" for sign, _ in ends)
        query = f"SELECT positions FROM fields WHERE {_OF_FIELD}{conditions} LIMIT ?"
        return [row[0] for row in self._fields.read(query, name, *(end for _, end in ends), limit)]


def _read_only(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    mask.flags.writeable = False
    return mask


def batches(connection: sqlite3.Connection, schema: str) -> Iterator[list[tuple[str, Stored, bytes]]]:
    """All names, values and positions of an attached store, for FieldWriter.copy."""
    cursor = connection.execute(f"SELECT name, value, positions FROM {schema}.fields JOIN {schema}.names USING (field)")
    while batch := cursor.fetchmany(_BATCH):
        yield batch
