"""The audit log: who changed what and when, one JSON object a line.

Each change has two lines. The first one is on the disk before the change begins; where it cannot be written, the change
is refused. The second one has the outcome. A change with a first line alone was cut off: the process was killed, or the
log could not be written, and the index may have the change or not.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from lexent import forks
from lexent.artifact import fsync, sync_folder
from lexent.errors import InputError, LexentError
from lexent.server.problems import ServerError, slug_of

MAX_IDS = 100
"""Ids of documents that a line has; the number of all is beside them."""
MAX_CHARS = 200
"""Characters of an id, label or filter that a line has."""
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
log = logging.getLogger("lexent.server")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for a change: the name of the key, and the address that the request came from."""

    name: str = "anonymous"
    address: str = ""


class AuditLog:
    """A file that lines are appended to. It may be renamed or removed meanwhile: the next line begins a new one."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.RLock()
        self._file: int | None = None
        self._torn = False
        forks.renew_lock(self, "_lock")
        try:
            self._open()
        except OSError as error:
            raise InputError(
                f'the audit log "{path}" cannot be written ({error.strerror}); '
                "name a file in a folder that this user may write to: --audit-log FILE"
            ) from error

    @contextmanager
    def change(self, by: Caller, index: str, what: str, **facts: Any) -> Iterator[dict[str, Any]]:
        """Write a line, let the change be made, and write its outcome with the facts that the block adds."""
        common = {"change": secrets.token_hex(8), "who": by.name, "address": by.address, "index": index, "what": what}
        try:
            self._write({"event": "begin", **common, **facts})
        except (OSError, LexentError) as error:
            log.error("the audit log %s cannot be written, and a change was refused: %s", self._path, error)
            detail = "the audit log cannot be written, and nothing may change without it; the server's log says why"
            raise ServerError(detail, status=503, slug="audit-log") from error
        start, outcome = perf_counter(), {"outcome": "failed", "error": "unexpected"}
        done: dict[str, Any] = {}
        try:
            yield done
            outcome = {"outcome": "done"}
        except LexentError as error:
            outcome = {"outcome": "refused" if error.http_status < 500 else "failed", "error": slug_of(error)}
            raise
        finally:
            try:
                self._write({"event": "end", **common, **outcome, **done, "seconds": round(perf_counter() - start, 3)})
            except (OSError, LexentError) as error:  # too late to refuse: the next change will be
                log.error("the outcome of change %s is not in the audit log: %s", common["change"], error)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def _write(self, entry: dict[str, Any]) -> None:
        entry = {"time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"), **entry}
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            file = self._open()
            given = b"\n" + line if self._torn else line
            self._torn = True
            if os.write(file, given) < len(given):
                raise OSError("only a part of the line was written")
            self._torn = False
            fsync(file, self._path)

    def _open(self) -> int:
        """The file of that name as it is now; a line that was cut off before is ended by the next one."""
        if self._file is not None:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(self._path, follow_symlinks=False), os.fstat(self._file)):
                    return self._file
            self.close()
        file = os.open(self._path, _FLAGS, 0o600)
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            os.close(file)
            raise OSError(0, "it is no file")
        self._file = file
        self._torn = found.st_size > 0 and os.lseek(file, -1, os.SEEK_END) >= 0 and os.read(file, 1) != b"\n"
        sync_folder(self._path.parent)
        return file


def named(ids: Sequence[str]) -> dict[str, Any]:
    """How many documents there are, and the ids of the first of them."""
    return {"documents": len(ids), "ids": [shortened(id) for id in ids[:MAX_IDS]]}


def shortened(text: str) -> str:
    """The text, cut where it is long."""
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"
