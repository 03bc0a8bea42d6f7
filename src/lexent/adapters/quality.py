"""nDCG, reciprocal rank and recall at 10 of many rankings at once: what training watches after every pass.

Reports use ir_measures; a test holds that both agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CUTOFF = 10
_DISCOUNT = 1 / np.log2(np.arange(2, CUTOFF + 2))


@dataclass(frozen=True, slots=True)
class Quality:
    """Values of each query."""

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
