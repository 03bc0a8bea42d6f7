"""A scorer in the manner of Hypencoder: the query makes the weights of a small network that reads documents.

Ours differs from the paper's: the encoder is frozen, the network reads documents projected to few dimensions, and the
base's cosine is added to what it says, so that it starts as the base retriever.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from lexent.adapters.corpus import Ranking, best
from lexent.adapters.losses import infonce
from lexent.adapters.modulation import Rows
from lexent.adapters.schedule import Batch, Learner, products
from lexent.errors import InputError

TEMPERATURE = 0.05
DOCUMENTS_PER_STEP = 16384
"""Documents that are read at a time."""


class Hypencoder(Learner):
    """A network of so many layers for each query: all but the last keep the width, each beside its input."""

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
        return products(queries, pool) + self.said(queries, self.read(pool))

    def read(self, pool: torch.Tensor) -> torch.Tensor:
        """float[p, width]: documents as the queries' networks read them; made once."""
        return F.layer_norm(self.reader(pool), (self.width,))

    def said(self, queries: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """float[n, p]: what each query's network says of each document."""
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
class HypencoderSearch:
    """Runs the query's network over every document."""

    model: Hypencoder
    documents: Rows  # [n, dim]
    read: torch.Tensor  # [n, width]

    @staticmethod
    @torch.no_grad()
    def of(model: Hypencoder, documents: Rows) -> HypencoderSearch:
        """A search over documents that the model has read once."""
        parts = [
            model.read(torch.from_numpy(documents[start : start + DOCUMENTS_PER_STEP]))
            for start in range(0, len(documents), DOCUMENTS_PER_STEP)
        ]
        return HypencoderSearch(model, documents, torch.cat(parts))

    @torch.no_grad()
    def scores(self, vector: Rows) -> Rows:
        """The scores of all documents for a query vector."""
        asked = torch.from_numpy(vector)[None]
        said = torch.cat([self.model.said(asked, part)[0] for part in torch.split(self.read, DOCUMENTS_PER_STEP)])
        found: Rows = self.documents @ vector + said.numpy()
        return found

    def search(self, vector: Rows, k: int) -> Ranking:
        """The k best documents of a query vector."""
        return best(self.scores(vector), k)
