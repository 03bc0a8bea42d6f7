"""One thread that encodes for everyone: the model is loaded once, and queries that come together are encoded together.

While one batch is encoded the next one gathers, so a lone query never waits for company. Documents that are added are
encoded a few at a time between the queries: reads go on. The tokenizers of Hugging Face may not be used from several
threads at once, which is the other reason for one thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.types import Kind, Level, States, Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.encoders import Encoder

BATCH = 32
"""Queries that are encoded together at most."""
STEP = 8
"""Documents that are encoded before queries have their turn again."""
REMEMBERED = 512
"""Queries whose states are kept: a slider that moves asks for the same one many times."""

Way = tuple[Kind, Level, bool]
Observe = Callable[[int, float], None]


@dataclass(slots=True)
class Job:
    """Texts that wait to be encoded in one way, or something else that the encoding thread is to do."""

    texts: Sequence[str]
    way: Way | None
    work: Callable[[], Any] | None = None
    query: bool = False
    """One query: its states as a bare tensor."""
    future: Future[Any] = field(default_factory=Future)


class SharedEncoder:
    """An encoder as others are, to be used from any thread; one thread of its own does the work."""

    def __init__(self, encoder: Encoder, *, observe: Observe | None = None) -> None:
        """observe: told the size of each batch of queries, and the seconds that it took."""
        self.encoder = encoder
        self.id, self.fingerprint, self.dim = encoder.id, encoder.fingerprint, encoder.dim
        self.prompts: dict[str, str] = dict(getattr(encoder, "prompts", {}))
        self._observe = observe
        self._queries: deque[Job] = deque()
        self._others: deque[Job] = deque()
        self._bulk: deque[Job] = deque()
        self._wake = threading.Condition()
        self._open = True
        self._local = threading.local()
        self._known: OrderedDict[tuple[str, Way], Any] = OrderedDict()
        self._thread = threading.Thread(target=self._run, name="lexent-encoding", daemon=True)
        self._thread.start()

    @contextmanager
    def in_bulk(self) -> Iterator[None]:
        """What this thread encodes within the block gives way to all else."""
        self._local.bulk = True
        try:
            yield
        finally:
            self._local.bulk = False

    def batches(
        self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True
    ) -> Iterator[tuple[NDArray[np.int64], States]]:
        way: Way = (kind, level, specials)
        if kind == "query" and len(texts) == 1:
            yield np.zeros(1, np.int64), self._one(texts[0], way)
            return
        for rows in _steps(texts):
            yield rows, self._ask(Job([texts[row] for row in rows], way))

    def batches_with_whole(
        self, texts: Sequence[str], *, kind: Kind, specials: bool = True
    ) -> Iterator[tuple[NDArray[np.int64], States, States]]:
        """As `batches` for tokens, with the pooled state of each text beside."""
        from lexent.encoders.encoder import batches_with_whole

        for rows in _steps(texts):
            own = [texts[row] for row in rows]

            def work(own: Sequence[str] = own) -> Any:
                return list(batches_with_whole(self.encoder, own, kind=kind, specials=specials))

            for places, states, whole in self._ask(Job((), None, work)):
                yield rows[places], states, whole

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        found: list[Tokens] = self._ask(
            Job((), None, lambda: self.encoder.tokenize(texts, kind=kind, specials=specials))
        )
        return found

    def close(self) -> None:
        """Ends the thread once it has done what it was asked."""
        with self._wake:
            self._open = False
            self._wake.notify()
        self._thread.join(timeout=30)

    # --- the caller's side -------------------------------------------------------------------------------------

    def _one(self, text: str, way: Way) -> States:
        key = (text, way)
        with self._wake:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
        if known is None:
            known = self._ask(Job([text], way, query=True))
            with self._wake:
                self._known[key] = known
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        return States(known, np.array([0, len(known)], np.int64))

    def _ask(self, job: Job) -> Any:
        if threading.current_thread() is self._thread:  # asked by work that already runs there
            return self._do(job)
        with self._wake:
            if not self._open:
                raise RuntimeError("the server is shutting down")
            bulk = getattr(self._local, "bulk", False)
            (self._queries if job.query else self._bulk if bulk else self._others).append(job)
            self._wake.notify()
        return job.future.result()

    # --- the encoding thread's side ----------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._wake:
                while not (self._queries or self._others or self._bulk):
                    if not self._open:
                        return
                    self._wake.wait()
                jobs = self._next()
            if len(jobs) == 1:
                self._finish(jobs[0])
            else:
                self._together(jobs)

    def _next(self) -> list[Job]:
        """All queries that wait and are encoded in the same way; where there are none, one other job."""
        if not self._queries:
            return [(self._others or self._bulk).popleft()]
        jobs = [self._queries.popleft()]
        rest: list[Job] = []
        while self._queries and len(jobs) < BATCH:
            job = self._queries.popleft()
            (jobs if job.way == jobs[0].way else rest).append(job)
        self._queries.extendleft(reversed(rest))
        return jobs

    def _finish(self, job: Job) -> None:
        try:
            job.future.set_result(self._do(job))
        except BaseException as error:
            job.future.set_exception(error)

    def _do(self, job: Job) -> Any:
        if job.work is not None:
            return job.work()
        assert job.way is not None
        parts = self._states(job.texts, job.way)
        if job.query:
            return parts[0]
        import torch

        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        return States(torch.cat(parts), offsets)

    def _together(self, jobs: list[Job]) -> None:
        way = jobs[0].way
        assert way is not None
        # A query that several ask for at once is encoded once.
        texts = list(dict.fromkeys(job.texts[0] for job in jobs))
        try:
            found = dict(zip(texts, self._states(texts, way), strict=True))
        except BaseException:  # one of them may be at fault: each has its own answer
            for job in jobs:
                self._finish(job)
            return
        for job in jobs:
            job.future.set_result(found[job.texts[0]])

    def _states(self, texts: Sequence[str], way: Way) -> list[Any]:
        """The states of each text, as tensors of their own."""
        kind, level, specials = way
        start = perf_counter()
        parts: list[Any] = [None] * len(texts)
        for rows, states in self.encoder.batches(texts, kind=kind, level=level, specials=specials):
            for place, row in enumerate(rows.tolist()):
                # A copy: a slice would keep the whole batch alive as long as it is remembered.
                parts[row] = states.values[int(states.offsets[place]) : int(states.offsets[place + 1])].clone()
        if self._observe is not None and kind == "query":
            self._observe(len(texts), perf_counter() - start)
        return parts


def _steps(texts: Sequence[str]) -> Iterator[NDArray[np.int64]]:
    """Positions of a few texts at a time; those of like length together, so that little is padded."""
    order = np.argsort([len(text) for text in texts], kind="stable").astype(np.int64)
    for start in range(0, len(texts), STEP):
        yield order[start : start + STEP]
