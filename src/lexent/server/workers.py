"""A bounded thread pool for the work of requests; the event loop only dispatches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from lexent import forks
from lexent.server import problems

T = TypeVar("T")


class Workers:
    """Runs functions in threads. A slot stays taken until its function ends, even when the request has timed out."""

    def __init__(self, *, threads: int, most: int, seconds: float | None, name: str = "lexent") -> None:
        self._threads, self._name = threads, name
        self._most, self._seconds = most, seconds
        self.after_fork()
        forks.renew(self)

    def after_fork(self) -> None:
        """Begins with a pool of its own, which does nothing yet."""
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        self._lock = threading.Lock()
        self.busy = 0
        """Functions that run or are queued."""

    async def run(self, work: Callable[[], T]) -> T:
        """The result of the function; 429 where all slots are taken, 504 where it takes too long."""
        future = self.submit(work)
        waiting = asyncio.wrap_future(future)
        if self._seconds is None:
            return await asyncio.shield(waiting)
        # Not wait_for: it creates one more task, and most requests end within two milliseconds.
        timer = asyncio.get_running_loop().call_later(self._seconds, self._late, waiting, self._seconds)
        try:
            return await waiting
        finally:
            timer.cancel()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue a function; 429 where all slots are taken."""
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
        """Wait for running functions; queued ones are cancelled."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _leave(self, _: object = None) -> None:
        with self._lock:
            self.busy -= 1

    @staticmethod
    def _late(waiting: asyncio.Future[T], seconds: float) -> None:
        if not waiting.done():
            waiting.set_exception(problems.too_slow(seconds))
