"""An adapter while it is trained: the parts of `Adapter` in torch, for a batch of queries and a pool of documents."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from lexent.adapters.adapter import DOCUMENTS_PER_STEP, SIDES, Adapter, AdapterInfo
from lexent.adapters.config import AdapterConfig, TrainSettings
from lexent.adapters.examples import Examples
from lexent.adapters.modulation import Rows
from lexent.adapters.schedule import Batch, Learner, Progress, Schedule, follow, infonce, products

CORPUS_SAMPLE = 256
"""Documents that stand for the whole corpus in a step, where all of them modulate a query."""


class Network(Learner):
    """Starts so that its scores are the base retriever's (the base in principal directions, where it is narrower)."""

    def __init__(self, config: AdapterConfig, settings: TrainSettings, projector: Rows) -> None:
        super().__init__()
        self.config, self.settings = config, settings
        self.projector = nn.Parameter(torch.from_numpy(projector.copy()))
        self.register_buffer("first", torch.from_numpy(projector.copy()))
        self.query_side, self.document_side = _Side(config), _Side(config)

    def project(self, rows: torch.Tensor) -> torch.Tensor:
        """Projected rows of length 1."""
        return F.normalize(rows @ self.projector.T, dim=-1)

    def scores(self, queries: torch.Tensor, pool: torch.Tensor, feedback: torch.Tensor) -> torch.Tensor:
        """Scores of queries and a pool of documents: float[n_queries, n_pool]."""
        projected, documents = self.project(queries), self.project(pool)
        vectors = self._modulated(projected, feedback)
        if self.config.layer_norm:
            vectors = vectors - vectors.mean(dim=1, keepdim=True)
        vectors = F.normalize(vectors, dim=1)
        compared = self._diagonal if self.config.mode == "diag" else self._modulated_pool
        return compared(self.query_side(projected), vectors, documents)

    def loss(self, batch: Batch) -> torch.Tensor:
        """The loss of a batch by the settings, with the anchor of the projector."""
        scores, settings = self.scores(batch.queries, batch.pool, batch.feedback), self.settings
        if settings.loss == "infonce":
            found = infonce(scores, batch.positive, temperature=settings.temperature)
        else:  # the paper's hinge, over a query's own hard negatives; or to be better than the base by the margin
            wanted = torch.tensor(settings.gap)
            if settings.loss == "improvement":
                wanted = wanted + _margins(batch.queries @ batch.pool.T, batch.positive)
            lost = F.relu(wanted - _margins(scores, batch.positive))
            found = (lost * batch.negative).sum() / batch.negative.sum().clamp_min(1)
        return found + settings.anchor * ((self.projector - self.get_buffer("first")) ** 2).sum()

    def without_decay(self) -> list[nn.Parameter]:
        """Parameters that weight decay leaves alone."""
        return [self.projector]  # decay would pull it to 0, and it starts as the identity; `anchor` pulls it there

    def feedback(self, candidates: NDArray[np.int64], random: np.random.Generator, total: int) -> NDArray[np.int64]:
        """The documents that modulate each query, by number."""
        if self.config.feedback == "top":
            return candidates[:, : self.config.feedback_depth]
        if self.config.feedback == "corpus":
            return random.choice(total, min(CORPUS_SAMPLE, total), replace=False)[None]
        return np.empty((1, 0), np.int64)

    def _modulated(self, queries: torch.Tensor, feedback: torch.Tensor) -> torch.Tensor:
        """The mean modulation of the feedback documents, put upon the queries."""
        if self.config.feedback == "none" or not feedback.shape[1]:
            return queries
        m, projected = self.config.width, self.project(feedback)
        if self.config.mode == "full":  # linear in the hidden layer, whose mean is far smaller than that of matrices
            mean: torch.Tensor = self.document_side.last(self.document_side.hidden(projected).mean(dim=1))
            matrix = mean[:, :-m].reshape(-1, m, m).expand(len(queries), -1, -1)
            return queries + torch.einsum("nm,nom->no", queries, matrix) + mean[:, -m:]
        outputs: torch.Tensor = self.document_side(projected)  # [n, r, size]
        bias = outputs[..., -m:].mean(dim=1)
        if self.config.mode == "diag":
            return queries * (1 + torch.tanh(outputs[..., :m]).mean(dim=1)) + bias
        left, right = self._halves(outputs)
        inner = torch.einsum("nm,nfmr->nfr", queries, right.expand(len(queries), -1, -1, -1))
        moved = torch.einsum("nfr,nfmr->nm", inner, left.expand(len(queries), -1, -1, -1)) / left.shape[1]
        return queries + moved + bias

    def _diagonal(self, outputs: torch.Tensor, vectors: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
        scale, bias = outputs.chunk(2, dim=1)
        scale = 1 + torch.tanh(scale)
        product = products(scale * vectors, documents) + (bias * vectors).sum(dim=1, keepdim=True)
        length = products(scale**2, documents**2) + 2 * products(scale * bias, documents)
        length = length + (bias**2).sum(dim=1, keepdim=True)
        if self.config.layer_norm:
            total = products(scale, documents) + bias.sum(dim=1, keepdim=True)
            length = length - total**2 / self.config.width
        return product * torch.rsqrt(length.clamp_min(1e-6))

    def _modulated_pool(self, outputs: torch.Tensor, vectors: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
        m = self.config.width
        own = documents.expand(len(vectors), -1, -1)  # [n, p, m]
        if self.config.mode == "lowrank":
            left, right = self._halves(outputs)  # [n, m, r]
            moved = torch.einsum("npr,nmr->npm", torch.einsum("npm,nmr->npr", own, right), left)
        else:
            moved = torch.einsum("npm,nom->npo", own, outputs[:, :-m].reshape(-1, m, m))
        rows = own + moved + outputs[:, None, -m:]
        if self.config.layer_norm:
            rows = rows - rows.mean(dim=2, keepdim=True)
        return torch.einsum("nm,npm->np", vectors, F.normalize(rows, dim=2))

    def _halves(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        m, r = self.config.width, self.config.rank
        left, right = outputs[..., : m * r], outputs[..., m * r : -m]
        return left.reshape(*left.shape[:-1], m, r), right.reshape(*right.shape[:-1], m, r)

    def tensors(self, corpus: Rows) -> dict[str, Rows]:
        """What `Adapter` holds. corpus: float32[n, dim], whose mean modulation is kept where it is used."""
        found: dict[str, torch.Tensor] = {"projector": self.projector}
        for side, network in zip(SIDES, (self.query_side, self.document_side), strict=True):
            found |= {f"{side}.{name}": tensor for name, tensor in network.named_tensors().items()}
        made = {name: tensor.detach().cpu().float().numpy().copy() for name, tensor in found.items()}
        if self.config.feedback == "corpus":
            made |= self._corpus(corpus)
        return made

    @torch.no_grad()
    def _corpus(self, corpus: Rows) -> dict[str, Rows]:
        m, side = self.config.width, self.document_side
        total = torch.zeros(m if self.config.mode == "diag" else (m, m))
        hidden = torch.zeros(self.config.hidden)
        step = 64 if self.config.mode == "lowrank" else DOCUMENTS_PER_STEP
        for start in range(0, len(corpus), step):
            inner = side.hidden(self.project(torch.from_numpy(corpus[start : start + step])))
            hidden = hidden + inner.sum(dim=0)
            if self.config.mode == "diag":
                total = total + torch.tanh(side.last(inner)[:, :m]).sum(dim=0)
            elif self.config.mode == "lowrank":
                left, right = self._halves(side.last(inner))
                total = total + torch.einsum("nmr,nor->mo", left, right)
        mean = side.last(hidden / len(corpus))  # what is linear in the hidden layer: the bias, and a full matrix
        matrix = mean[:-m].reshape(m, m) if self.config.mode == "full" else total / len(corpus)
        name, first = ("corpus.scale", torch.ones(m)) if self.config.mode == "diag" else ("corpus.matrix", torch.eye(m))
        return {name: (first + matrix).numpy(), "corpus.bias": mean[-m:].numpy().copy()}


class _Side(nn.Module):
    """Two layers: projected vectors to the numbers of a modulation, all 0 at the start where that is the identity."""

    def __init__(self, config: AdapterConfig) -> None:
        super().__init__()
        self.first = nn.Linear(config.width, config.hidden)
        self.norm = nn.LayerNorm(config.hidden)
        self.last = nn.Linear(config.hidden, config.outputs)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)
        if config.mode == "lowrank":  # one half must not be 0, or neither would ever move
            right = slice(config.width * config.rank, 2 * config.width * config.rank)
            with torch.no_grad():
                self.last.bias[right].normal_(std=config.width**-0.5)

    def hidden(self, rows: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.first(rows)))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.last(self.hidden(rows))
        return made

    def named_tensors(self) -> dict[str, torch.Tensor]:
        """By the names that `Adapter` has for them."""
        layers = (("w1", "b1", self.first), ("gain", "shift", self.norm), ("w2", "b2", self.last))
        return {name: part for weight, bias, one in layers for name, part in ((weight, one.weight), (bias, one.bias))}


def _margins(scores: torch.Tensor, positive: torch.Tensor) -> torch.Tensor:
    """float[n, p]: the mean score of the query's relevant documents, less each score."""
    mine = (scores * positive).sum(dim=1, keepdim=True) / positive.sum(dim=1, keepdim=True).clamp_min(1)
    return mine - scores


@dataclass(frozen=True, slots=True)
class Trained:
    """An adapter, and what was measured on the way."""

    adapter: Adapter
    schedule: Schedule[Network]


def train(
    examples: Examples,
    config: AdapterConfig,
    settings: TrainSettings,
    *,
    info: AdapterInfo,
    progress: Progress | None = None,
) -> Trained:
    """Learn from train queries. Where held-out ones do not gain for certain, the adapter is the identity: the base."""
    projector = first_projector(config, examples.documents)
    found = follow(lambda: Network(config, settings, projector), examples, settings, progress=progress)
    network = found.learner
    if found.kept_base:  # also where the start is narrower than the encoder: the base is the base
        config = AdapterConfig(config.dim, config.dim, feedback="none", hidden=1)
        network = Network(config, settings, np.eye(config.dim, dtype=np.float32))
    info = replace(info, kept_base=found.kept_base)
    return Trained(Adapter(config, network.tensors(examples.documents), info), found)


def first_projector(config: AdapterConfig, documents: Rows) -> Rows:
    """float32[width, dim]: the identity, or the directions along which the documents spread most."""
    if config.start == "identity":
        return np.eye(config.dim, dtype=np.float32)
    _, vectors = np.linalg.eigh(documents.T.astype(np.float64) @ documents)  # not centred: rows stay on the sphere
    return np.ascontiguousarray(vectors[:, ::-1][:, : config.width].T, np.float32)
