"""Training a sparse autoencoder on an encoder's states: one loop that can be read in a sitting."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch

from lexent import arguments
from lexent.errors import InputError
from lexent.sae.calibration import calibrated
from lexent.training.loop import METRICS, PROGRESS_INTERVAL_SECONDS, TrainingRun, check_loss, model_tensors
from lexent.training.reconstruction.model import MODELS, Loss
from lexent.training.settings import k_between
from lexent.training.stream import text_digest
from lexent.types import Level

if TYPE_CHECKING:
    from lexent.sae.autoencoder import SparseAutoencoder
    from lexent.training.stream import StateStream

__all__ = ["METRICS", "Architecture", "Progress", "TrainConfig", "Trainer", "schedule"]

Architecture = Literal["topk", "batchtopk"]


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How a lexicon is trained. The defaults are good for token states a few hundred wide."""

    d_sae: int = 32_768
    """Number of latents; 6,144 for pooled states."""
    k: int = 16
    """Latents a state may use; 32 for pooled states."""
    architecture: Architecture = "topk"
    """How many latents a state gets: topk gives each k, batchtopk k on average; batchtopk is best for pooled states."""
    k_from: int | None = None
    """Latents a state may use at the start; over the first half of the run it becomes k. None: k all along."""
    nested_k: int | None = None
    """Rebuild each state from its strongest so many latents too, so that codes can be cut to them at use. topk only."""
    unit_states: bool = True
    """Code the direction of each state, and multiply its activations by its norm."""
    tied: bool = True
    """One matrix for both directions: half the size, and as good for search."""
    batch: int = 4096
    """States a step."""
    lr: float = 1e-3
    """Peak learning rate: 5 % linear warm-up, then a cosine to 0."""
    aux_weight: float = 1 / 32
    """Weight of the auxiliary loss that revives dead latents."""
    k_aux: int = 256
    """Dead latents that may explain the residual of a state."""
    dead_after: int = 1_000_000
    """States without firing after which a latent counts as dead."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    seed: int = 0
    """Seed of the first weights and of the order of states."""

    def __post_init__(self) -> None:
        arguments.fields_of(self)
        if not 1 <= self.k <= self.d_sae:
            raise InputError(f"k is {self.k}; allowed: from 1 to the number of latents, {self.d_sae}")
        if self.batch < 2 or self.lr <= 0:
            raise InputError(f"batch is {self.batch} and lr {self.lr}; allowed: a batch of 2 or more, lr above 0")
        arguments.choice("architecture", self.architecture, get_args(Architecture))
        if self.k_from is not None and not 1 <= self.k_from <= self.d_sae:
            raise InputError(f"k_from is {self.k_from}; allowed: from 1 to the number of latents, {self.d_sae}")
        if self.nested_k is not None and not 1 <= self.nested_k <= self.k:
            raise InputError(f"nested_k is {self.nested_k}; allowed: from 1 to k, {self.k}")
        if self.nested_k is not None and self.architecture != "topk":
            raise InputError(f"nested_k is of topk, and the architecture is {self.architecture}; leave it out")
        if self.k_aux < 1 or self.seed < 0:
            raise InputError(f"k_aux is {self.k_aux} and seed {self.seed}; allowed: k_aux from 1, seed from 0")

    @staticmethod
    def for_level(level: Level, **settings: Any) -> TrainConfig:
        """The defaults for states of a level, with other settings where given."""
        arguments.choice("level", level, get_args(Level))
        defaults = POOLED if level == "pooled" else {}
        return TrainConfig(**{**defaults, **settings})

    def k_at(self, share: float) -> int:
        """Latents a state may use at that share of the run."""
        return k_between(self.k_from, self.k, share, end=0.5)


POOLED: dict[str, Any] = {"architecture": "batchtopk", "d_sae": 6144, "k": 32, "tied": False, "dead_after": 300_000}
"""What differs for pooled states: there are few, one a text, so fewer latents, with a matrix for each direction."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is; handed to the caller's progress function a few times a second at most."""

    done: float  # share of the run, 0 to 1
    step: int
    states: int
    fvu: float
    dead: float
    active: float
    rate: float  # states a second since the run began or went on

    def __str__(self) -> str:
        return f"FVU {self.fvu:.3f}, dead {self.dead:.1%}, {self.rate:,.0f} states/s"


