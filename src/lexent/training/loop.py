"""A training run: its state and checkpoint, the log of what it measured, and the loop over batches of pairs."""

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

from lexent.artifact import disk_errors, replace_file
from lexent.encoders import Encoder
from lexent.errors import ArtifactError, InputError, MismatchError
from lexent.training.pairs import PairBatches, Pairs

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from lexent.training.ssr.config import RetrievalConfig
    from lexent.training.uhd.config import WinnerConfig

CHECKPOINT, METRICS = "checkpoint.safetensors", "metrics.jsonl"
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

    def write_checkpoint(self) -> None:
        """Write the whole state to one file of the folder, beside and renamed; no pickle."""
        from safetensors.torch import save

        assert self.folder is not None
        states = self.optimizer.state_dict()["state"].items()
        tensors = {
            **{f"optimizer.{at}.{name}": torch.as_tensor(one) for at, state in states for name, one in state.items()},
            **self.weights_by_name(),
            **{name: getattr(*place) for name, place in self.attributes().items()},
        }
        counters = {name: getattr(self, name) for name in self.counted}
        metadata = {"counters": json.dumps(counters), "identity": json.dumps(self.identity(), sort_keys=True)}
        data = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, metadata)
        replace_file(self.folder / CHECKPOINT, data)

    @torch.no_grad()
    def _read_checkpoint(self, path: Path) -> None:
        """Take up the state of a checkpoint."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "pt") as file:
                metadata: dict[str, str] = file.metadata()
                tensors: dict[str, torch.Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ArtifactError(
                f"the checkpoint {path} is damaged ({error}); begin anew: delete {path.parent}"
            ) from error
        known, own = json.loads(metadata["identity"]), json.loads(json.dumps(self.identity()))
        other = [f"{name} {known.get(name)} (now {own[name]})" for name in sorted(own) if own[name] != known.get(name)]
        if other:
            raise MismatchError(
                f"{path} is of another run: {', '.join(other)}; give the same settings, or delete {path.parent}"
            )
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name in (name for name in tensors if name.startswith("optimizer.")):
            _, place, key = name.split(".", 2)
            state.setdefault(int(place), {})[key] = tensors[name]
        self.optimizer.load_state_dict({"state": state, "param_groups": self.optimizer.state_dict()["param_groups"]})
        for name, tensor in self.weights_by_name().items():
            tensor.copy_(tensors[name])
        for name, (owner, attribute) in self.attributes().items():
            setattr(owner, attribute, tensors[name].to(self.device))
        counters = json.loads(metadata["counters"])
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
        found, path = (self.folder / CHECKPOINT).exists(), self.folder / METRICS
        if found:
            self._read_checkpoint(self.folder / CHECKPOINT)
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


def model_tensors(model: torch.nn.Module, name: str) -> dict[str, torch.Tensor]:
    """The tensors of a model under a prefix; they share its memory."""
    return {f"{name}.{key}": tensor for key, tensor in model.state_dict().items()}


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
                self.write_checkpoint()
                saved = time.monotonic()
        assert self.latest is not None
        return self.latest
