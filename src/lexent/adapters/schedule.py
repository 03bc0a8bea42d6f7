"""The schedule of all learners: folds held out in turn say for how long, and whether at all; then all queries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lexent.adapters.config import TrainSettings
from lexent.adapters.examples import Examples
from lexent.adapters.quality import Quality

Told = Callable[[str, int, int], None]
"""Told the stage, how many passes are done, and of how many."""

POOL = 16_384
"""Documents of the corpus that a step sees, at most, where they are its negatives."""
MANY = 2000
"""From so many queries on, one fold alone is held out: it is large enough."""
CERTAIN = 0.05
"""What was learned is kept where a gain as large is less likely than this by chance, over held-out queries."""
HARM = 0.002
"""A pass counts only where those that ask for new documents do not lose more than this. An adapter comes to remember
the documents that train queries ask for; at the cost of all others if it is trained for long."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some queries, and a pool of documents: their relevant ones and their hard negatives."""

    queries: torch.Tensor  # [n, dim]
    pool: torch.Tensor  # [p, dim]
    feedback: torch.Tensor  # [n, r, dim], or [1, r, dim] where it is the same for all
    positive: torch.Tensor  # bool[n, p]
    negative: torch.Tensor  # bool[n, p], the query's own hard negatives


class Learner(nn.Module):
    """What can be trained: it scores queries against a pool, and says what a batch costs."""

    @abstractmethod
    def scores(self, queries: torch.Tensor, pool: torch.Tensor, feedback: torch.Tensor) -> torch.Tensor:
        """float[n, p]"""

    @abstractmethod
    def loss(self, batch: Batch) -> torch.Tensor: ...

    def feedback(self, candidates: NDArray[np.int64], random: np.random.Generator, total: int) -> NDArray[np.int64]:
        """int64[n or 1, r]: the documents that each query sees beside the pool, from the base's candidates [n, c]."""
        return np.empty((1, 0), np.int64)


L = TypeVar("L", bound=Learner)


@dataclass(frozen=True, slots=True)
class Schedule(Generic[L]):
    """What came of it."""

    learner: L
    """Trained on all queries; as it was at the start where the base was kept."""
    epochs: int
    curve: tuple[float, ...]
    """After each pass, from none on: the mean of nDCG, RR and R at 10 over held-out queries."""
    base: dict[str, float]
    adapted: dict[str, float]
    """Means over held-out queries, both on the base's candidates."""
    p_value: float
    """Paired one-sided t-test over them, of the mean of the three."""
    held_out: int
    """Queries that were held out, in one fold or in turn."""
    new_documents: dict[str, float]
    """Of those that ask for documents that were no training query's answer: how many, their base and their adapted
    nDCG@10. What an adapter remembers of documents does not help there."""

    @property
    def kept_base(self) -> bool:
        return self.epochs == 0


def follow(
    make: Callable[[], L], examples: Examples, settings: TrainSettings, *, told: Told | None = None
) -> Schedule[L]:
    """Train a learner. make: gives a new one, the same each time."""
    if settings.negatives == "corpus":
        return _follow(make, examples, settings, told)
    with one_thread():
        return _follow(make, examples, settings, told)


