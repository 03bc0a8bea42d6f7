"""One writer at a time: a lock that ends with the process that holds it, and says who that is."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep

from lexent import artifact
from lexent.errors import ArtifactError, LockedError

FILE = "write.lock"
POLL_SECONDS = 0.05
"""Between two attempts to take the lock."""


@contextmanager
def writing(folder: Path, *, wait: float = 0.0, file: str = FILE) -> Iterator[Callable[[], bool]]:
    """Holds the lock of an index; a LockedError names the holder where there is another after `wait` seconds.

    file: the lock; that of the documents where none is named.

    Gives a function that says whether the index is still the one that was locked, and not one built in its place.
    """
    path = folder / file
    handle = _taken(path, wait=wait)
    try:
        who = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "command": " ".join(Path(part).name if not place else part for place, part in enumerate(sys.argv[:3])),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        own = os.fstat(handle).st_nlink == 1  # else it is a file elsewhere, too, and keeps its content
        if own:
            with artifact.disk_errors(path):
                os.ftruncate(handle, 0)
                os.write(handle, json.dumps(who).encode())
        yield lambda: path.exists() and os.path.samestat(path.stat(), os.fstat(handle))
        if own:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)  # which gives the lock back


def check_free(folder: Path) -> None:
    """Refuses with a LockedError while a process writes to the index at `folder`, if there is one."""
    if (folder / FILE).exists():
        with writing(folder):
            pass


def _taken(path: Path, *, wait: float) -> int:
    """The lock file, open and locked."""
    until = monotonic() + wait
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    while True:
        with artifact.disk_errors(path):
            handle = os.open(path, flags, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ArtifactError(f'"{path}" is not a file; remove it: rm -r {path}')
            if _take(handle):
                return handle
            holder = _holder(path)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # opened again each time: a new build may put another file in its place
        left = until - monotonic()
        if left <= 0:
            waited = f", after {wait:g} s of waiting" if wait else ""
            raise LockedError(
                f'"{path.parent}" is being written to by {holder}{waited}; try again when that has ended, or wait for '
                "it: --wait SECONDS (in Python lexent.open(PATH, wait=SECONDS))"
            )
        sleep(min(left, POLL_SECONDS))


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
        who = artifact.read_json(path)
        return f'process {who["pid"]} on {who["host"]} ("{who["command"]}", since {who["since"]})'
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
