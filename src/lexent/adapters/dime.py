"""DIME: keep the dimensions of a query that the best documents of a first search agree with; nothing is learned.

A dimension's importance is the product of the query and of the mean of its first documents, there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lexent.adapters.corpus import Ranking, best
from lexent.adapters.modulation import Rows
from lexent.errors import InputError

SHARES = (0.2, 0.4, 0.6, 0.8)
"""Of the dimensions, how many are kept: the paper's range."""


@dataclass(frozen=True, slots=True)
class Dime:
    """Searches with a part of the query's dimensions."""

    documents: Rows  # [n, dim], unit
    share: float = 0.6
    """Of the dimensions that are kept."""
    feedback: int = 5
    """Documents of the first search that say which."""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.feedback < 1:
            raise InputError(
                f"share is {self.share} and feedback is {self.feedback}; allowed: above 0 to 1, and 1 or more"
            )

    @property
    def name(self) -> str:
        return f"dime-{self.share:.0%}".rstrip("%")

    def query(self, vector: Rows) -> Rows:
        """float32[dim]: the query with its other dimensions at 0."""
        first = best(self.documents @ vector, self.feedback).positions
        importance = vector * self.documents[first].mean(axis=0)
        kept = max(1, round(self.share * len(vector)))
        mask = np.zeros(len(vector), np.float32)
        mask[np.argsort(-importance, kind="stable")[:kept]] = 1
        return vector * mask

    def scores(self, vector: Rows) -> Rows:
        """float32[n]: products, as the method has them: the length of the masked query moves no document."""
        found: Rows = self.documents @ self.query(vector)
        return found

    def search(self, vector: Rows, k: int) -> Ranking:
        return best(self.scores(vector), k)
