"""Threads that do the work of requests, so many at once and no more; the event loop only passes things on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from lexent.server import problems

T = TypeVar("T")


class Workers:
    """Runs functions in threads. A place is taken until the function ends, also where nobody waits for it any more."""

    def __init__(self, *, threads: int, most: int, seconds: float | None, name: str = "lexent") -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most, self._seconds = most, seconds
        self._lock = threading.Lock()
        self.busy = 0
        """Functions that run or wait for a thread."""

    async def run(self, work: Callable[[], T]) -> T:
        """What the function gives; an overload where all places are taken, a too-slow where it takes too long."""
        future = self.submit(work)
        waiting = asyncio.wrap_future(future)
        if self._seconds is None:
            return await asyncio.shield(waiting)
        # Not wait_for: that takes a task more, and most work ends within a millisecond or two.
        timer = asyncio.get_running_loop().call_later(self._seconds, self._late, waiting, self._seconds)
        try:
            return await waiting
        finally:
            timer.cancel()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self.busy >= self._most:
                raise problems.overloaded(f"{self.busy} requests are being worked on, which is as many as may be")
            self.busy += 1
        try:
            future = self._pool.submit(work)
        except BaseException:
            self._leave()
            raise
        future.add_done_callback(self._leave)
        return future

    def close(self) -> None:
        """Waits for what runs; what has not begun is not done."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _leave(self, _: object = None) -> None:
        with self._lock:
            self.busy -= 1

    @staticmethod
    def _late(waiting: asyncio.Future[T], seconds: float) -> None:
        if not waiting.done():
            waiting.set_exception(problems.too_slow(seconds))
