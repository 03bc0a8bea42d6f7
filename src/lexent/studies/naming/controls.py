"""Wrong names that look right: each concept gets the name of another that is about as frequent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CONCEPTS_PER_BLOCK = 50
"""Concepts of neighbouring frequency that exchange their names."""


def exchanged(names: Sequence[str], counts: NDArray[np.int64], *, seed: int = 0) -> dict[int, str]:
    """A wrong name for each concept that is active at all. Names go round within blocks of like frequency."""
    live = np.flatnonzero(counts > 0)
    order = live[np.lexsort((live, -counts[live]))]
    draw = np.random.default_rng(seed)
    found: dict[int, str] = {}
    for block in np.array_split(order, max(1, len(order) // CONCEPTS_PER_BLOCK)):
        ring = draw.permutation(block)
        for place, concept in enumerate(ring):
            others = (names[ring[(place + step) % len(ring)]] for step in range(1, len(ring)))
            found[int(concept)] = next((name for name in others if name != names[concept]), "")
    return found
