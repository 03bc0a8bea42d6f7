"""Batches in parallel: one thread a batch, where there are enough of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def in_threads(work: Callable[[Given], Made], items: Sequence[Given]) -> Iterator[Made]:
    """work(item) for each item, in order; as many at a time as torch has threads, each on one of them.

    Threads that share an operation wait for each other after each of hundreds of operations a batch. With fewer items
    than threads they share all the same.
    """
    import torch

    threads = torch.get_num_threads()
    if threads == 1 or len(items) < threads:
        yield from map(work, items)
        return
    ahead = 2 * threads  # so that no thread waits while the caller works on a result
    started = Barrier(threads + 1)

    def on_one_thread() -> None:
        torch.set_num_threads(1)
        torch.get_num_threads()  # later, the first use of it in a thread would take what was set last in any thread
        with suppress(BrokenBarrierError):
            started.wait()

    pool = ThreadPoolExecutor(threads, initializer=on_one_thread)
    try:
        try:
            waiting = deque(pool.submit(work, item) for item in items[:ahead])
            started.wait()
        except RuntimeError:  # no more threads can be started
            started.abort()
            pool.shutdown(wait=True, cancel_futures=True)
            yield from map(work, items)
            return
        finally:
            # What a thread sets counts for itself, and for all threads that come to be later.
            torch.set_num_threads(threads)
        for item in items[ahead:]:
            waiting.append(pool.submit(work, item))
            yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_order(work: Callable[[Given], Made], items: Sequence[Given]) -> Iterator[Made]:
    """work(item) for each item, in order; as many at a time as `cpu.threads` says. The work must be on one thread.

    A single item is done in the caller's thread.
    """
    from lexent import cpu

    threads = min(len(items), cpu.threads())
    if threads <= 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        waiting = deque(pool.submit(copy_context().run, work, item) for item in items[: 2 * threads])
        for item in items[2 * threads :]:
            waiting.append(pool.submit(copy_context().run, work, item))
            yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
