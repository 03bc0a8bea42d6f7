"""Metadata as fields that filters look up: for each value of a field, the positions of the documents that have it."""

from __future__ import annotations

import sqlite3
import sys
import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.bounded_cache import BoundedCache
from lexent.indexing.filters import KINDS, FieldKind, Filter, Match, Node, Span, Stored, stored

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


class FieldReader:
    """Answers filters over the fields of a store that no longer changes. To be used from any thread."""

    def __init__(self, connection: sqlite3.Connection, size: int) -> None:
        self._connection, self._size = connection, size
        self._reading = threading.Lock()
        capacity = min(256, max(4, MASK_BYTES // max(1, size)))
        self._other_text: dict[str, bool] = {}
        self._masks: BoundedCache[Filter | Node, NDArray[np.bool_]] = BoundedCache(capacity)

    def close(self) -> None:
        """Close the connection."""
        with self._reading:
            self._connection.close()

    def matching(self, where: Filter) -> NDArray[np.bool_]:
        """bool[size], read-only: where the filter holds. Remembered, as are its parts."""
        return self._masks.get_or_make(where, lambda: _read_only(where.mask(self._size, self._match)))

    def names(self) -> list[str]:
        """The names of all fields."""
        with self._reading:
            return [str(row[0]) for row in self._connection.execute("SELECT name FROM names ORDER BY name")]

    def kinds(self, name: str) -> frozenset[FieldKind]:
        """The kinds of value that a field has; none where no document has it."""
        with self._reading:
            return frozenset(
                kind for kind, spans in KINDS.items() if any(self._select(name, span, limit=1) for span in spans)
            )

    def has_other_text(self, name: str) -> bool:
        """Whether a field has texts that are no dates; empty ones do not count. Found once for each field."""
        with self._reading:
            if name not in self._other_text:
                found = self._connection.execute(_OTHER_TEXT, (name,)).fetchone()
                self._other_text[name] = found is not None
            return self._other_text[name]

    def _match(self, match: Match) -> NDArray[np.bool_]:
        found = self._masks.get(match)
        if found is not None:
            return found
        with self._reading:  # another thread may have looked it up meanwhile
            return self._masks.get_or_make(match, lambda: self._looked_up(match))

    def _looked_up(self, match: Match) -> NDArray[np.bool_]:
        mask = np.zeros(self._size, dtype=np.bool_)
        for span in match.spans:
            mask[np.frombuffer(b"".join(self._select(match.field, span)), "<u4")] = True
        return _read_only(mask)

    def _select(self, name: str, span: Span, *, limit: int = -1) -> list[bytes]:
        conditions, values = [_OF_FIELD], [name]  # type: tuple[list[str], list[Stored]]
        if span.low is not None:
            conditions.append("value > ?" if span.low_open else "value >= ?")
            values.append(span.low)
        if span.high is not None:
            conditions.append("value < ?" if span.high_open else "value <= ?")
            values.append(span.high)
        query = f"SELECT positions FROM fields WHERE {' AND '.join(conditions)} LIMIT ?"
        return [row[0] for row in self._connection.execute(query, (*values, limit))]


def _read_only(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    mask.flags.writeable = False
    return mask


def batches(connection: sqlite3.Connection, schema: str) -> Iterator[list[tuple[str, Stored, bytes]]]:
    """All names, values and positions of an attached store, for FieldWriter.copy."""
    cursor = connection.execute(f"SELECT name, value, positions FROM {schema}.fields JOIN {schema}.names USING (field)")
    while batch := cursor.fetchmany(_BATCH):
        yield batch