class Trainer(TrainingRun[Progress]):
    """A run over the states of a stream of texts."""

    counted = ("next_block", "step", "states", "scale", "mean_length")

    def __init__(
        self, stream: StateStream, config: TrainConfig, *, folder: Path | None = None, held_out: Sequence[str] = ()
    ) -> None:
        """folder: where checkpoints and metrics go; an existing checkpoint of the same run is continued.

        held_out: texts that the stream does not have, on which batchtopk sets its thresholds.
        """
        if config.architecture == "batchtopk" and not held_out:
            raise InputError("batchtopk sets its thresholds on held-out texts, and there are none; give more text")
        super().__init__(Progress, folder)
        self.stream, self.config, self.held_out = stream, config, held_out
        model = MODELS[config.architecture]
        self.model = model(stream.width, config.d_sae, tied=config.tied, seed=config.seed).to(self.device)
        fused = self.device.type == "cuda"
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.lr, eps=1e-8, fused=fused)
        self.next_block, self.states = 0, 0
        self.scale = 0.0  # set from the first block: states times this have a mean norm of 1; 0 before
        self.mean_length = 0.0  # of the first block's token states, where they are divided by their own
        self.last_fired = torch.zeros(config.d_sae, dtype=torch.long, device=self.device)
        self.dead = torch.empty(0, dtype=torch.long, device=self.device)
        self.rest = torch.empty(0, stream.width, device=self.device)  # states of a block that filled no batch
        self.resume()

    def identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued."""
        stream = self.stream
        facts: dict[str, Any] = {"texts": len(stream.texts), "passes": stream.passes, "block_texts": stream.block_texts}
        facts |= {"order": stream.seed, "content": stream.digest}
        weights = stream.weights
        facts["weights"] = None if weights is None else hashlib.sha256(weights.tobytes()).hexdigest()[:16]
        facts["held_out"] = text_digest(self.held_out) if self.held_out else None
        return {**asdict(self.config), **facts, "encoder": stream.encoder.fingerprint, "level": stream.level}

    def weights_by_name(self) -> dict[str, torch.Tensor]:
        """The tensors that are trained."""
        return model_tensors(self.model, "model")

    def attributes(self) -> dict[str, tuple[object, str]]:
        """When each latent fired last, the dead ones, and the states not yet trained on."""
        return {name: (self, name) for name in ("last_fired", "dead", "rest")}

    def run(
        self,
        *,
        checkpoint_every: float = 120.0,
        bits: Literal[8, 32] = 32,
        progress: Callable[[Progress], None] | None = None,
    ) -> SparseAutoencoder:
        """Train to the end.

        Checkpoints are written after the last block, and between others at most one in checkpoint_every seconds.
        bits: precision of the result's matrices.
        """
        began, first, saved, shown = time.monotonic(), self.states, time.monotonic(), 0.0
        for number, rows in self.stream.from_block(self.next_block):
            rows = torch.cat([self.rest, self._prepared(rows) * self.scale])
            full = len(rows) // self.config.batch * self.config.batch
            for start in range(0, full, self.config.batch):
                share = (number + start / max(full, 1)) / self.stream.blocks
                loss = self._step(rows[start : start + self.config.batch], share)
                if progress is not None and time.monotonic() - shown > PROGRESS_INTERVAL_SECONDS:
                    shown = time.monotonic()
                    progress(self._progress(share, loss, (self.states - first) / max(shown - began, 1e-9)))
            self.rest = rows[full:].clone()
            self.next_block = number + 1
            if not full:
                continue
            rate = (self.states - first) / max(time.monotonic() - began, 1e-9)
            self.latest = self._progress(self.next_block / self.stream.blocks, loss, rate)
            self.log(self.latest)
            if self.folder is not None and time.monotonic() - saved > checkpoint_every:
                self.write_checkpoint()
                saved = time.monotonic()
        if self.step == 0:
            raise InputError(
                f"the texts have {len(self.rest)} states, fewer than one batch of {self.config.batch}; "
                f"give more text or a smaller --batch"
            )
        if self.folder is not None:  # so that a kill while the latents are named costs no training
            self.write_checkpoint()
        if progress is not None and self.latest is not None:
            progress(self.latest)
        return self.result(bits=bits)

    def untrained(self) -> SparseAutoencoder:
        """The autoencoder as training starts: random directions, with scale and bias set from the first block."""
        self._prepared(self.stream.block(0))
        return self.result()

    def _prepared(self, rows: torch.Tensor) -> torch.Tensor:
        """States as the autoencoder reads them, before they are scaled. The first ones set the scale."""
        rows = rows.to(self.device).float()
        if self.config.unit_states:
            if self.stream.level == "tokens":  # the length of a pooled state says nothing: cosine forgets it
                self.mean_length = self.mean_length or float(rows.norm(dim=1).mean())
            rows = torch.nn.functional.normalize(rows, dim=1)
        if self.scale == 0.0:  # scale to a mean norm of 1, and start the bias at the mean
            self.scale = float(1 / rows.norm(dim=1).mean().clamp_min(1e-12))
            with torch.no_grad():
                self.model.b_dec.copy_(rows.mean(dim=0) * self.scale)
        return rows

    def _step(self, batch: torch.Tensor, share: float) -> Loss:
        config = self.config
        for group in self.optimizer.param_groups:
            group["lr"] = config.lr * schedule(share)
        loss = self.model.loss(
            batch,
            k=config.k_at(share),
            nested_k=config.nested_k,
            dead=self.dead,
            k_aux=config.k_aux,
            aux_weight=config.aux_weight,
            autocast=self.autocast,
        )
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss.total)
        self.model.remove_parallel_gradient()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        self.optimizer.step()
        self.model.normalise_decoder()  # after the step: Adam moves the rows off the sphere again
        self.step += 1
        self.states += len(batch)
        now = loss.fired.long() * self.states  # selected but not above 0 is not firing
        self.last_fired.scatter_reduce_(0, loss.ids.flatten(), now.flatten(), "amax")
        if self.step % 100 == 0:  # finding the dead waits for the GPU, so not at every step
            self.dead = torch.nonzero(self.last_fired < self.states - config.dead_after).flatten()
        return loss

    def _progress(self, share: float, loss: Loss, rate: float) -> Progress:
        check_loss({"the loss": float(loss.total.detach())}, step=self.step, lr=self.config.lr)
        dead = len(self.dead) / self.config.d_sae
        return Progress(share, self.step, self.states, float(loss.fvu), dead, float(loss.active), rate)

    @torch.no_grad()
    def result(self, *, bits: Literal[8, 32] = 32) -> SparseAutoencoder:
        """The autoencoder in the units of the encoder: the input scale is folded into the biases.

        After batchtopk its thresholds are set on the held-out texts, with the weights as they will be stored.
        """
        config = self.config
        sae = self.model.exported(
            k=config.k, scale=self.scale, unit_states=config.unit_states, mean_length=self.mean_length
        )
        sae = sae.quantised() if bits == 8 else sae
        if config.architecture != "batchtopk":
            return sae
        return calibrated(sae, self.stream.states(self.held_out).to(self.device))


def schedule(share: float, *, warm_up: float = 0.05) -> float:
    """The learning rate's share of its peak: linear warm-up, then a cosine to 0, over a run from 0 to 1."""
    if share < warm_up:
        return max(share, 1e-4) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (share - warm_up) / (1 - warm_up)))
