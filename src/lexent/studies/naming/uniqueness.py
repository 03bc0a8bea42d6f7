"""Can names be told apart? How many are distinct, and how near is the nearest other one?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Likeness(Protocol):
    """A judge that says how alike texts are."""

    @property
    def name(self) -> str:
        """The name of the judge in reports."""

    def alike(self, asked: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
        """Similarities: float64[n_asked, n_texts]."""


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
