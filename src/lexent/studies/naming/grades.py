"""How well a judge did: accuracy or AUC with an interval, beside the control and with a paired test.

And whether names can be told apart: how many are distinct, and how near the nearest other one is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lexent.nan_safe import paired_p
from lexent.studies.naming.questions import Pair, Question, Task

Scores = NDArray[np.float64]


class Judge(Protocol):
    """Whoever answers: a score for each option of each question, the highest being the answer."""

    @property
    def name(self) -> str:
        """The name of the judge in reports."""

    def judge(
        self, questions: Sequence[Question], *, progress: Callable[[int], None] | None = None
    ) -> list[Scores | None]:
        """None where there is no answer, which counts as wrong."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """One judge's result on one task; over all questions, or over those of a group."""

    task: Task
    judge: str
    group: str
    """"all", a category or a setting."""
    n: int
    value: float
    """Share of right answers; for detection, the mean AUC."""
    low: float
    """Of the 95 % interval."""
    high: float
    chance: float
    control: float | None = None
    """The same with wrong names."""
    p: float | None = None
    """Of the difference, by a paired t-test over the questions."""
    unanswered: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return asdict(self)


def grade(pairs: Sequence[Pair], judge: Judge, *, progress: Callable[[int], None] | None = None) -> list[Outcome]:
    """The outcomes of all tasks among the questions: over all questions first, then by group."""
    questions = [question for pair in pairs for question in (pair.question, pair.control)]
    answers = judge.judge(questions, progress=progress)
    values = np.array([credit(question, answer) for question, answer in zip(questions, answers, strict=True)])
    missing = np.array([answer is None for answer in answers], dtype=bool)
    found = []
    for task in dict.fromkeys(pair.question.task for pair in pairs):
        own = np.array([place for place, pair in enumerate(pairs) if pair.question.task == task])
        groups = np.array([pairs[place].question.group for place in own])
        names = [str(name) for name in dict.fromkeys(groups.tolist()) if name]
        for group in ("all", *(sorted(names) if len(names) > 1 else [])):
            part = own if group == "all" else own[groups == group]
            chance = float(np.mean([pairs[place].question.chance for place in part]))
            own_values, control = values[2 * part], values[2 * part + 1]
            unanswered = int(missing[2 * part].sum())
            found.append(outcome(task, judge.name, group, own_values, chance, control=control, unanswered=unanswered))
    return found


def outcome(
    task: Task, judge: str, group: str, values: Scores, chance: float, *, control: Scores | None = None, unanswered: int
) -> Outcome:
    """The result over some questions. control: the values of their controls; a person's answers have none."""
    low, high = interval(values, of_shares=task != "detection")
    mean = float(values.mean()) if len(values) else math.nan
    found = Outcome(task, judge, group, len(values), mean, low, high, chance, unanswered=unanswered)
    return found if control is None else replace(found, control=float(control.mean()), p=paired(values, control))


def credit(question: Question, scores: Scores | None) -> float:
    """1 where the best option is right, a part of it where several are equally good; for detection, the AUC."""
    if scores is None:
        return 0.5 if question.task == "detection" else 0.0
    if question.task == "detection":
        return auc(scores, question.right)
    best = np.flatnonzero(scores >= scores.max() - 1e-12)
    return float(np.isin(best, question.right).mean())


def auc(scores: Scores, right: Sequence[int]) -> float:
    """The chance that a right option scores higher than a wrong one; ties count half."""
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[list(right)] = True
    difference = scores[chosen][:, None] - scores[~chosen][None, :]
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean()) if difference.size else 0.5


def interval(values: Scores, *, of_shares: bool) -> tuple[float, float]:
    """95 %: Wilson's for shares of right answers, which holds at 0 and 1 too; by the normal for means of AUCs."""
    n, z = len(values), 1.959964
    if n == 0:
        return math.nan, math.nan
    mean = float(values.mean())
    if of_shares:
        middle = (mean + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)
    half = z * float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else 0.5
    return max(0.0, mean - half), min(1.0, mean + half)


def paired(values: Scores, control: Scores) -> float | None:
    """The p-value of their difference; None where it is not defined."""
    found = paired_p(values, control, alternative="two-sided")
    return None if math.isnan(found) else found


class Likeness(Protocol):
    """A judge that says how alike texts are."""

    @property
    def name(self) -> str:
        """The name of the judge in reports."""

    def alike(self, left: Sequence[str], right: Sequence[str]) -> Scores:
        """Similarities: float64[n_left, n_right]."""


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """Of the names of a lexicon."""

    names: int
    distinct: float
    """Share of the names that no other concept has; letters' case does not count."""
    nearest: dict[str, float]
    """By judge: the mean likeness of a name to the most similar other name, over those that were looked at."""
    looked_at: int

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return asdict(self)


def uniqueness(names: Sequence[str], judges: Sequence[Likeness], *, limit: int = 2000, seed: int = 0) -> Uniqueness:
    """Distinct over all names; the nearest among a sample of them, since every pair is looked at."""
    folded = [name.casefold() for name in names]
    counts = Counter(folded)
    distinct = sum(counts[name] == 1 for name in folded) / max(1, len(names))
    order = np.sort(np.random.default_rng([seed, 5]).permutation(len(names))[:limit])
    some = [names[place] for place in order]
    nearest = {}
    for judge in judges:
        if len(some) > 1:
            among = judge.alike(some, some)
            np.fill_diagonal(among, -1.0)
            nearest[judge.name] = float(among.max(axis=1).mean())
    return Uniqueness(len(names), distinct, nearest, len(some))
