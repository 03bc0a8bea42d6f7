"""Fusion: several rankings of the same documents become one, whose every score is the sum of what each ranking gave.

- rrf, reciprocal rank: a ranking gives a document weight / (60 + its rank). Scores need not be comparable.
- sum, calibrated scores: it gives weight * (score - lowest) / spread, where lowest and spread (the standard deviation)
  are those of its candidates for this query. A ranking without spread (one candidate, or all of one score) cannot be
  calibrated so: each of its documents gets its weight plus the highest value that a ranking with spread gives. So the
  only document that has the words of a query is not passed by one that has none. A weight of 0 gives 0.

A ranking gives nothing to documents that it did not find. Equal sums keep the order in which the rankings, one after
the other, name their documents: a ranking fused with itself keeps its order.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar, get_args

from lexent import arguments
from lexent.errors import InputError

Method = Literal["rrf", "sum"]
Key = TypeVar("Key", bound=Hashable)
"""What names a document: its id, or its position."""

WEIGHTS: dict[Method, dict[str, float]] = {"rrf": {}, "sum": {"dense": 0.5, "bm25": 0.25}}
"""Weights of systems that are fused with a recipe, where none are given: chosen on train splits, see docs/search.md."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """How rankings become one."""

    method: Method = "sum"
    weights: Mapping[str, float] = field(default_factory=dict)
    """By the name of a ranking; 1 where it is not named."""
    k: float = 60.0
    """rrf: how many ranks it takes until a hit gives half of what the first one would; higher is flatter."""

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in get_args(Method):
            raise InputError(f"no fusion {arguments.shown(self.method)}; allowed: {' or '.join(get_args(Method))}")
        arguments.fields_of(self, of="the fusion")
        if not (math.isfinite(self.k) and self.k >= 0):
            raise InputError(f"k of the fusion is {self.k}; allowed: 0 or more")
        arguments.mapping("weights of the fusion", self.weights, allowed='weights by name, such as {"bm25": 0.5}')
        for name, weight in self.weights.items():
            if not arguments.is_number(weight) or not 0 <= weight <= arguments.HIGHEST_WEIGHT:
                raise InputError(
                    f'the weight of "{name}" is {arguments.shown(weight)}; '
                    f"allowed: from 0 to {arguments.HIGHEST_WEIGHT:,}; 1 is usual"
                )


@dataclass(frozen=True, slots=True)
class Part:
    """What one ranking gave to a document."""

    name: str
    rank: int
    score: float
    """In that ranking."""
    value: float
    """Of the fused score."""


@dataclass(frozen=True, slots=True)
class Fused(Generic[Key]):
    """A document of the fused ranking; the values of its parts sum to its score."""

    key: Key
    score: float
    parts: tuple[Part, ...]


def fuse(
    rankings: Mapping[str, Sequence[tuple[Key, float]]], fusion: Fusion, *, depth: int | None = None
) -> list[Fused[Key]]:
    """One ranking from several by name, each best first with its scores; at most `depth` documents of it."""
    best = scores(rankings, fusion, depth=depth)
    parts: dict[Key, list[Part]] = {key: [] for key in best}
    values = _values(rankings, fusion)
    for name, ranking in rankings.items():
        for rank, ((key, score), value) in enumerate(zip(ranking, values[name], strict=True), start=1):
            if key in parts:
                parts[key].append(Part(name, rank, score, value))
    return [Fused(key, score, tuple(parts[key])) for key, score in best.items()]


def scores(
    rankings: Mapping[str, Sequence[tuple[Key, float]]], fusion: Fusion, *, depth: int | None = None
) -> dict[Key, float]:
    """The fused scores alone, best first."""
    found: dict[Key, float] = {}
    values = _values(rankings, fusion)
    for name, ranking in rankings.items():
        for (key, _), value in zip(ranking, values[name], strict=True):
            found[key] = found.get(key, 0.0) + value
    best = sorted(found, key=lambda key: -found[key])  # stable: equal sums stay in the order of their rankings
    return {key: found[key] for key in best[:depth]}


def _values(rankings: Mapping[str, Sequence[tuple[Key, float]]], fusion: Fusion) -> dict[str, list[float]]:
    """What each ranking gives to each of its documents."""
    weights = {name: fusion.weights.get(name, 1.0) for name in rankings}
    if fusion.method == "rrf":
        return {
            name: [weights[name] / (fusion.k + rank) for rank in range(1, len(ranking) + 1)]
            for name, ranking in rankings.items()
        }
    found = {name: _calibrated(ranking, weights[name]) for name, ranking in rankings.items()}
    highest = max((max(values) for values in found.values() if values), default=0.0)
    return {
        name: [weights[name] + highest if weights[name] else 0.0] * len(rankings[name]) if values is None else values
        for name, values in found.items()
    }


def _calibrated(ranking: Sequence[tuple[Key, float]], weight: float) -> list[float] | None:
    """What a ranking gives by the deviations of its scores; None where they have no spread."""
    given = [score for _, score in ranking]
    lowest, highest = min(given, default=0.0), max(given, default=0.0)
    if lowest == highest:
        return None
    shares = [(score - lowest) / (highest - lowest) for score in given]  # so that no square is lost or overflows
    mean = math.fsum(shares) / len(shares)
    spread = math.sqrt(math.fsum((share - mean) ** 2 for share in shares) / len(shares))
    return [weight * share / spread for share in shares]
