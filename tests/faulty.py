"""A disk that fails: the n-th system call that changes or opens files raises an error, or writes only a part."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

ERRORS = {
    "open": (errno.EMFILE, errno.EIO, errno.ENFILE),
    "create": (errno.ENOSPC, errno.EMFILE, errno.EIO),
    "write": (errno.ENOSPC, errno.EIO),
    "fsync": (errno.EIO, errno.ENOSPC),
    "mkdir": (errno.ENOSPC, errno.EIO),
    "replace": (errno.EIO, errno.ENOSPC),
    "rename": (errno.EIO, errno.ENOSPC),
    "unlink": (errno.EIO,),
    "rmdir": (errno.EIO,),
}
"""What each call may fail with."""


class Disk:
    """Counts the system calls below a folder, and lets one of them fail."""

    def __init__(self, folder: Path, *, fail: int = -1, turn: int = 0) -> None:
        """fail: the number of the call that fails; none where it is negative. turn: which of its errors it gives."""
        self.folder, self.fail, self.turn = str(folder), fail, turn
        self.calls: list[str] = []

    @property
    def failed(self) -> bool:
        """Whether a call has failed."""
        return 0 <= self.fail < len(self.calls)

    def step(self, kind: str, path: object = None) -> bool:
        """Counts a call, which fails where it is its turn; says whether to write only a part."""
        if path is not None and not str(path).startswith(self.folder):
            return False
        self.calls.append(kind)
        if len(self.calls) - 1 != self.fail:
            return False
        errors = ERRORS[kind]
        if kind == "write" and self.turn % (len(errors) + 1) == len(errors):
            return True
        code = errors[self.turn % len(errors)]
        raise OSError(code, os.strerror(code), str(path))

    @contextmanager
    def used(self) -> Iterator[Disk]:
        """The calls of this process pass here meanwhile."""
        disk, real_open, real_os_open = self, io.open, os.open

        class Raw(io.FileIO):
            def write(self, data: Any, /) -> int:
                part = disk.step("write", self.name)
                return super().write(bytes(data)[: max(1, len(data) // 2)] if part else data)

        def opened(path: Any, mode: str = "r", *given: Any, **more: Any) -> Any:
            if isinstance(path, int) or not str(path).startswith(disk.folder):
                return real_open(path, mode, *given, **more)
            disk.step("create" if mode[0] in "wx" else "open", path)
            if mode in ("wb", "xb"):
                return io.BufferedWriter(Raw(str(path), mode[0]))
            return real_open(path, mode, *given, **more)

        def os_opened(path: Any, flags: int, *given: Any, **more: Any) -> int:
            if "dir_fd" not in more:
                disk.step("create" if flags & os.O_CREAT else "open", path)
            return real_os_open(path, flags, *given, **more)

        def stepping(kind: str) -> Callable[..., Any]:
            real = getattr(os, kind)

            def instead(path: Any, *given: Any, **more: Any) -> Any:
                disk.step(kind, None if isinstance(path, int) or "dir_fd" in more else path)
                return real(path, *given, **more)

            return instead

        with mock.patch.multiple(
            os, open=os_opened, **{kind: stepping(kind) for kind in ERRORS if hasattr(os, kind) and kind != "open"}
        ), mock.patch("io.open", opened), mock.patch("builtins.open", opened):  # fmt: skip
            yield self
