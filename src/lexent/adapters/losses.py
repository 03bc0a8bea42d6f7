"""What training minimises. Every loss sees scores [n, p] of queries and a pool, and which pairs are relevant."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def infonce(scores: torch.Tensor, positive: torch.Tensor, *, temperature: float) -> torch.Tensor:
    """Each relevant document against all others of the pool that are not relevant to the query."""
    logits = scores / temperature
    rest = torch.logsumexp(logits.masked_fill(positive, -1e9), dim=1, keepdim=True)
    return (torch.logaddexp(logits, rest) - logits)[positive].mean()


def hinge(scores: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor, *, margin: float) -> torch.Tensor:
    """max(0, margin - s+ + s-) over the query's own hard negatives, as in the paper."""
    return _mean(F.relu(margin - _margins(scores, positive)), negative)


def improvement(
    scores: torch.Tensor, base: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor, *, margin: float
) -> torch.Tensor:
    """max(0, margin + base margin - adapted margin): be better than the base retriever, by so much, pair by pair."""
    return _mean(F.relu(margin + _margins(base, positive) - _margins(scores, positive)), negative)


def _margins(scores: torch.Tensor, positive: torch.Tensor) -> torch.Tensor:
    """float[n, p]: the mean score of the query's relevant documents, less each score."""
    mine = (scores * positive).sum(dim=1, keepdim=True) / positive.sum(dim=1, keepdim=True).clamp_min(1)
    return mine - scores


def _mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (values * mask).sum() / mask.sum().clamp_min(1)
