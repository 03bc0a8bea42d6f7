"""PRF-DIME: remove the dimensions of a query that matter least by pseudo-relevance feedback; nothing is learned.

The importance of a dimension is the product, there, of the query and the mean of the best documents of a first search.
DIME has other forms, whose documents come from a language model or a user; this one needs neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lexent.adapters.corpus import Scorer, best
from lexent.adapters.modulation import Rows
from lexent.errors import InputError


@dataclass(frozen=True, slots=True)
class Dime(Scorer):
    """Searches with a part of the query's dimensions."""

    documents: Rows  # [n, dim], unit
    removed: float = 0.4
    """Share of the dimensions that are removed: 0.2 in DIME-20."""
    feedback: int = 5
    """Documents of the first search that decide which."""

    def __post_init__(self) -> None:
        if not 0 <= self.removed < 1 or self.feedback < 1:
            raise InputError(
                f"removed is {self.removed} and feedback is {self.feedback}; allowed: 0 to below 1, and 1 or more"
            )

    def query(self, vector: Rows) -> Rows:
        """float32[dim]: the query with its other dimensions at 0."""
        first = best(self.documents @ vector, self.feedback).positions
        importance = vector * self.documents[first].mean(axis=0)
        kept = max(1, len(vector) - round(self.removed * len(vector)))
        mask = np.zeros(len(vector), np.float32)
        mask[np.argsort(-importance, kind="stable")[:kept]] = 1
        return vector * mask

    def scores(self, vector: Rows) -> Rows:
        """float32[n]: products, as the method has them: the length of the masked query moves no document."""
        found: Rows = self.documents @ self.query(vector)
        return found
