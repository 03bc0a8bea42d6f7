"""Threads that Lexent's own code may use. Nothing heavy is imported for the answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import NamedTuple

from lexent import arguments, forks

VARIABLE = "LEXENT_THREADS"
"""The environment variable that limits threads; NUMBA_NUM_THREADS counts where it is not set."""


def threads() -> int:
    """Threads for work that is worth several: by LEXENT_THREADS, else one for each core that the process may use."""
    for name in (VARIABLE, "NUMBA_NUM_THREADS"):
        given = os.environ.get(name, "").strip()
        if given:
            allowed = f"a whole number of at least 1: export {name}=2"
            if not (given.isascii() and given.isdecimal() and int(given) >= 1):
                raise arguments.refused(name, given, allowed)
            return int(given)
    return cores()


def cores() -> int:
    """Cores that the process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy multiply on the caller's thread meanwhile.

    A product of a few rows does not wait for a second thread then, and documents are shared out among threads instead.
    The number of threads belongs to the whole process: the last one that leaves restores it.
    """
    library = _openblas()
    if library is None:
        yield
        return
    with _limiting:
        if not _limited:
            _limited.append(library.get())
            library.set(1)
        _limited.append(1)
    try:
        yield
    finally:
        with _limiting:
            _limited.pop()
            if len(_limited) == 1:
                library.set(_limited.pop())


def _after_fork() -> None:
    """No thread of the parent multiplies in a child: its limit ends."""
    global _limiting
    _limiting = Lock()
    library = _openblas() if _limited else None
    if library is not None:
        library.set(_limited[0])
    _limited.clear()


forks.call(_after_fork)


class _OpenBLAS(NamedTuple):
    get: Callable[[], int]
    set: Callable[[int], None]


_limiting = Lock()
_limited: list[int] = []
"""The number of threads before, and an element for each that is inside."""


@cache
def _openblas() -> _OpenBLAS | None:
    """The library that comes with NumPy's packages; none where NumPy was built with another."""
    import ctypes
    from pathlib import Path

    import numpy as np

    package = Path(np.__file__).parent
    for path in (*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for end in ("64_", ""):
            get, set_ = (getattr(library, f"scipy_openblas_{verb}_num_threads{end}", None) for verb in ("get", "set"))
            if get is not None and set_ is not None:
                return _OpenBLAS(get, set_)
    return None
