"""The documents of an index in SQLite, by position (the order they came in) and by id."""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from lexent.artifact import write_error
from lexent.errors import ArtifactError, InputError, NotFoundError
from lexent.types import Document

FILE = "documents.sqlite"

_SCHEMA = """
CREATE TABLE documents (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL
)
"""

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
            self._connection = sqlite3.connect(self._path, isolation_level=None)
            # The folder is thrown away when anything fails, so nothing has to be rolled back or synced on the way.
            self._connection.execute("PRAGMA journal_mode = MEMORY")
            self._connection.execute("PRAGMA synchronous = OFF")
            self._connection.execute(_SCHEMA)
        self.count = 0

    def __enter__(self) -> DocumentWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def add(self, documents: Sequence[Document]) -> None:
        """Appends documents; an empty, doubled or unwritable one is an InputError that names it."""
        rows = [self._row(self.count + place, document) for place, document in enumerate(documents)]
        with _disk_errors(self._path):
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError:
                raise self._doubled(rows) from None
            self._connection.execute("COMMIT")
        self.count += len(rows)

    def _row(self, position: int, document: Document) -> tuple[int, str, str, str, str]:
        if not isinstance(document.id, str) or not document.id.strip():
            raise InputError(
                f"document {position + 1} has the id {document.id!r}; every document needs a text id of its own. "
                f"Its text begins: {document.text[:60]!r}"
            )
        try:
            for text in (document.id, document.title, document.text):
                text.encode()
            metadata = orjson.dumps(dict(document.metadata)).decode()
            return position, document.id, document.title, document.text, metadata
        except UnicodeEncodeError as error:
            raise InputError(
                f"document {position + 1}, id {document.id!a}: its text is not valid Unicode ({error.reason} at "
                f"{error.start}); save the file as UTF-8"
            ) from error
        except TypeError as error:
            raise InputError(
                f'document {position + 1}, id "{document.id}": its metadata cannot be kept as JSON ({error})'
            ) from error

    def _doubled(self, rows: Sequence[tuple[Any, ...]]) -> InputError:
        first = dict[str, int]()
        for position, id, *_ in rows:
            found = self._connection.execute("SELECT position FROM documents WHERE id = ?", (id,)).fetchone()
            other = first.setdefault(id, position if found is None else int(found[0]))
            if other != position:
                return InputError(
                    f'documents {other + 1} and {position + 1} have the same id "{id}"; ids must differ: '
                    "remove one, or name another column as the id"
                )
        raise AssertionError("SQLite refused rows that are all new")


class Documents:
    """The documents of an index, to be read from any thread."""

    def __init__(self, folder: Path) -> None:
        self._path = (folder / FILE).absolute()
        self._lock = threading.Lock()
        try:
            # Immutable: the file is never changed in place, so no lock files are needed, also on a read-only disk.
            self._connection = sqlite3.connect(
                f"{self._path.as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
            last = self._connection.execute("SELECT max(position) FROM documents").fetchone()[0]
            self._count = 0 if last is None else int(last) + 1  # positions have no gaps; counting would read all
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def at(self, positions: Sequence[int]) -> list[Document]:
        """The documents at these positions, in that order."""
        return [self._document("position", int(position)) for position in positions]

    def get(self, id: str) -> Document:
        return self._document("id", id)

    def position(self, id: str) -> int:
        """Where the document of that id stands."""
        rows = self._read("SELECT position FROM documents WHERE id = ?", (id,))
        if not rows:
            raise self._unknown(id)
        return int(rows[0][0])

    def ids(self, positions: Sequence[int]) -> list[str]:
        """The ids at these positions, without their texts."""
        query = "SELECT id FROM documents WHERE position = ?"
        return [str(self._read(query, (int(position),))[0][0]) for position in positions]

    def _document(self, column: str, key: int | str) -> Document:
        rows = self._read(f"SELECT id, text, title, metadata FROM documents WHERE {column} = ?", (key,))
        if not rows:
            raise self._unknown(key)
        id, text, title, metadata = rows[0]
        return Document(id=id, text=text, title=title, metadata=orjson.loads(metadata))

    def _read(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.DatabaseError as error:
                raise self._damaged(error) from error

    def _unknown(self, key: int | str) -> NotFoundError:
        some = ", ".join(f'"{row[0]}"' for row in self._read("SELECT id FROM documents ORDER BY position LIMIT 3", ()))
        return NotFoundError(f'no document "{key}" among {len(self)}; ids look like {some}')

    def _damaged(self, error: sqlite3.DatabaseError) -> ArtifactError:
        folder = self._path.parent
        return ArtifactError(
            f'"{folder}" is damaged: {FILE} cannot be read ({error}); '
            f"build the index again: lexent index CORPUS --out {folder} --overwrite"
        )


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        raise write_error(path, _ERRNO.get(code), str(error)) from error
