"""How long queries take, one after the other on one thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds a query, over some queries."""

    mean: float
    p50: float
    p99: float

    @staticmethod
    def of(rounds: Sequence[NDArray[np.float64]]) -> Times:
        """From rounds of the same queries: each query's median over the rounds counts."""
        taken = np.median(np.stack(rounds), axis=0)
        return Times(float(taken.mean()), float(np.median(taken)), float(np.percentile(taken, 99)))

    def as_dict(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in asdict(self).items()}


def run_queries(search: Callable[[int], Any], n: int) -> NDArray[np.float64]:
    """Run queries 0 to n; the milliseconds that each took."""
    taken = np.empty(n)
    for number in range(n):
        began = time.perf_counter()
        search(number)
        taken[number] = time.perf_counter() - began
    return taken * 1e3


def one_core(*, pinned: bool = True) -> None:
    """One thread for every library, and one core for all of this process where it is pinned.

    To be called before anything starts threads.
    """
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "RAYON_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ):
        os.environ[name] = "1"
    os.environ["LEXENT_KERNELS"] = "compiled"  # kernels are measured, not the way to them
    if pinned and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
