"""What makes a forked process safe: no lock that a thread of the parent held, no connection or thread of the parent.

A fork copies the memory of a process and only the thread that forks. A lock that another thread holds at that moment
stays locked in the child for ever, and the threads of a pool are not there. So a fork waits until nobody reads from
SQLite or compiles, and the child begins with fresh locks, threads and connections.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet


class Renewable(Protocol):
    """What has locks, threads or connections."""

    def after_fork(self) -> None:
        """Makes them anew, in the child."""


class Awaited(Protocol):
    """What a fork waits for: code of others works under this lock, with locks of its own."""

    lock: Any


_renewables: WeakSet[Any] = WeakSet()
_locks: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_awaited: WeakSet[Any] = WeakSet()
_functions: list[Callable[[], None]] = []
_forking = threading.RLock()
_taken: list[Any] = []


def renew(owner: Renewable) -> None:
    """Let each child call `after_fork` of the owner, as long as the owner lives."""
    _renewables.add(owner)


def renew_lock(owner: object, name: str) -> None:
    """Give each child a fresh lock, an RLock, for the attribute of that name, as long as the owner lives."""
    _locks[owner] = name


def call(function: Callable[[], None]) -> None:
    """Let each child call a function, which renews what a module holds."""
    _functions.append(function)


def wait_for(owner: Awaited) -> None:
    """Let each fork wait for the lock of the owner, as long as the owner lives."""
    _awaited.add(owner)


def _before() -> None:
    _forking.acquire()
    compiling = sys.modules.get("numba.core.compiler_lock")
    locks = [] if compiling is None else [compiling.global_compiler_lock]
    for lock in [*locks, *(owner.lock for owner in list(_awaited))]:
        lock.acquire()
        _taken.append(lock)


def _after() -> None:
    while _taken:
        _taken.pop().release()
    _forking.release()


def _in_child() -> None:
    _after()
    for kept in _cached_properties():
        kept.lock = threading.RLock()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "set_num_threads"):  # it may be half imported
        torch.set_num_threads(1)  # the threads of the parent are not here, and torch would wait for them
    for function in _functions:
        function()
    for owner, name in list(_locks.items()):
        setattr(owner, name, threading.RLock())
    for owner in list(_renewables):
        owner.after_fork()


def _cached_properties() -> Iterator[Any]:
    """Those of Lexent that have a lock, as in Python 3.11."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "lexent"]
    for kind in {one for module in modules for one in list(vars(module).values()) if isinstance(one, type)}:
        yield from (one for one in vars(kind).values() if isinstance(one, cached_property) and hasattr(one, "lock"))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
