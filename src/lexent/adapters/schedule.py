"""The schedule of all learners: folds that are left out choose the passes and test the choice; then all queries."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lexent.adapters.config import TrainSettings
from lexent.adapters.examples import Examples
from lexent.adapters.validation import Part, Plan, Quality, choose, choosers, curve, mean
from lexent.errors import InputError, TrainingWarning
from lexent.nan_safe import paired_p

Progress = Callable[[str, int, int], None]
"""Called with the stage, how many passes are done, and of how many."""

MAX_POOL_DOCUMENTS = 16_384
"""Documents of the corpus that a step sees, at most, where they are its negatives."""
MAX_P_VALUE = 0.05
"""What was learned is kept where a gain as large is less likely than this by chance, over held-out queries."""


class DivergedError(InputError):
    """A training whose loss or scores are not finite."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some queries, and a pool of documents: their relevant ones and their hard negatives."""

    queries: torch.Tensor  # [n, dim]
    pool: torch.Tensor  # [p, dim]
    feedback: torch.Tensor  # [n, r, dim], or [1, r, dim] where it is the same for all
    positive: torch.Tensor  # bool[n, p]
    negative: torch.Tensor  # bool[n, p], the query's own hard negatives


class Learner(nn.Module):
    """What can be trained: it scores queries against a pool, and has a loss."""

    @abstractmethod
    def scores(self, queries: torch.Tensor, pool: torch.Tensor, feedback: torch.Tensor) -> torch.Tensor:
        """float[n, p]. pool: [p, dim], the same for all queries, or [n, p, dim], each query's own."""

    @abstractmethod
    def loss(self, batch: Batch) -> torch.Tensor:
        """The loss of a batch."""

    def feedback(self, candidates: NDArray[np.int64], random: np.random.Generator, total: int) -> NDArray[np.int64]:
        """int64[n or 1, r]: the documents that each query sees beside the pool, from the base's candidates [n, c]."""
        return np.empty((1, 0), np.int64)

    def without_decay(self) -> list[nn.Parameter]:
        """Parameters that weight decay does not reach."""
        return []


def products(vectors: torch.Tensor, pool: torch.Tensor) -> torch.Tensor:
    """float[n, p]: of vectors [n, dim] with a pool [p, dim], or with each vector's own [n, p, dim]."""
    return vectors @ pool.T if pool.dim() == 2 else torch.einsum("nd,npd->np", vectors, pool)


def infonce(scores: torch.Tensor, positive: torch.Tensor, *, temperature: float) -> torch.Tensor:
    """The loss of scores [n, p]: each relevant document against all of the pool that are not relevant to the query."""
    logits = scores / temperature
    rest = torch.logsumexp(logits.masked_fill(positive, -1e9), dim=1, keepdim=True)
    return (torch.logaddexp(logits, rest) - logits)[positive].mean()


L = TypeVar("L", bound=Learner)


@dataclass(frozen=True, slots=True)
class Schedule(Generic[L]):
    """What came of it."""

    learner: L
    """Trained on all queries; as it was at the start where the base was kept."""
    epochs: int
    """Passes over all queries, chosen by all that were held out; 0 where the base was kept."""
    lr: float
    """The learning rate, chosen alike where there were several."""
    curve: tuple[float, ...]
    """After each pass, from none on: the mean of nDCG, RR and R at 10 over held-out queries, at this rate."""
    nested: tuple[int, ...]
    """Passes that were chosen for each tested fold, without its queries."""
    base: dict[str, float]
    adapted: dict[str, float]
    """Means over tested queries, after the passes that others chose, and over the runs that left them out. Both rank
    the base's candidates."""
    p_value: float
    """Paired one-sided t-test over tested queries, of the mean of the three."""
    held_out: int
    """Queries that were tested."""
    new_documents: dict[str, float]
    """Of tested queries that ask for documents that were no training query's answer: how many, their base and their
    adapted nDCG@10. What an adapter remembers of documents does not help there."""

    @property
    def kept_base(self) -> bool:
        """Whether the base retriever was kept."""
        return self.epochs == 0


def follow(
    make: Callable[[], L],
    examples: Examples,
    settings: TrainSettings,
    *,
    rates: Sequence[float] = (),
    progress: Progress | None = None,
) -> Schedule[L]:
    """Train a learner.

    make: gives a new one, the same each time. rates: learning rates to choose from; that of the settings where none is
    given.
    """
    with nullcontext() if settings.negatives == "corpus" else one_thread():
        plan = Plan.of(settings.folds, len(examples))
        tried = _tried(make, examples, settings, rates or (settings.lr,), plan, progress)
        before, after, new, nested = [], [], [], []
        for fold in plan.tested:
            found = {rate: choose(choosers(parts, fold), patience=settings.patience) for rate, parts in tried.items()}
            rate = max(found, key=lambda each: found[each].value)
            tested = [part for part in tried[rate] if part.fold == fold]
            before.append(tested[0].passes[0])
            after.append(Quality.mean([part.passes[found[rate].epoch] for part in tested]))
            new.append(np.all([part.new for part in tested], axis=0))
            nested.append(found[rate].epoch)
        base, adapted, fresh = Quality.joined(before), Quality.joined(after), np.concatenate(new)
        p = p_value(adapted.each, base.each)
        every = {rate: choose(parts, patience=settings.patience) for rate, parts in tried.items()}
        rate = max(every, key=lambda each: every[each].value)
        epochs = every[rate].epoch if p < MAX_P_VALUE else 0
        whole = Run(make, examples, replace(settings, lr=rate), np.arange(len(examples)))
        for epoch in range(epochs):
            whole.epoch()
            if progress is not None:
                progress("all queries", epoch + 1, epochs)
        return Schedule(
            learner=whole.learner.eval(),
            epochs=epochs,
            lr=rate,
            curve=curve(tried[rate]),
            nested=tuple(nested),
            base=base.means(),
            adapted=adapted.means(),
            p_value=p,
            held_out=len(fresh),
            new_documents={
                "queries": float(fresh.sum()),
                "base": mean(base.ndcg[fresh]),
                "adapted": mean(adapted.ndcg[fresh]),
            },
        )


