"""What a training with the settings of a paper does otherwise than the paper: declared beside its settings."""

from __future__ import annotations

from dataclasses import dataclass

WARM_UP_MOST = 0.5
"""A warm-up that is given in steps takes at most this share of a run."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that `--paper` does not take from the paper."""

    what: str
    paper: str
    here: str
    """With what to type for the paper's, where it can be had."""

    def __str__(self) -> str:
        return f"{self.what}: {self.here} [paper: {self.paper}]"


def warm_up_share(share: float, steps: int | None, *, of: int) -> float:
    """The share of a run of `of` steps with a rising learning rate: as given, or by a number of steps."""
    return share if steps is None else min(steps / of, WARM_UP_MOST)
