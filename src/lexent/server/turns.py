"""Turns: few requests compute at once, so that they do not fight for the interpreter lock.

A thread that calls a kernel or reads a file gives the interpreter lock up, and waits up to 5 ms to have it back while
other threads run Python. With a turn it has nobody to wait for. Who waits for a batch of the encoder gives the turn up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lexent import forks

AT_ONCE = 1
_free = threading.Semaphore(AT_ONCE)
_local = threading.local()


def _after_fork() -> None:
    """No thread of the parent has a turn in a child."""
    global _free
    _free = threading.Semaphore(AT_ONCE)


forks.call(_after_fork)


@contextmanager
def taken() -> Iterator[None]:
    """Waits for a turn, and has it inside the block."""
    with _free:
        _local.has_turn = True
        try:
            yield
        finally:
            _local.has_turn = False


@contextmanager
def given_up() -> Iterator[None]:
    """Gives the turn of the calling thread, if it has one, to others meanwhile."""
    if not getattr(_local, "has_turn", False):
        yield
        return
    _local.has_turn = False
    _free.release()
    try:
        yield
    finally:
        _free.acquire()
        _local.has_turn = True
