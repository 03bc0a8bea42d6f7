"""Questions about names, in one form for every task: some options, some of them right.

Judges and people answer the same questions. Each comes with a control: the same question where the names, or in the
intrusion test the texts, are another concept's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Task = Literal["intrusion", "named-intrusion", "detection", "identification", "simulation"]
"""intrusion: nine texts have a concept in common and one lacks it; which? The name is not shown.
named-intrusion: the same, with the name shown.
detection: which texts have the concept of that name? Measured by the AUC.
identification: some concepts of a passage are named; which of ten passages is it?
simulation: a query with its named concepts, and those of two passages; which one does the retriever rank higher?
"""
TASKS: tuple[Task, ...] = ("intrusion", "named-intrusion", "detection", "identification", "simulation")

Setting = Literal["R@P-R@P", "R@P-NR@P", "R@N-NR@P"]
"""Of simulation, as CL-SR writes them. R: retrieved, NR: not retrieved; P: positive, N: negative."""
SETTINGS: tuple[Setting, ...] = ("R@P-R@P", "R@P-NR@P", "R@N-NR@P")


@dataclass(frozen=True, slots=True)
class Named:
    """A concept as a judge sees it: its name, and how much it weighs in a text."""

    name: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Option:
    """What can be chosen: a text, or the concepts of one."""

    text: str = ""
    concepts: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `right` must not be shown."""

    task: Task
    options: tuple[Option, ...]
    right: tuple[int, ...]
    group: str = ""
    """What results are kept apart by: the concept's category, or the setting."""
    subject: str = ""
    """What it is about: a concept's number, a document or a query."""
    query: str = ""
    concepts: tuple[Named, ...] = ()

    @property
    def chance(self) -> float:
        """What blind guessing gets."""
        return 0.5 if self.task == "detection" else len(self.right) / len(self.options)


@dataclass(frozen=True, slots=True)
class Pair:
    """A question, and its control."""

    question: Question
    control: Question
