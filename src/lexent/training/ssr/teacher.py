"""What the encoder finds by itself, as a teacher of codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional as F

if TYPE_CHECKING:
    from lexent.training.pair_states import TextStates

WHOLE_TEXT_WEIGHT = 0.5
"""What the cosine of whole texts counts beside the mean over a query's tokens of their best cosine."""


@torch.no_grad()
def taught(queries: TextStates, documents: TextStates, weights: torch.Tensor) -> torch.Tensor:
    """float[n_queries, n_documents]: MaxSim between the encoder's own states, and cosines of its vectors of texts.

    weights: float[n_rows] of the tokens of queries; those of one query are brought to a sum of 1.
    """
    device = queries.rows.device
    ours, theirs = (torch.from_numpy(side.counts).to(device) for side in (queries, documents))
    rows = F.normalize(queries.rows, dim=1) @ F.normalize(documents.rows, dim=1).t()
    owner = torch.arange(len(theirs), device=device).repeat_interleave(theirs)
    best = rows.new_full((len(rows), len(theirs)), -1.0)
    best = best.scatter_reduce(1, owner.expand(len(rows), -1), rows, "amax")
    query = torch.arange(len(ours), device=device).repeat_interleave(ours)
    total = weights.new_zeros(len(ours)).index_add(0, query, weights).clamp_min(1e-6)
    found = best.new_zeros(len(ours), len(theirs)).index_add(0, query, best * (weights / total[query])[:, None])
    assert queries.pooled is not None
    assert documents.pooled is not None
    return found + WHOLE_TEXT_WEIGHT * F.normalize(queries.pooled, dim=1) @ F.normalize(documents.pooled, dim=1).t()


def divergence(scores: torch.Tensor, wanted: torch.Tensor, excluded: torch.Tensor) -> torch.Tensor:
    """How far the chances of the documents [n, n_documents] are from the wanted ones (Kullback-Leibler), on average."""
    ours, theirs = (F.log_softmax(one.masked_fill(excluded, -1e4), dim=1) for one in (scores, wanted))
    return F.kl_div(ours, theirs, log_target=True, reduction="batchmean")
