"""One thread that does the heavy arithmetic for everyone, a batch at a time, in turn.

While one batch is worked on the next one gathers, so a lone question never waits for company. What is added to an
index is worked on a little at a time between the questions: reads go on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

BATCH = 32
"""Things of one group that are worked on together at most."""

Work = Callable[[list[Any]], list[Any]]
"""Takes things of one group and gives a result for each."""


@dataclass(slots=True)
class Job:
    thing: Any
    work: Work
    group: Hashable
    """Jobs of one group are done together; None is done alone."""
    future: Future[Any] = field(default_factory=Future)


class Turns:
    """The thread, and three rows of those who wait: questions first, then all else, then what is added."""

    def __init__(self) -> None:
        self._urgent: deque[Job] = deque()
        self._others: deque[Job] = deque()
        self._bulk: deque[Job] = deque()
        self._wake = threading.Condition()
        self._open = True
        self._local = threading.local()
        self._thread = threading.Thread(target=self._run, name="lexent-turns", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._urgent) + len(self._others) + len(self._bulk)

    @contextmanager
    def in_bulk(self) -> Iterator[None]:
        """What the calling thread asks for within the block gives way to all else."""
        self._local.bulk = True
        try:
            yield
        finally:
            self._local.bulk = False

    def ask(self, thing: Any, work: Work, *, group: Hashable = None, urgent: bool = False) -> Any:
        """The result of work([thing]), done in the one thread and with others of its group where some wait."""
        if threading.current_thread() is self._thread:  # asked by work that already runs there
            return work([thing])[0]
        job = Job(thing, work, group)
        with self._wake:
            if not self._open:
                raise RuntimeError("the server is shutting down")
            bulk = getattr(self._local, "bulk", False)
            (self._bulk if bulk else self._urgent if urgent else self._others).append(job)
            self._wake.notify()
        return job.future.result()

    def close(self) -> None:
        """Ends the thread once it has done what it was asked."""
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
            self._do(jobs)

    def _next(self) -> list[Job]:
        """The first that waits, and all of its group behind it."""
        row = self._urgent or self._others or self._bulk
        jobs = [row.popleft()]
        if jobs[0].group is not None:
            rest: list[Job] = []
            while row and len(jobs) < BATCH:
                job = row.popleft()
                (jobs if job.group == jobs[0].group else rest).append(job)
            row.extendleft(reversed(rest))
        return jobs

    def _do(self, jobs: list[Job]) -> None:
        try:
            results = jobs[0].work([job.thing for job in jobs])
        except BaseException as error:
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
                return
            for job in jobs:  # one of them may be at fault: each has its own answer
                self._do([job])
            return
        for job, result in zip(jobs, results, strict=True):
            job.future.set_result(result)
