"""Which of two ways a step takes: a compiled kernel, or its twin in NumPy until the kernel is ready.

Numba compiles the kernels of a search in half a minute, once on a machine, and loads them in a second in each process.
A command that answers one query needs neither: NumPy does so little work as quickly. Where more work comes, a child
process compiles the kernels in the background, and the next steps use them. No search waits. Both ways give the same
documents; scores differ by the rounding of the encoder at most.
"""

from __future__ import annotations

import atexit
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Literal, cast, get_args

from lexent import arguments, forks
from lexent.extras import is_installed

Mode = Literal["auto", "compiled", "numpy"]

VARIABLE = "LEXENT_KERNELS"
"""The environment variable that names the mode."""
PATIENCE_S = 2.0
"""After NumPy has worked about so many seconds in place of a group of kernels, they are made ready."""
LOADED_S = 0.25
"""A step that would take NumPy so many seconds loads its kernels, where they are compiled, which takes a second."""

_forced: ContextVar[Mode | None] = ContextVar("forced", default=None)


def requested() -> Mode:
    """The mode that the environment variable names, else auto."""
    given = _forced.get() or os.environ.get(VARIABLE) or "auto"
    return cast(Mode, arguments.choice(VARIABLE, given, get_args(Mode)))


@contextmanager
def forced(mode: Mode) -> Iterator[None]:
    """All steps of this thread take that way meanwhile."""
    token = _forced.set(mode)
    try:
        yield
    finally:
        _forced.reset(token)


class KernelGroup:
    """Kernels that are compiled together, and whether they are ready in this process."""

    def __init__(
        self,
        name: str,
        place: str,
        *,
        attribute: str = "KERNELS",
        compile_s: float,
        exercise: Callable[[], None],
        entries: Callable[[], Sequence[Any]],
    ) -> None:
        """place, attribute: the module that holds this group, and as what; a child process takes it from there.

        compile_s: seconds that compiling takes, roughly; a step that would take NumPy longer waits for it.

        exercise: runs the kernels once with arguments of the types that they get, which compiles or loads them.
        entries: the kernels that are called from Python; they tell whether compiled code is on the disk.
        """
        self.name, self.place, self.attribute = name, place, attribute
        self.compile_s = compile_s
        self._exercise, self._entries = exercise, entries
        self._ready, self._requested, self._spent_s = False, False, 0.0
        self._looked_for = False
        forks.renew(self)

    def after_fork(self) -> None:
        """The thread that made kernels ready is not here: they are requested again when they are needed."""
        self._requested = self._ready

    def use(self, seconds: float) -> bool:
        """Whether a step takes the kernels. seconds: what it would take NumPy, roughly."""
        mode = requested()
        if mode != "auto":
            return mode == "compiled"
        if self._ready or (seconds > self.compile_s and is_installed("numba")):
            return True
        if seconds > LOADED_S and not self._looked_for:
            self._looked_for = True
            if is_installed("numba") and self.is_compiled():
                self.compile()
                return True
        self._spent_s += seconds
        if self._spent_s > PATIENCE_S:
            self.prepare()
        return False

    def prepare(self) -> None:
        """Make the kernels ready in the background."""
        if not self._requested and requested() == "auto":
            self._requested = True
            _background.add(self)

    def compile(self) -> float:
        """Compile the kernels, or load what is compiled already; gives the seconds that it took."""
        start = perf_counter()
        with forced("compiled"):
            self._exercise()
        self._ready = True
        return perf_counter() - start

    def is_compiled(self) -> bool:
        """Whether compiled code for this processor is on the disk, as it was compiled from the present source."""
        from lexent.jit import is_cached

        return all(is_cached(kernel) for kernel in self._entries())

    @property
    def is_ready(self) -> bool:
        """Whether the kernels are loaded in this process."""
        return self._ready


class _Background:
    """One thread that makes groups ready, one after the other: a child process compiles, the thread loads."""

    def __init__(self) -> None:
        self.after_fork()
        forks.renew(self)

    def after_fork(self) -> None:
        """Begins without a thread."""
        self._waiting: queue.SimpleQueue[KernelGroup | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def add(self, group: KernelGroup) -> None:
        """Queue a group; starts the thread where there is none."""
        with self._lock:
            if self._stopped:
                return
            self._waiting.put(group)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="lexent-kernels", daemon=True)
                self._thread.start()
                atexit.register(self._stop)

    def _work(self) -> None:
        while (group := self._waiting.get()) is not None:
            try:
                if not group.is_compiled():
                    self._compile_in_child(group)
                # Where no folder can be written, compiling here would hold up the process and be lost with it.
                if not self._stopped and group.is_compiled():
                    group.compile()
            except Exception:  # NumPy goes on
                continue

    def _compile_in_child(self, group: KernelGroup) -> None:
        code = f"from {group.place} import {group.attribute} as group; group.compile()"
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = os.environ | {VARIABLE: "compiled", "PYTHONPATH": paths}
        with self._lock:
            if self._stopped:
                return
            self._child = subprocess.Popen(
                [sys.executable, "-c", code], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        if hasattr(os, "setpriority"):
            os.setpriority(os.PRIO_PROCESS, self._child.pid, 10)  # searches come first
        self._child.wait()

    def _stop(self) -> None:
        """At the end of the process: the child ends; what it has compiled so far stays on the disk."""
        with self._lock:
            self._stopped = True
            if self._child is not None and self._child.poll() is None:
                self._child.terminate()
        self._waiting.put(None)
        if self._thread is not None:
            self._thread.join()


_background = _Background()
