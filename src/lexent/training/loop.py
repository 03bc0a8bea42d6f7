"""The loop of a training run over pairs: what it tells, logs and keeps on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol, TypeVar

from lexent.errors import InputError
from lexent.training.checkpoint import Run, write_checkpoint
from lexent.training.log import Log

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from lexent.training.pairs import PairBatches

LOG_EVERY = 50
"""Steps between two rows of metrics: reading them off a GPU waits for it."""


def check_loss(measured: Mapping[str, float], *, step: int, lr: float) -> None:
    """Stop a run whose loss is no longer a number: its weights are lost, and no checkpoint may be made of them."""
    for name, value in measured.items():
        if not math.isfinite(value):
            raise InputError(
                f"{name} is {value} at step {step}: the training diverged; its last checkpoint is from before. Begin "
                f"anew with a lower learning rate, such as --lr {lr / 10:g} (it is {lr:g})"
            )


Progress = TypeVar("Progress", bound="DataclassInstance")


class PairRun(Run, Protocol[Progress]):
    """A training run whose steps are batches of pairs."""

    step: int
    steps: int
    batches: PairBatches
    latest: Progress | None

    @property
    def lr(self) -> float:
        """The peak learning rate."""
        ...

    def advance(self) -> Callable[[float], Progress]:
        """One step; gives what measures it, from the rate in pairs a second."""
        ...


def run_to_end(
    run: PairRun[Progress], *, checkpoint_every: float, progress: Callable[[Progress], None] | None
) -> Progress:
    """Train to the end; what was measured last.

    Checkpoints are written at the end, and before it at most one in checkpoint_every seconds.
    """
    began, first, saved, shown = time.monotonic(), run.step, time.monotonic(), 0.0
    while run.step < run.steps:
        measured = run.advance()
        last = run.step == run.steps
        wanted = progress is not None and time.monotonic() - shown > 0.5
        if not (wanted or last or run.step % LOG_EVERY == 0):
            continue
        shown = time.monotonic()
        run.latest = measured((run.step - first) * run.batches.batch / max(shown - began, 1e-9))
        check_loss(asdict(run.latest), step=run.step, lr=run.lr)
        if progress is not None:
            progress(run.latest)
        if run.folder is not None:
            if last or run.step % LOG_EVERY == 0:
                Log(run.folder).add(asdict(run.latest))
            if last or time.monotonic() - saved > checkpoint_every:
                write_checkpoint(run)
                saved = time.monotonic()
    assert run.latest is not None
    return run.latest
