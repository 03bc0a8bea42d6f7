"""Winner-take-all units as they are trained (UHD), and their loss. What is saved is `sae.SparseAutoencoder`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from lexent.errors import InputError
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.sae.config import SAEConfig, groups_of
from lexent.sae.top_latents import top_latents
from lexent.training.pairs import PairBatch
from lexent.training.reconstruction.model import check_weights
from lexent.training.sparse_products import selected_products, strongest
from lexent.training.ssr.model import document_contrast
from lexent.training.uhd.config import WinnerConfig

MAX_PREACTIVATIONS = 2**28
"""Pre-activations that are held at a time."""


def live_inputs(d_in: int, *, groups: int, mask: float, seed: int) -> NDArray[np.int64]:
    """int64[groups, live]: the inputs that the units of each group read, ascending; the others count as 0."""
    live = max(1, round(d_in * (1 - mask)))
    draw = np.random.default_rng([seed, 7])
    return np.stack([np.sort(draw.permutation(d_in)[:live]) for _ in range(groups)])


class Bucket(nn.Module):
    """z = W x + b over one layer's states; of each state the k largest win, the rest are 0.

    The wide product only selects, some states at a time; the values of winners are computed again with gradient, so no
    dense [n_tokens, d_sae] tensor is kept.
    """

    def __init__(self, d_in: int, config: WinnerConfig, *, seed: int) -> None:
        super().__init__()
        live = live_inputs(d_in, groups=config.groups, mask=config.mask, seed=seed)
        keep = torch.zeros(config.groups, d_in)
        keep.scatter_(1, torch.from_numpy(live), 1.0)
        self.register_buffer("keep", keep, persistent=False)
        group = torch.from_numpy(groups_of(SAEConfig(d_in, config.d_sae, config.k, groups=config.groups)))
        self.register_buffer("group", group, persistent=False)
        self.live = live
        generator = torch.Generator().manual_seed(seed)
        self.unit_rows = config.unit_rows
        rows = torch.randn(config.d_sae, d_in, generator=generator) * keep[group]
        self.W = nn.Parameter(F.normalize(rows, dim=1) if config.unit_rows else rows * math.sqrt(2 / live.shape[1]))
        self.b = nn.Parameter(torch.zeros(config.d_sae))

    def mask(self, rows: torch.Tensor, units: torch.Tensor | None = None) -> torch.Tensor:
        """Rows of units with the inputs that they do not read at 0."""
        keep: torch.Tensor = self.keep[self.group if units is None else self.group[units]]  # type: ignore[index]
        return rows * keep

    @torch.no_grad()
    def begin_at(self, states: torch.Tensor, units: torch.Tensor, *, centre: torch.Tensor) -> None:
        """Units take the directions of states, as seen from the centre: they win for tokens like those."""
        rows = F.normalize(self.mask(states - centre, units), dim=1)
        self.W[units] = rows
        self.b[units] = -(rows @ centre)

    @torch.no_grad()
    def restrain(self) -> None:
        """After a step: masked weights are 0 again, and rows of length 1 where no unit may win by its length."""
        rows = self.mask(self.W)
        self.W.copy_(F.normalize(rows, dim=1) if self.unit_rows else rows)

    @torch.no_grad()
    def boost(self, wins: torch.Tensor, *, step: torch.Tensor) -> None:
        """Units that won more than their share are held back, the others helped: wins int64[d_sae], of a batch."""
        share = wins / wins.float().mean().clamp_min(1e-9)
        self.b.sub_(step * (share - 1).clamp(-1, 2))

    @torch.no_grad()
    def select(self, x: torch.Tensor, k: int) -> torch.Tensor:
        """int64[n, k]: the winners of each state, strongest first."""
        # The weights are converted once, not once a part.
        return strongest(x, self.W.to(x.dtype), self.b.to(x.dtype), k, most=MAX_PREACTIVATIONS)

    def forward(self, x: torch.Tensor, *, k: int, half: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """The winners int64[n, k] of states x [n, d_in] and their values, none below 0. half: select in bfloat16."""
        ids = self.select(x.detach().bfloat16() if half else x.detach(), k)
        return ids, F.relu(selected_products(x, self.W, ids) + self.b[ids])


def max_pooled(ids: torch.Tensor, values: torch.Tensor, owners: torch.Tensor, *, texts: int, size: int) -> torch.Tensor:
    """float[texts, size]: the largest value of each unit over the tokens of each text, by scatter.

    ids, values: [n_tokens, k]. owners: int64[n_tokens], ascending.
    """
    places = (owners[:, None] * size + ids).flatten()
    out = values.new_zeros(texts * size).scatter_reduce(0, places, values.flatten(), "amax", include_self=True)
    return out.view(texts, size)


def capped(pooled: torch.Tensor, cap: int | None) -> torch.Tensor:
    """At most the `cap` largest of each row."""
    if cap is None or cap >= pooled.shape[1]:
        return pooled
    best = top_latents(pooled.detach(), cap)
    return torch.zeros_like(pooled).scatter(1, best, pooled.gather(1, best))


def active(pooled: torch.Tensor) -> torch.Tensor:
    """1 where a unit is active, with the gradient of its value, in units of the mean active value of its row."""
    on = (pooled.detach() > 0).float()
    mean = pooled.detach().sum(dim=1, keepdim=True) / on.sum(dim=1, keepdim=True).clamp_min(1)
    return on + on * (pooled - pooled.detach()) / mean.clamp_min(1e-6)


class Scores(NamedTuple):
    """float[n_queries, n_documents] each: by real values, and by which units are active."""

    real: torch.Tensor
    binary: torch.Tensor


def loss_of(scores: Scores, batch: PairBatch, config: WinnerConfig) -> torch.Tensor:
    """The loss over both kinds of scores, weighted by the settings."""
    target = torch.from_numpy(batch.target).to(scores.real.device)
    excluded = torch.from_numpy(batch.excluded).to(scores.real.device)
    total = scores.real.new_zeros(())
    for share, found in ((1 - config.binary, scores.real), (config.binary, scores.binary)):
        if not share:
            continue
        if config.loss == "hinge":
            total = total + share * hinge(found, target, excluded, margin=config.margin)
        else:
            total = total + share * document_contrast(found / config.temperature, target, excluded)
    return total


def hinge(scores: torch.Tensor, target: torch.Tensor, excluded: torch.Tensor, *, margin: float) -> torch.Tensor:
    """The mean over queries of the sum over other documents of max(0, margin - own score + other score)."""
    own = scores.gather(1, target[:, None])
    behind = torch.relu(margin - own + scores).masked_fill(excluded, 0.0)
    return behind.scatter(1, target[:, None], 0.0).sum(dim=1).mean()


def exported(bucket: Bucket, config: WinnerConfig) -> SparseAutoencoder:
    """The units of a bucket as they are used."""
    check_weights(bucket)
    width = bucket.W.shape[1]
    form: dict[str, Any] = {"tied": True, "architecture": "winners", "groups": config.groups}
    return SparseAutoencoder(
        SAEConfig(width, config.d_sae, config.k, **form),
        encoder=bucket.W.detach().cpu().numpy(),
        decoder=None,
        b_enc=bucket.b.detach().cpu().numpy(),
        b_dec=np.zeros(width, np.float32),
        live=bucket.live,
    )


def joined(units: Sequence[SparseAutoencoder]) -> SparseAutoencoder:
    """Buckets of equal sizes as one: those of unit j are numbered after those of j - 1, and read the next inputs."""
    if len(units) == 1:
        return units[0]
    first = units[0].config
    if any(one.config != first for one in units):
        raise InputError("buckets must be alike: of one width, size, k and precision")
    n = len(units)
    return SparseAutoencoder(
        replace(first, d_in=n * first.d_in, d_sae=n * first.d_sae, buckets=n * first.buckets),
        encoder=np.concatenate([one.stored_rows for one in units]),
        decoder=None,
        b_enc=np.concatenate([one.b_enc for one in units]),
        b_dec=np.concatenate([one.b_dec for one in units]),
        scale=None if first.bits == 32 else np.concatenate([one.scale for one in units if one.scale is not None]),
        live=np.concatenate([one.live for one in units if one.live is not None]),
    )
