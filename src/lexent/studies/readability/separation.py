"""Does a number of the first hit tell queries that have an answer from those that have none?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lexent.studies.naming.grades import interval

REAL = "real"
"""The kind of the queries that have an answer."""
REAL_ABOVE = 0.95
"""Share of the real queries that are above the threshold."""


@dataclass(frozen=True, slots=True)
class Separation:
    """How many queries without an answer are below most real ones."""

    threshold: float
    """At least 95 % of the real queries are at it or above."""
    below: float
    """The share of all queries without an answer that are below it."""
    low: float
    """Of its 95 % interval."""
    high: float
    kinds: dict[str, float]
    """That share by kind."""
    medians: dict[str, float]
    """By kind, real queries among them."""
    values: dict[str, tuple[float, ...]]
    """By kind: the number of each query."""


def separation(numbers: Mapping[str, Sequence[float]]) -> Separation:
    """numbers: of the first hit of each query, by kind; of real queries, and of others."""
    real = np.sort(np.array(numbers[REAL], np.float64))
    threshold = float(real[int(len(real) * (1 - REAL_ABOVE) + 1e-9)])
    others = {kind: np.array(values) < threshold for kind, values in numbers.items() if kind != REAL}
    every = np.concatenate(list(others.values())).astype(np.float64)
    low, high = interval(every, of_shares=True)
    return Separation(
        threshold=threshold,
        below=float(every.mean()),
        low=low,
        high=high,
        kinds={kind: float(below.mean()) for kind, below in others.items()},
        medians={kind: float(np.median(values)) for kind, values in numbers.items()},
        values={kind: tuple(values) for kind, values in numbers.items()},
    )
