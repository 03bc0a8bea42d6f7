"""Rows and files that cannot be read while the others can: each with its place, its reason and the whole message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from lexent.errors import InputError

OnError = Literal["stop", "skip"]
"""What a bad row or file does: it stops the reading, or it is left out and reported."""
SHOWN_PROBLEMS = 20
"""So many problems are shown in full; the others are counted by reason."""


class RowError(InputError):
    """A row or file that cannot be read. The rows and files after it can."""

    def __init__(self, message: str, *, where: str, reason: str) -> None:
        super().__init__(message)
        self.where, self.reason = where, reason


@dataclass(frozen=True, slots=True)
class Problem:
    """A row or file that was left out."""

    where: str
    """The file, with the line or item."""
    reason: str
    """The kind of problem, such as "duplicate id"."""
    message: str
    """What is wrong there, with its place."""

    @staticmethod
    def of(error: RowError) -> Problem:
        """The problem that an error describes."""
        return Problem(error.where, error.reason, str(error))

    def __str__(self) -> str:
        return self.message


def by_reason(problems: Iterable[Problem]) -> dict[str, int]:
    """How many problems there are of each reason, the most frequent first."""
    return dict(Counter(problem.reason for problem in problems).most_common())


def summary(problems: Iterable[Problem]) -> str:
    """How many rows or files were left out, and why, in one line."""
    counts = by_reason(problems)
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
    total = sum(counts.values())
    return f"{total:,} row{'' if total == 1 else 's'} or file{'' if total == 1 else 's'} left out ({reasons})"
