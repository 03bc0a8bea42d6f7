"""A training run: its state, the log of what it measured, and the loop over batches of pairs."""

from __future__ import annotations

import json
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import torch

from lexent.artifact import disk_errors
from lexent.errors import InputError
from lexent.training.checkpoint import optimizer_tensors, read_checkpoint, restore_optimizer, write_checkpoint
from lexent.training.pairs import PairBatches

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from lexent.encoders import Encoder
    from lexent.training.pairs import Pairs
    from lexent.training.ssr.config import RetrievalConfig
    from lexent.training.uhd.config import WinnerConfig

METRICS = "metrics.jsonl"
LOG_EVERY = 50
"""Steps between two rows of metrics: reading them off a GPU waits for it."""
PROGRESS_INTERVAL_SECONDS = 0.5
"""Least time between two calls of a progress function."""

Progress = TypeVar("Progress", bound="DataclassInstance")


def check_loss(measured: Mapping[str, float], *, step: int, lr: float) -> None:
    """Stop a run whose loss is no longer a number: its weights are lost, and no checkpoint may be made of them."""
    for name, value in measured.items():
        if not math.isfinite(value):
            raise InputError(
                f"{name} is {value} at step {step}: the training diverged; its last checkpoint is from before. Begin "
                f"anew with a lower learning rate, such as --lr {lr / 10:g} (it is {lr:g})"
            )


class TrainingRun(Generic[Progress]):
    """The state of a run: all of it is in a checkpoint, so a run that is killed goes on exactly."""

    counted: ClassVar[tuple[str, ...]] = ("step",)
    """Attributes that are plain numbers of the state."""
    optimizer: torch.optim.Optimizer

    def __init__(self, progress: type[Progress], folder: Path | None) -> None:
        """progress: what a row of the log is. folder: where checkpoints and metrics go."""
        self._progress_type, self.folder = progress, folder
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.autocast = self.device.type == "cuda" and torch.cuda.is_bf16_supported()
        self.step = 0
        self.latest: Progress | None = None

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued."""

    @abstractmethod
    def weights_by_name(self) -> dict[str, torch.Tensor]:
        """The tensors that are trained; a checkpoint is copied into them."""

    @abstractmethod
    def attributes(self) -> dict[str, tuple[object, str]]:
        """Other tensors of the state by name: the object and the attribute that hold each."""

    def tensors(self) -> dict[str, torch.Tensor]:
        """All tensors of the state, for a checkpoint."""
        others = {name: getattr(*place) for name, place in self.attributes().items()}
        return {**optimizer_tensors(self.optimizer), **self.weights_by_name(), **others}

    def counters(self) -> dict[str, float]:
        """All plain numbers of the state, for a checkpoint."""
        return {name: getattr(self, name) for name in self.counted}

    @torch.no_grad()
    def restore(self, tensors: dict[str, torch.Tensor], counters: dict[str, Any]) -> None:
        """Take up the state of a checkpoint."""
        restore_optimizer(self.optimizer, tensors)
        for name, tensor in self.weights_by_name().items():
            tensor.copy_(tensors[name])
        for name, (owner, attribute) in self.attributes().items():
            setattr(owner, attribute, tensors[name].to(self.device))
        for name in self.counted:
            setattr(self, name, counters[name])

    def resume(self) -> bool:
        """Continue from the checkpoint of the folder; False where there is none.

        Rows of the log that came after the checkpoint are removed: they will be measured again.
        """
        if self.folder is None:
            return False
        with disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        found, path = read_checkpoint(self), self.folder / METRICS
        if path.exists():
            whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
            kept = [(line, row) for line in whole if (row := json.loads(line))["step"] <= self.step]
            with disk_errors(path):
                path.write_text("".join(line for line, _ in kept))
            self.latest = self._progress_type(**kept[-1][1]) if kept else None
        return found

    def log(self, progress: Progress) -> None:
        """Append a row to the log, where the run has a folder."""
        if self.folder is not None:
            path, row = self.folder / METRICS, asdict(progress)
            with disk_errors(path), path.open("a") as file:
                file.write(json.dumps({key: round(value, 6) for key, value in row.items()}) + "\n")


class PairRun(TrainingRun[Progress]):
    """A training run whose steps are batches of pairs."""

    encoder: Encoder
    config: RetrievalConfig | WinnerConfig

    def __init__(
        self,
        encoder: Encoder,
        pairs: Pairs,
        config: RetrievalConfig | WinnerConfig,
        *,
        progress: type[Progress],
        folder: Path | None,
    ) -> None:
        super().__init__(progress, folder)
        self.encoder, self.pairs, self.config = encoder, pairs, config
        self.batches = PairBatches(
            pairs, batch=config.batch, hard=config.hard, balance=config.balance, seed=config.seed
        )
        self.steps = config.steps or max(1, round(config.epochs * self.batches.an_epoch))

    def adamw(self, groups: Iterable[tuple[Iterable[torch.nn.Parameter], float, float]]) -> torch.optim.AdamW:
        """The optimiser of groups of parameters, each with its peak learning rate and weight decay."""
        made = [{"params": list(own), "peak": peak, "weight_decay": decay} for own, peak, decay in groups]
        return torch.optim.AdamW(made, lr=self.config.lr, fused=self.device.type == "cuda")

    def identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued."""
        facts = {"pairs": len(self.pairs), "content": self.pairs.digest, "encoder": self.encoder.fingerprint}
        return {**asdict(self.config), **facts}

    @abstractmethod
    def advance(self) -> Callable[[float], Progress]:
        """One step; gives what measures it, from the rate in pairs a second."""

    def run(self, *, checkpoint_every: float = 120.0, progress: Callable[[Progress], None] | None = None) -> Progress:
        """Train to the end; what was measured last.

        Checkpoints are written at the end, and before it at most one in checkpoint_every seconds.
        """
        began, first, saved, shown = time.monotonic(), self.step, time.monotonic(), 0.0
        while self.step < self.steps:
            measured = self.advance()
            logged = self.step == self.steps or self.step % LOG_EVERY == 0
            if not logged and (progress is None or time.monotonic() - shown <= PROGRESS_INTERVAL_SECONDS):
                continue
            shown = time.monotonic()
            self.latest = measured((self.step - first) * self.batches.batch / max(shown - began, 1e-9))
            check_loss(asdict(self.latest), step=self.step, lr=self.config.lr)
            if progress is not None:
                progress(self.latest)
            if logged:
                self.log(self.latest)
            if self.folder is not None and (self.step == self.steps or time.monotonic() - saved > checkpoint_every):
                write_checkpoint(self)
                saved = time.monotonic()
        assert self.latest is not None
        return self.latest
