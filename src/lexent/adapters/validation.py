"""Validation by nested folds: some held-out queries choose the passes and the learning rate, others test the choice.

Each run leaves out a pair of folds, and every pair has a run. For a tested fold, the passes are chosen on the folds
that are left out beside it: no query that tests a choice took part in it, neither in training nor in choosing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.examples import Examples

CUTOFF = 10
"""Rank that measures stop at."""
_DISCOUNT = 1 / np.log2(np.arange(2, CUTOFF + 2))
SINGLE_RUN_QUERIES = 2000
"""Queries from which on one run is enough: its second fold chooses, its first tests."""
MAX_LOSS_ON_NEW_DOCUMENTS = 0.002
"""Loss on new documents up to which a pass is admitted. An adapter comes to remember the documents that train queries
ask for; at the cost of all others if it is trained for long."""


@dataclass(frozen=True, slots=True)
class Quality:
    """nDCG, reciprocal rank and recall at 10 of each query. Reports use ir_measures; a test holds that both agree."""

    ndcg: NDArray[np.float64]  # [n]
    rr: NDArray[np.float64]  # [n]
    recall: NDArray[np.float64]  # [n]

    @property
    def each(self) -> NDArray[np.float64]:
        """float64[n]: the mean of the three, by which training chooses."""
        return (self.ndcg + self.rr + self.recall) / 3

    @property
    def value(self) -> float:
        """The mean over queries of the measure that is watched."""
        return float(self.each.mean())

    def means(self) -> dict[str, float]:
        """The mean of each measure over queries."""
        values = {"nDCG@10": self.ndcg, "RR@10": self.rr, "R@10": self.recall}
        return {name: float(column.mean()) for name, column in values.items()}

    @staticmethod
    def joined(parts: Sequence[Quality]) -> Quality:
        """The queries of all parts, one after the other."""
        return Quality(*np.concatenate([[part.ndcg, part.rr, part.recall] for part in parts], axis=1))

    @staticmethod
    def mean(parts: Sequence[Quality]) -> Quality:
        """Of the same queries, measured several times."""
        return Quality(*np.mean([[part.ndcg, part.rr, part.recall] for part in parts], axis=0))

    @staticmethod
    def of(rankings: NDArray[np.int64], grades: Sequence[Mapping[int, int]]) -> Quality:
        """rankings: int64[n, k], positions from best to worst, -1 for none. grades: those above 0 of each query."""
        found = np.zeros((3, len(grades)))
        for row, judged in enumerate(grades):
            gains = np.array([judged.get(int(place), 0) for place in rankings[row, :CUTOFF]], np.float64)
            ideal = np.sort(list(judged.values()))[::-1][:CUTOFF]
            hits = np.flatnonzero(gains)
            found[0, row] = gains @ _DISCOUNT[: len(gains)] / (ideal @ _DISCOUNT[: len(ideal)])
            found[1, row] = 1 / (hits[0] + 1) if len(hits) else 0.0
            found[2, row] = len(hits) / len(judged)
        return Quality(*found)


@dataclass(frozen=True, slots=True)
class Plan:
    """Which folds are left out, and which are tested."""

    pairs: tuple[tuple[int, int], ...]
    """Of each run: the folds that it is not trained on."""
    tested: tuple[int, ...]

    @staticmethod
    def of(n_folds: int, n_queries: int) -> Plan:
        """Every pair of folds in turn; one pair where there are many queries."""
        if n_queries >= SINGLE_RUN_QUERIES:
            return Plan(((0, 1),), (0,))
        return Plan(tuple(combinations(range(n_folds), 2)), tuple(range(n_folds)))


@dataclass(frozen=True, slots=True)
class Part:
    """One fold that a run leaves out, measured after each pass."""

    run: int
    fold: int
    rows: NDArray[np.int64]
    new: NDArray[np.bool_]
    """Whether none of a query's documents is relevant to a query that the run is trained on."""
    passes: list[Quality] = field(default_factory=list)
    """From none on; the first is the base."""

    @staticmethod
    def of(examples: Examples, folds: NDArray[np.int64], left_out: tuple[int, int], run: int, fold: int) -> Part:
        """The queries of one fold of a run, with what its training queries have in common with them."""
        trained = np.flatnonzero(~np.isin(folds, left_out))
        known = {place for row in trained for place in examples.grades[row]}
        rows = np.flatnonzero(folds == fold)
        new = np.array([known.isdisjoint(examples.grades[row]) for row in rows], np.bool_)
        base = Quality.of(examples.candidates[rows], [examples.grades[row] for row in rows])
        return Part(run, fold, rows, new, [base])


@dataclass(frozen=True, slots=True)
class Choice:
    """The best pass among those that are admitted."""

    epoch: int
    value: float
    """The mean of nDCG, RR and R at 10 after it, over the queries that chose it."""
    done: bool
    """Whether patience has run out: later passes cannot change the choice."""


def choose(parts: Sequence[Part], *, patience: int) -> Choice:
    """The best pass over the queries of some parts. Passes that harm queries for new documents are not admitted."""
    new = np.concatenate([part.new for part in parts])
    base = _each(parts, 0)
    best, value = 0, float(base.mean())
    for epoch in range(1, len(parts[0].passes)):
        each = _each(parts, epoch)
        if mean((each - base)[new]) >= -MAX_LOSS_ON_NEW_DOCUMENTS and each.mean() > value:
            best, value = epoch, float(each.mean())
        if epoch - best >= patience:
            return Choice(best, value, True)
    return Choice(best, value, False)


def choosers(parts: Sequence[Part], tested: int) -> list[Part]:
    """The parts that choose for a tested fold: of each run that leaves it out, the other fold."""
    runs = {part.run for part in parts if part.fold == tested}
    return [part for part in parts if part.run in runs and part.fold != tested]


def curve(parts: Sequence[Part]) -> tuple[float, ...]:
    """After each pass: the mean of nDCG, RR and R at 10 over all parts."""
    return tuple(float(_each(parts, epoch).mean()) for epoch in range(len(parts[0].passes)))


def mean(values: NDArray[np.float64]) -> float:
    """The mean; 0 where there are no values."""
    return float(values.mean()) if len(values) else 0.0


def _each(parts: Sequence[Part], epoch: int) -> NDArray[np.float64]:
    return np.concatenate([part.passes[epoch].each for part in parts])
