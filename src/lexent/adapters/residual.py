"""Search-Adaptor: one residual network changes queries and documents alike, e + f(e).

A pairwise ranking loss, a penalty for leaving the original vector (recovery), and one for documents from which the
query cannot be foretold (prediction).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lexent.adapters.corpus import Ranking, best
from lexent.adapters.modulation import Rows
from lexent.adapters.schedule import Batch, Learner, products

RECOVERY, PREDICTION = 0.1, 0.01
"""Weights of the two penalties."""
LOSS_SHARPNESS = 20.0
"""Cosines are multiplied by it in the pairwise loss."""


class SearchAdaptor(Learner):
    """Starts as the identity."""

    name = "search-adaptor"

    def __init__(self, dim: int, *, hidden: int = 128) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.predictor = nn.Linear(dim, dim)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def adapt(self, rows: torch.Tensor) -> torch.Tensor:
        """Adapted rows of length 1."""
        return F.normalize(rows + self.last(F.relu(self.first(rows))), dim=-1)

    def scores(self, queries: torch.Tensor, pool: torch.Tensor, feedback: torch.Tensor) -> torch.Tensor:
        """Cosines of adapted queries and documents: float[n_queries, n_pool]."""
        return products(self.adapt(queries), self.adapt(pool))

    def loss(self, batch: Batch) -> torch.Tensor:
        """The ranking loss of a batch with its two regularisers."""
        positive, negative = batch.positive, batch.negative
        asked, documents = self.adapt(batch.queries), self.adapt(batch.pool)
        scores = asked @ documents.T
        mine = (scores * positive).sum(dim=1, keepdim=True) / positive.sum(dim=1, keepdim=True)
        pairs = F.softplus(LOSS_SHARPNESS * (scores - mine))
        ranking = (pairs * negative).sum() / negative.sum().clamp_min(1)
        moved = (asked - batch.queries).abs().mean() + (documents - batch.pool).abs().mean()
        of, which = positive.nonzero(as_tuple=True)
        missed = (self.predictor(documents)[which] - asked[of]).abs().mean()
        total: torch.Tensor = ranking + RECOVERY * moved + PREDICTION * missed
        return total


@dataclass(frozen=True, slots=True)
class ResidualSearch:
    """Adapted documents, adapted once, and queries adapted when they come."""

    model: SearchAdaptor
    documents: Rows  # [n, dim], adapted

    @staticmethod
    def of(model: SearchAdaptor, documents: Rows) -> ResidualSearch:
        """A search over documents that are adapted once."""
        return ResidualSearch(model, _adapted(model, documents))

    def scores(self, vector: Rows) -> Rows:
        """The scores of all documents for a query vector."""
        found: Rows = self.documents @ _adapted(self.model, vector[None])[0]
        return found

    def search(self, vector: Rows, k: int) -> Ranking:
        """The k best documents of a query vector."""
        return best(self.scores(vector), k)


@torch.no_grad()
def _adapted(model: SearchAdaptor, rows: Rows) -> Rows:
    parts = [model.adapt(torch.from_numpy(rows[start : start + 8192])) for start in range(0, len(rows), 8192)]
    return np.ascontiguousarray(torch.cat(parts).numpy())
