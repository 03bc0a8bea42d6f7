"""What the settings of trainings on pairs have in common: ranges, the warm-up, and how they differ from a paper's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lexent.errors import InputError

WARM_UP_MOST = 0.5
"""A warm-up that is given in steps takes at most this share of a run."""
_RANGES: dict[str, Callable[[Any], bool]] = {
    "2 or more": lambda value: value >= 2,
    "1 or more": lambda value: value >= 1,
    "0 or more": lambda value: value >= 0,
    "above 0": lambda value: value > 0,
    "from 0 to 1": lambda value: 0 <= value <= 1,
    "from 0 to below 1": lambda value: 0 <= value < 1,
    "between 0 and 1": lambda value: 0 < value < 1,
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that `--paper` does not take from the paper."""

    what: str
    paper: str
    here: str
    """With what to type for the paper's, where it can be had."""

    def __str__(self) -> str:
        return f"{self.what}: {self.here} [paper: {self.paper}]"


class PairSettings:
    """Settings that have a warm-up, and fields whose values have ranges."""

    __slots__ = ()
    warm_up: float
    warm_up_steps: int | None

    def check_ranges(self, ranges: dict[str, tuple[str, ...]]) -> None:
        """Refuse values out of range. ranges: what is allowed, one of `_RANGES` or with ", or none", to fields."""
        for allowed, names in ranges.items():
            kind, _, optional = allowed.partition(", or ")
            for name in names:
                given = getattr(self, name)
                check(_RANGES[kind](given) if given is not None else bool(optional), name, given, allowed)

    def warm_up_of(self, steps: int) -> float:
        """The share of a run of so many steps that has a rising learning rate."""
        return self.warm_up if self.warm_up_steps is None else min(self.warm_up_steps / steps, WARM_UP_MOST)


def check(good: bool, name: str, given: object, allowed: str) -> None:
    """Refuse a value that is not good."""
    if not good:
        raise InputError(f"{name} is {given}; allowed: {allowed}")


def k_between(first: int | None, last: int, share: float, *, end: float) -> int:
    """Latents that a state may use at a share of the run: `last` from the share `end` on. first: at the start."""
    return last if first is None or share >= end else round(first + (last - first) * share / end)
