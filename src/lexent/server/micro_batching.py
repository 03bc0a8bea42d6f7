"""Micro-batching: one thread runs the model for all requests, a batch at a time.

While a batch runs, the next one fills up; a single query never waits for others to arrive. Documents that are being
added have the lowest priority and run in small batches between queries, so reads go on during writes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lexent import forks
from lexent.server import turns

T = TypeVar("T")
MAX_BATCH_ITEMS = 32
"""Items of one group in a batch, at most."""

Work = Callable[[list[Any]], list[Any]]
"""A function from the items of a batch to a result for each."""


@dataclass(slots=True)
class Job:
    """An item that waits for its batch."""

    item: Any
    work: Work
    group: Hashable
    """Jobs of one group may share a batch; a job of group None runs alone."""
    future: Future[Any] = field(default_factory=Future)


class MicroBatcher:
    """One worker thread with three queues: urgent jobs (queries), normal ones, low-priority ones (documents)."""

    def __init__(self) -> None:
        self._open = True
        self._local = threading.local()
        self._start()
        forks.renew(self)

    def after_fork(self) -> None:
        """Starts a thread of its own; jobs of the parent stay with the parent."""
        if self._open:
            self._start()

    def _start(self) -> None:
        self._queues: tuple[deque[Job], ...] = (deque(), deque(), deque())  # urgent, normal, low priority
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="lexent-micro-batching", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Jobs in all queues."""
        return sum(map(len, self._queues))

    @contextmanager
    def low_priority(self) -> Iterator[None]:
        """Jobs that the calling thread submits inside the block go to the low-priority queue."""
        self._local.bulk = True
        try:
            yield
        finally:
            self._local.bulk = False

    def run(self, item: Any, work: Work, *, group: Hashable = None, urgent: bool = False) -> Any:
        """The result of work([item]), run in the worker thread, in a batch with waiting jobs of the same group."""
        if threading.current_thread() is self._thread:  # called by a job that already runs there
            return work([item])[0]
        job = Job(item, work, group)
        with self._wake:
            if not self._open:
                raise RuntimeError("the server is shutting down")
            priority = 2 if getattr(self._local, "bulk", False) else 0 if urgent else 1
            self._queues[priority].append(job)
            self._wake.notify()
        with turns.given_up():
            return job.future.result()

    def call(self, function: Callable[[], T], *, urgent: bool = False) -> T:
        """The result of a function that is run in the worker thread, in no batch."""
        found: T = self.run(None, lambda _: [function()], urgent=urgent)
        return found

    def close(self) -> None:
        """Stop the thread after the jobs that wait are done."""
        with self._wake:
            self._open = False
            self._wake.notify()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self.waiting:
                    if not self._open:
                        return
                    self._wake.wait()
                jobs = self._next()
            self._run_batch(jobs)

    def _next(self) -> list[Job]:
        """The first job of the first queue that has any, and the jobs of its group behind it."""
        queue = next(filter(None, self._queues))
        jobs = [queue.popleft()]
        if jobs[0].group is not None:
            rest: list[Job] = []
            while queue and len(jobs) < MAX_BATCH_ITEMS:
                job = queue.popleft()
                (jobs if job.group == jobs[0].group else rest).append(job)
            queue.extendleft(reversed(rest))
        return jobs

    def _run_batch(self, jobs: list[Job]) -> None:
        try:
            results = jobs[0].work([job.item for job in jobs])
        except BaseException as error:
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
                return
            for job in jobs:  # run each alone, so that only the job at fault fails
                self._run_batch([job])
            return
        for job, result in zip(jobs, results, strict=True):
            job.future.set_result(result)
