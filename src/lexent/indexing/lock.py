"""One writer at a time: a lock that ends with the process that holds it, and says who that is."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from lexent import artifact
from lexent.errors import LockedError

FILE = "write.lock"


@contextmanager
def writing(folder: Path) -> Iterator[Callable[[], bool]]:
    """Holds the lock of an index; a LockedError names the holder where there is another.

    Gives a function that says whether the index is still the one that was locked, and not one built in its place.
    """
    path = folder / FILE
    with artifact.disk_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _take(handle):
            raise LockedError(f'"{folder}" is being written to by {_holder(path)}; try again when that has ended')
        who = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "command": " ".join(Path(part).name if not place else part for place, part in enumerate(sys.argv[:3])),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with artifact.disk_errors(path):
            os.ftruncate(handle, 0)
            os.write(handle, json.dumps(who).encode())
        yield lambda: path.exists() and os.path.samestat(path.stat(), os.fstat(handle))
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)  # which gives the lock back


def check_free(folder: Path) -> None:
    """Refuses with a LockedError while a process writes to the index at `folder`, if there is one."""
    if (folder / FILE).exists():
        with writing(folder):
            pass


def _take(handle: int) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: Path) -> str:
    try:
        who = json.loads(path.read_bytes())
        return f'process {who["pid"]} on {who["host"]} ("{who["command"]}", since {who["since"]})'
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
