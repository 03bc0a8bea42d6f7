"""How well a judge did: accuracy or AUC with an interval, beside the control and with a paired test.

And whether names can be told apart: how many are distinct, and how near the nearest other one is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lexent.nan_safe import paired_p
from lexent.studies.naming.questions import TASKS, Pair, Question, Task

Scores = NDArray[np.float64]


class Judge(Protocol):
    """Whoever answers: a score for each option of each question, the highest being the answer."""

    @property
    def name(self) -> str:
        """The name of the judge in reports."""

    def judge(self, questions: Sequence[Question]) -> list[Scores | None]:
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


def grade(pairs: Sequence[Pair], judge: Judge) -> list[Outcome]:
    """The outcomes of all tasks among the questions: over all questions first, then by group."""
    questions = [question for pair in pairs for question in (pair.question, pair.control)]
    answers = judge.judge(questions)
    values = np.array([credit(question, answer) for question, answer in zip(questions, answers, strict=True)])
    missing = np.array([answer is None for answer in answers], dtype=bool)
    found = []
    for task, group, places in by_group([(pair.question.task, pair.question.group) for pair in pairs]):
        part = np.array(places)
        chance = float(np.mean([pairs[place].question.chance for place in places]))
        own_values, control = values[2 * part], values[2 * part + 1]
        unanswered = int(missing[2 * part].sum())
        found.append(outcome(task, judge.name, group, own_values, chance, control=control, unanswered=unanswered))
    return found


def by_group(questions: Sequence[tuple[Task, str]]) -> Iterator[tuple[Task, str, list[int]]]:
    """Task, group and places: all questions of a task first, then those of each group where there are several."""
    for task in TASKS:
        own = [place for place, question in enumerate(questions) if question[0] == task]
        groups = sorted({questions[place][1] for place in own} - {""})
        for group in ("all", *(groups if len(groups) > 1 else [])) if own else ():
            yield task, group, [place for place in own if group in ("all", questions[place][1])]


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