def _tried(
    make: Callable[[], L],
    examples: Examples,
    settings: TrainSettings,
    rates: Sequence[float],
    plan: Plan,
    progress: Progress | None,
) -> dict[float, list[Part]]:
    """What each learning rate gives. A rate that diverges is skipped with a warning; an error where all of them do."""
    tried: dict[float, list[Part]] = {}
    for rate in rates:
        try:
            tried[rate] = _measured(make, examples, replace(settings, lr=rate), plan, progress)
        except DivergedError as error:
            if len(rates) == 1:
                raise
            reason = str(error).partition(";")[0]
            warnings.warn(f"the learning rate {rate:g} is skipped: {reason}", TrainingWarning, stacklevel=3)
    if not tried:
        shown = ", ".join(f"{rate:g}" for rate in rates)
        raise DivergedError(
            f"the training diverged at every learning rate ({shown}); give a lower one: --lr {min(rates) / 10:g}"
        )
    return tried


def _measured(
    make: Callable[[], L], examples: Examples, settings: TrainSettings, plan: Plan, progress: Progress | None
) -> list[Part]:
    """Every fold that a run leaves out, after each pass, until no choice can change."""
    folds = examples.folds(settings.folds, seed=settings.seed, by=settings.held_out)
    runs = [Run(make, examples, settings, np.flatnonzero(~np.isin(folds, pair))) for pair in plan.pairs]
    parts = [Part.of(examples, folds, pair, run, fold) for run, pair in enumerate(plan.pairs) for fold in pair]
    groups = [parts, *(choosers(parts, fold) for fold in plan.tested)]
    for epoch in range(1, settings.epochs + 1):
        for run in runs:
            run.epoch()
        for part in parts:
            grades = [examples.grades[row] for row in part.rows]
            part.passes.append(Quality.of(runs[part.run].rankings(part.rows), grades))
        if progress is not None:
            progress("folds held out", epoch, settings.epochs)
        if all(choose(group, patience=settings.patience).done for group in groups):
            break
    return parts


@contextmanager
def one_thread() -> Iterator[None]:
    """Steps are small: more threads gain little, and wait for each other at length where the machine has other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Run(Generic[L]):
    """One learner, trained on some of the queries, a pass at a time."""

    def __init__(
        self, make: Callable[[], L], examples: Examples, settings: TrainSettings, rows: NDArray[np.int64]
    ) -> None:
        torch.manual_seed(settings.seed)
        self.examples, self.settings, self.rows = examples, settings, rows
        self.learner = make()
        self.random = np.random.default_rng(settings.seed)
        exempt = self.learner.without_decay()
        kept = {id(parameter) for parameter in exempt}
        others = [parameter for parameter in self.learner.parameters() if id(parameter) not in kept]
        groups = [{"params": others, "weight_decay": settings.weight_decay}, {"params": exempt, "weight_decay": 0.0}]
        self.optimizer = torch.optim.Adam([group for group in groups if group["params"]], lr=settings.lr)
        self._documents = torch.from_numpy(examples.documents)
        self._queries = torch.from_numpy(examples.queries)

    def epoch(self) -> None:
        """One pass over the queries, in an order of its own."""
        self.learner.train()
        order = self.random.permutation(self.rows)
        for start in range(0, len(order), self.settings.batch):
            loss = self.learner.loss(self._batch(order[start : start + self.settings.batch]))
            if not bool(loss.isfinite()):
                raise self._diverged(f"the loss is {float(loss.detach())}")
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
            pool = self._documents[np.maximum(candidates, 0)]  # [n, c, dim]: each query's own candidates
            own = self.learner.scores(self._queries[part], pool, self._feedback(part)).numpy()
            if not np.isfinite(own).all():
                raise self._diverged("the scores are not finite")
            own = np.where(candidates >= 0, own, -np.inf)
            order = np.lexsort((candidates, -own), axis=1)
            found[start : start + len(part)] = np.take_along_axis(candidates, order, axis=1)
        return found

    def _diverged(self, what: str) -> DivergedError:
        lr = self.settings.lr
        return DivergedError(f"{what}: the training diverged; give a lower learning rate than {lr:g}: --lr {lr / 10:g}")

    def _batch(self, rows: NDArray[np.int64]) -> Batch:
        examples = self.examples
        hard = examples.negatives[rows]
        relevant = np.array([place for row in rows for place in examples.grades[row]], np.int64)
        found = [hard[hard >= 0], relevant]
        if self.settings.negatives == "corpus":
            total, most = len(examples.documents), MAX_POOL_DOCUMENTS
            found.append(np.arange(total) if total <= most else self.random.choice(total, most, replace=False))
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
    """One-sided: how likely a gain like this is by chance. Undefined values are never below a level."""
    return paired_p(left, right, alternative="greater")
