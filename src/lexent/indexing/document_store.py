"""Documents in SQLite, by position (the order they came in), by id and by their metadata. Written once.

Beside them stands a checksum of each document, since SQLite has none: a document is compared with it when it is read.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from lexent import arguments, array_files
from lexent.artifact import write_error
from lexent.bounded_cache import BoundedCache
from lexent.errors import InputError, NotFoundError
from lexent.indexing.field_index import SCHEMA, FieldReader, FieldWriter, StepLimit, StoreConnection, batches
from lexent.types import Document

FILE = "documents.sqlite"
CHECKSUMS_FILE = "document-checksums.npy"
UNKNOWN = 0
"""In the place of the checksum of a document that an older version wrote."""
_SCHEMA = """
CREATE TABLE documents (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL
)
"""

MAX_CACHED_ROWS = 512
"""Documents that are kept at hand: what explains a hit reads it again."""
MAX_CACHED_CHARS = 20_000
"""Longer documents are read each time."""
Row = tuple[str, str, str, str]
_IDS_PER_QUERY = 500  # ids in one query; older SQLite allows 999 values

_ERRNO = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    # SQLite calls any refused write an I/O error; at a quota or a file size limit it is one of space.
    sqlite3.SQLITE_IOERR: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_PERM: errno.EACCES,
}


class DocumentWriter:
    """Writes documents in the order given. Use as a context; what is written counts once the block ends well."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        with _disk_errors(self._path):
            self._connection = sqlite3.connect(self._path.absolute().as_uri(), uri=True, isolation_level=None)
            # The folder is thrown away when anything fails, so nothing has to be rolled back or synced on the way.
            self._connection.execute("PRAGMA journal_mode = MEMORY")
            self._connection.execute("PRAGMA synchronous = OFF")
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA cache_size = -65536")  # KiB: ids and values come in no order
            self._connection.execute(_SCHEMA)
            self._fields = FieldWriter(self._connection)
        self._checksums = array_files.ArrayWriter(folder / CHECKSUMS_FILE, np.dtype(np.uint32))
        self.count = 0
        self._open = True

    def __enter__(self) -> DocumentWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._open = False
            self._connection.close()
            self._checksums.abandon()

    def close(self) -> None:
        """Writes what is still held. Before this the store is not whole."""
        if self._open:
            self._open = False
            try:
                with self._transaction():
                    self._fields.flush()
            finally:
                self._connection.close()
            self._checksums.close()

    def add(self, documents: Sequence[Document]) -> None:
        """Appends documents; an empty, doubled or unwritable one is an InputError that names it."""
        rows = [self._row(self.count + place, document) for place, document in enumerate(documents)]
        with self._transaction():
            try:
                self._connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError:
                doubled = self._doubled([(position, id) for position, id, *_ in rows])
                assert doubled
                raise doubled from None
            for position, _, _, _, metadata in rows:
                if metadata != "{}":
                    self._fields.add(position, orjson.loads(metadata))
        found = [checksum((id, text, title, metadata)) for _, id, title, text, metadata in rows]
        self._checksums.append(np.array(found, np.uint32))
        self.count += len(rows)

    def copy(self, source: Documents, positions: NDArray[np.int64]) -> None:
        """Appends the documents at these positions of another store, in that order, with their fields."""
        if not len(positions):
            return
        assert positions.min() >= 0
        assert positions.max() < len(source)
        starts = np.flatnonzero(np.diff(positions, prepend=positions[0] - 2) != 1)  # of runs without a gap
        stops = np.append(starts[1:], len(positions))
        firsts, lasts = positions[starts], positions[stops - 1]
        runs = np.stack([self.count + starts - firsts, firsts, lasts], axis=1).tolist()
        target = np.full(len(source), -1, dtype=np.int64)
        target[positions] = np.arange(self.count, self.count + len(positions))
        with self._attached(source), self._transaction():
            try:
                self._connection.executemany(
                    "INSERT INTO documents SELECT position + ?, id, title, text, metadata FROM source.documents "
                    "WHERE position BETWEEN ? AND ?",
                    runs,
                )
            except sqlite3.IntegrityError:
                doubled = self._doubled(list(enumerate(source.ids(positions.tolist()), start=self.count)))
                if doubled is None:
                    raise ValueError("a document is there twice, or a part of it is missing") from None
                raise doubled from None
            self._fields.copy(batches(self._connection, "source"), target)
        self._checksums.append(source.checksums[positions])
        self.count += len(positions)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _disk_errors(self._path):
            self._connection.execute("BEGIN")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def _attached(self, source: Documents) -> Iterator[None]:
        source.field_names()  # what cannot be read is the source's fault, not the disk's
        with _disk_errors(self._path):
            self._connection.execute("ATTACH ? AS source", (source.uri,))
        try:
            with source.damage(), StepLimit(self._connection, source.size):  # WriteErrors are made by now
                yield
        finally:
            with suppress(sqlite3.OperationalError):  # still being read where that failed; the first error counts
                self._connection.execute("DETACH source")

    def _row(self, position: int, document: Document) -> tuple[int, str, str, str, str]:
        if not isinstance(document.id, str) or not document.id.strip():
            raise InputError(
                f"document {position + 1} has the id {document.id!r}; every document needs a text id of its own. "
                f"Its text begins: {document.text[:60]!r}"
            )
        for text in (document.id, document.title, document.text):
            arguments.unicode(f"document {position + 1}, id {document.id!a}", text)
        try:
            metadata = orjson.dumps(dict(document.metadata)).decode()
            return position, document.id, document.title, document.text, metadata
        except TypeError as error:
            raise InputError(
                f'document {position + 1}, id "{document.id}": its metadata cannot be kept as JSON ({error})'
            ) from error

    def _doubled(self, rows: Sequence[tuple[int, str]]) -> InputError | None:
        first = dict[str, int]()
        for position, id in rows:
            found = self._connection.execute("SELECT position FROM documents WHERE id = ?", (id,)).fetchone()
            other = first.setdefault(id, position if found is None else int(found[0]))
            if other != position:
                return InputError(
                    f'documents {other + 1} and {position + 1} have the same id "{id}"; ids must differ: '
                    "remove one, or name another column as the id"
                )
        return None


