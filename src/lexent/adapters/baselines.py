"""Learned methods beside the adapter, trained by the same schedule: Search-Adaptor, and scorers like Hypencoder's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lexent.adapters.corpus import Scorer
from lexent.adapters.modulation import Rows
from lexent.adapters.schedule import Batch, Learner, infonce, products
from lexent.errors import InputError

RECOVERY, PREDICTION = 0.1, 0.01
"""Weights of the two penalties of Search-Adaptor."""
LOSS_SHARPNESS = 20.0
"""Cosines are multiplied by it in the pairwise loss of Search-Adaptor."""
TEMPERATURE = 0.05
"""Scores of Hypencoder are divided by it in its loss."""
DOCUMENTS_PER_STEP = 8192
"""Documents that are read at a time."""


class SearchAdaptor(Learner):
    """One residual network changes queries and documents alike, e + f(e); it starts as the identity.

    A pairwise ranking loss, a penalty for leaving the original vector (recovery), and one for documents from which the
    query cannot be foretold (prediction).
    """

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
        queries, documents = self.adapt(batch.queries), self.adapt(batch.pool)
        scores = queries @ documents.T
        mine = (scores * positive).sum(dim=1, keepdim=True) / positive.sum(dim=1, keepdim=True)
        pairs = F.softplus(LOSS_SHARPNESS * (scores - mine))
        ranking = (pairs * negative).sum() / negative.sum().clamp_min(1)
        moved = (queries - batch.queries).abs().mean() + (documents - batch.pool).abs().mean()
        of, which = positive.nonzero(as_tuple=True)
        missed = (self.predictor(documents)[which] - queries[of]).abs().mean()
        total: torch.Tensor = ranking + RECOVERY * moved + PREDICTION * missed
        return total


@dataclass(frozen=True, slots=True)
class ResidualSearch(Scorer):
    """Adapted documents, adapted once, and queries adapted when they come."""

    model: SearchAdaptor
    documents: Rows  # [n, dim], adapted

    @staticmethod
    @torch.no_grad()
    def of(model: SearchAdaptor, documents: Rows) -> ResidualSearch:
        """A search over documents that are adapted once."""
        parts = [model.adapt(part) for part in torch.split(torch.from_numpy(documents), DOCUMENTS_PER_STEP)]
        return ResidualSearch(model, np.ascontiguousarray(torch.cat(parts).numpy()))

    @torch.no_grad()
    def scores(self, vector: Rows) -> Rows:
        """The scores of all documents for a query vector."""
        found: Rows = self.documents @ self.model.adapt(torch.from_numpy(vector[None])).numpy()[0]
        return found


class Hypencoder(Learner):
    """The query makes the weights of a small network of so many layers that reads documents.

    All layers but the last keep the width, each beside its input. Ours differs from the paper's: the encoder is frozen,
    the network reads documents projected to few dimensions, and the base's cosine is added to its scores, so that it
    starts as the base retriever.
    """

    def __init__(self, dim: int, *, layers: int = 2, width: int = 32, hidden: int = 64) -> None:
        super().__init__()
        if not 1 <= layers <= 16:
            raise InputError(f"layers is {layers}; allowed: from 1 to 16")
        self.name = f"hypencoder-{layers}"
        self.layers, self.width = layers, width
        self.reader = nn.Linear(dim, width)
        self.first = nn.Linear(dim, hidden)
        self.inner = nn.ModuleList(nn.Linear(hidden, width * width + width) for _ in range(layers - 1))
        self.last = nn.Linear(hidden, width)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def scores(self, queries: torch.Tensor, pool: torch.Tensor, feedback: torch.Tensor) -> torch.Tensor:
        """Cosines plus what the generated scorer adds: float[n_queries, n_pool]."""
        return products(queries, pool) + self.generated_scores(queries, self.read(pool))

    def read(self, pool: torch.Tensor) -> torch.Tensor:
        """float[p, width]: documents as the queries' networks read them; made once."""
        return F.layer_norm(self.reader(pool), (self.width,))

    def generated_scores(self, queries: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """float[n, p]: the score that each query's network gives each document."""
        made = F.relu(self.first(queries))
        rows = read.expand(len(queries), -1, -1)  # [n, p, width]
        for layer in self.inner:
            weights = layer(made)
            matrix = weights[:, : -self.width].reshape(-1, self.width, self.width)
            inner = torch.bmm(rows, matrix) + weights[:, None, -self.width :]
            rows = F.layer_norm(rows + F.relu(inner), (self.width,))
        return torch.bmm(rows, self.last(made)[:, :, None])[:, :, 0]

    def loss(self, batch: Batch) -> torch.Tensor:
        """InfoNCE over the pool of a batch."""
        scores = self.scores(batch.queries, batch.pool, batch.feedback)
        return infonce(scores, batch.positive, temperature=TEMPERATURE)


@dataclass(frozen=True, slots=True)
class HypencoderSearch(Scorer):
    """Runs the query's network over every document."""

    model: Hypencoder
    documents: Rows  # [n, dim]
    read: torch.Tensor  # [n, width]

    @staticmethod
    @torch.no_grad()
    def of(model: Hypencoder, documents: Rows) -> HypencoderSearch:
        """A search over documents that the model has read once."""
        parts = [model.read(part) for part in torch.split(torch.from_numpy(documents), DOCUMENTS_PER_STEP)]
        return HypencoderSearch(model, documents, torch.cat(parts))

    @torch.no_grad()
    def scores(self, vector: Rows) -> Rows:
        """The scores of all documents for a query vector."""
        query = torch.from_numpy(vector)[None]
        added = torch.cat(
            [self.model.generated_scores(query, part)[0] for part in torch.split(self.read, DOCUMENTS_PER_STEP)]
        )
        found: Rows = self.documents @ vector + added.numpy()
        return found
