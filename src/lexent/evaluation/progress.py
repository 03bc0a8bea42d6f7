"""How far a long step has come, for whoever shows it.

Functions that users call take `progress` and are decorated with `reporting`; all that runs within them reports there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from lexent.types import Kind

P = ParamSpec("P")
T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Called with the step, how many texts are done, and of how many. Steps that come from the cache make no call."""

_listener: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def listening(progress: Progress | None) -> Iterator[None]:
    """Steps of the block are reported to this function; None leaves the one that there is."""
    token = _listener.set(_listener.get() if progress is None else progress)
    try:
        yield
    finally:
        _listener.reset(token)


def reporting(function: Callable[P, T]) -> Callable[P, T]:
    """Reports the steps of a function to its keyword argument `progress`."""

    @wraps(function)
    def reported(*args: P.args, **kwargs: P.kwargs) -> T:
        progress: Any = kwargs.get("progress")
        with listening(progress):
            return function(*args, **kwargs)

    return reported


def report(step: str, done: int, total: int) -> None:
    """Tell the listener, if there is one, how far a step has come."""
    listener = _listener.get()
    if listener is not None:
        listener(step, done, total)


def counter(system: str, *, kind: Kind | None = None, total: int) -> Callable[[int], None]:
    """Adds up and reports what is done since the last call, from any thread."""
    step = system if kind is None else f"{system}, {'documents' if kind == 'document' else 'queries'}"
    listener, done = _listener.get(), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if listener is not None:
            listener(step, done, total)

    return advance