class Documents(FieldReader):
    """The documents of an index, to be read from any thread."""

    def __init__(self, folder: Path) -> None:
        path = (folder / FILE).absolute()
        self._texts = StoreConnection(path)
        self._texts.check_schema(_SCHEMA, SCHEMA)
        self._recent: BoundedCache[int, Row] = BoundedCache(MAX_CACHED_ROWS)
        last = self._texts.read("SELECT max(position) FROM documents")[0][0]
        self._count = 0 if last is None else int(last) + 1  # positions have no gaps; counting would read all
        # Another connection for fields: a broad filter takes a while, and documents can be read meanwhile.
        super().__init__(StoreConnection(path), self._count)
        self.checksums = self._read_checksums(folder)
        """uint32[n_documents]: see `checksum`; UNKNOWN where an older version wrote a document."""

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._texts.size

    @property
    def uri(self) -> str:
        """The file, for SQLite."""
        return self._texts.uri

    def check_open(self) -> None:
        """Refuses to go on once the store is closed."""
        self._texts.check_open()

    def close(self) -> None:
        """Close the connections."""
        self._recent.clear()
        self._texts.close()
        self._fields.close()

    def __del__(self) -> None:
        # A reader that follows a changing index drops old stores one after the other. SQLite's connections stand in a
        # circle of references, and would keep their files open until the garbage collector comes round.
        with suppress(AttributeError, sqlite3.Error):  # it may never have been opened
            self.close()

    def at(self, positions: Sequence[int]) -> list[Document]:
        """The documents at these positions, in that order."""
        return [self._document(int(position)) for position in positions]

    def positions(self, ids: Sequence[str]) -> dict[str, int]:
        """Where the documents of these ids stand; ids that are not here are left out."""
        wanted = [id for id in ids if _is_unicode(id)]
        found: dict[str, int] = {}
        for start in range(0, len(wanted), _IDS_PER_QUERY):
            batch = wanted[start : start + _IDS_PER_QUERY]
            marks = ", ".join("?" * len(batch))
            found.update(self._texts.read(f"SELECT id, position FROM documents WHERE id IN ({marks})", *batch))
        with self._texts.damage():
            if not all(0 <= position < self._count for position in found.values()):
                raise ValueError("a document has no position")
        return found

    def some_ids(self, n: int = 3) -> list[str]:
        """The first ids, to show what they look like."""
        return [str(row[0]) for row in self._texts.read("SELECT id FROM documents ORDER BY position LIMIT ?", n)]

    def ids(self, positions: Sequence[int]) -> list[str]:
        """The ids at these positions, without their texts."""
        query = "SELECT id FROM documents WHERE position = ?"
        with self._texts.damage():
            return [str(self._texts.read(query, int(position))[0][0]) for position in positions]

    def damage(self) -> AbstractContextManager[None]:
        """Turns what is raised while the file is read into an ArtifactError."""
        return self._texts.damage()

    def _read_checksums(self, folder: Path) -> NDArray[np.uint32]:
        path = folder / CHECKSUMS_FILE
        if not path.exists():  # of an older version
            return np.broadcast_to(np.uint32(UNKNOWN), self._count)
        found = array_files.map_array(path)
        with self._texts.damage():
            if found.dtype != np.uint32 or found.shape != (self._count,):
                raise ValueError(f"{CHECKSUMS_FILE} is {found.dtype}{list(found.shape)}")
        return found

    def _document(self, position: int) -> Document:
        id, text, title, metadata = self._recent.get(position) or self._row(position)
        with self._texts.damage():
            return Document(id=id, text=text, title=title, metadata=orjson.loads(metadata))

    def _row(self, position: int) -> Row:
        rows = self._texts.read("SELECT id, text, title, metadata FROM documents WHERE position = ?", position)
        if not rows:
            raise NotFoundError(f"no document at position {position} among {len(self)}")
        row: Row = rows[0]
        with self._texts.damage():
            if not all(isinstance(value, str) for value in row):
                raise ValueError(f"the document at position {position} is no text")
            if self.checksums[position] not in (UNKNOWN, checksum(row)):
                raise ValueError(f"the document at position {position} changed since it was written")
        return self._recent.put(position, row) if len(row[1]) <= MAX_CACHED_CHARS else row


def checksum(row: Row) -> int:
    """The CRC-32 of a document's id, text, title and metadata."""
    return zlib.crc32("\0".join(row).encode())


def _is_unicode(text: str) -> bool:
    """Whether it can be an id here at all: half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise write_error(path, _errno(path, getattr(error, "sqlite_errorcode", 0) & 0xFF), str(error)) from error


def _errno(path: Path, code: int) -> int | None:
    """The errno of an error of SQLite, which does not say why it could not open a file."""
    if code == sqlite3.SQLITE_CANTOPEN:
        try:
            os.close(os.open(path.parent, os.O_RDONLY))
        except OSError as error:
            return error.errno
    return _ERRNO.get(code)
