"""What winner-take-all codes are trained by: a query's own document before the others of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from lexent.training.ssr.model import document_contrast

if TYPE_CHECKING:
    from lexent.training.pairs import PairBatch
    from lexent.training.uhd.config import WinnerConfig


class Scores(NamedTuple):
    """float[n_queries, n_documents] each: by real values, and by which units are active."""

    real: torch.Tensor
    binary: torch.Tensor


def loss_of(scores: Scores, batch: PairBatch, config: WinnerConfig) -> torch.Tensor:
    """The share of each kind of score that the settings ask for."""
    target = torch.from_numpy(batch.target).to(scores.real.device)
    excluded = torch.from_numpy(batch.excluded).to(scores.real.device)
    shares = ((1 - config.binary, scores.real), (config.binary, scores.binary))
    total = scores.real.new_zeros(())
    for share, found in shares:
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