def _follow(make: Callable[[], L], examples: Examples, settings: TrainSettings, told: Told | None) -> Schedule[L]:
    parts = examples.folds(settings.folds, seed=settings.seed, by=settings.held_out)
    n_folds = 1 if len(examples) >= MANY else settings.folds
    runs = [Run(make, examples, settings, np.flatnonzero(parts != fold)) for fold in range(n_folds)]
    held = [np.flatnonzero(parts == fold) for fold in range(n_folds)]
    rows = np.concatenate(held)
    grades = [examples.grades[row] for row in rows]
    base = Quality.of(examples.candidates[rows], grades)
    new = np.concatenate([_new(examples, parts, fold) for fold in range(n_folds)])
    measured, best = [base], 0
    for epoch in range(1, settings.epochs + 1):
        for run in runs:
            run.epoch()
        found = np.concatenate([run.rankings(part) for run, part in zip(runs, held, strict=True)])
        measured.append(Quality.of(found, grades))
        harmless = _mean((measured[-1].each - base.each)[new]) >= -HARM
        best = epoch if harmless and measured[-1].value > measured[best].value else best
        if told is not None:
            told("folds held out", epoch, settings.epochs)
        if epoch - best >= settings.patience:
            break
    p = p_value(measured[best].each, base.each)
    epochs = best if p < CERTAIN else 0
    whole = Run(make, examples, settings, np.arange(len(examples)))
    for epoch in range(epochs):
        whole.epoch()
        if told is not None:
            told("all queries", epoch + 1, epochs)
    return Schedule(
        learner=whole.learner.eval(),
        epochs=epochs,
        curve=tuple(each.value for each in measured),
        base=base.means(),
        adapted=measured[best].means(),
        p_value=p,
        held_out=len(rows),
        new_documents={
            "queries": float(new.sum()),
            "base": _mean(base.ndcg[new]),
            "adapted": _mean(measured[best].ndcg[new]),
        },
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Steps are small: more threads gain little, and wait for each other at length where the machine has other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _new(examples: Examples, parts: NDArray[np.int64], fold: int) -> NDArray[np.bool_]:
    """bool[n_held_out]: whether none of a held-out query's documents is a training query's."""
    known = {place for row in np.flatnonzero(parts != fold) for place in examples.grades[row]}
    return np.array([known.isdisjoint(examples.grades[row]) for row in np.flatnonzero(parts == fold)], np.bool_)


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0


class Run(Generic[L]):
    """One learner, trained on some of the queries, a pass at a time."""

    def __init__(
        self, make: Callable[[], L], examples: Examples, settings: TrainSettings, rows: NDArray[np.int64]
    ) -> None:
        torch.manual_seed(settings.seed)
        self.examples, self.settings, self.rows = examples, settings, rows
        self.learner = make()
        self.random = np.random.default_rng(settings.seed)
        self.optimizer = torch.optim.Adam(self.learner.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
        self._documents = torch.from_numpy(examples.documents)
        self._queries = torch.from_numpy(examples.queries)

    def epoch(self) -> None:
        """One pass over the queries, in an order of its own."""
        self.learner.train()
        order = self.random.permutation(self.rows)
        for start in range(0, len(order), self.settings.batch):
            loss = self.learner.loss(self._batch(order[start : start + self.settings.batch]))
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()

    @torch.no_grad()
    def rankings(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n, c]: the base's candidates of some queries, in the learner's order."""
        self.learner.eval()
        found = np.empty((len(rows), self.examples.candidates.shape[1]), np.int64)
        for start in range(0, len(rows), self.settings.batch):
            part = rows[start : start + self.settings.batch]
            candidates = self.examples.candidates[part]
            pool, places = np.unique(np.maximum(candidates, 0), return_inverse=True)
            feedback = self._feedback(part)
            scores = self.learner.scores(self._queries[part], self._documents[pool], feedback).numpy()
            own = np.take_along_axis(scores, places.reshape(candidates.shape), axis=1)
            own = np.where(candidates >= 0, own, -np.inf)
            order = np.lexsort((candidates, -own), axis=1)
            found[start : start + len(part)] = np.take_along_axis(candidates, order, axis=1)
        return found

    def _batch(self, rows: NDArray[np.int64]) -> Batch:
        examples = self.examples
        hard = examples.negatives[rows]
        relevant = np.array([place for row in rows for place in examples.grades[row]], np.int64)
        found = [hard[hard >= 0], relevant]
        if self.settings.negatives == "corpus":
            total = len(examples.documents)
            found.append(np.arange(total) if total <= POOL else self.random.choice(total, POOL, replace=False))
        pool = np.unique(np.concatenate(found))
        positive = np.zeros((len(rows), len(pool)), np.bool_)
        negative = np.zeros_like(positive)
        for place, row in enumerate(rows):
            positive[place, np.searchsorted(pool, list(examples.grades[row]))] = True
            negative[place, np.searchsorted(pool, hard[place][hard[place] >= 0])] = True
        return Batch(
            self._queries[rows],
            self._documents[pool],
            self._feedback(rows),
            torch.from_numpy(positive),
            torch.from_numpy(negative),
        )

    def _feedback(self, rows: NDArray[np.int64]) -> torch.Tensor:
        places = self.learner.feedback(self.examples.candidates[rows], self.random, len(self._documents))
        return self._documents[np.maximum(places, 0)]  # where -1 stands there are so few that one may count twice


def p_value(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """One-sided: how likely a gain like this is by chance."""
    from scipy.stats import ttest_rel

    if len(left) < 2 or np.array_equal(left, right):
        return 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(ttest_rel(left, right, alternative="greater").pvalue)
