"""Documents under an adapter: searched whole, or the base retriever's best ranked again."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import AdaptedQuery, Adapter
from lexent.adapters.modulation import Full, LowRank, Rows
from lexent.errors import InputError


@dataclass(frozen=True, slots=True)
class Ranking:
    """Documents from best to worst; lower positions first among equals."""

    positions: NDArray[np.int64]  # [k]
    scores: Rows  # [k]


class Scorer:
    """Scores all of its documents for one query vector of the encoder."""

    __slots__ = ()

    @abstractmethod
    def scores(self, vector: Rows) -> Rows:
        """float32[n]: every document's score for a unit query [dim] of the encoder."""

    def search(self, vector: Rows, k: int) -> Ranking:
        """The k best of all documents."""
        return best(self.scores(vector), k)


class AdaptedCorpus(Scorer):
    """The encoder's unit vectors, which choose feedback documents, and the projected ones, which are scored."""

    def __init__(self, adapter: Adapter, documents: Rows) -> None:
        """documents: float32[n, dim], unit rows of the encoder."""
        if not len(documents):
            raise InputError("no documents were given; an adapter searches one or more")
        self.adapter = adapter
        self.base = np.ascontiguousarray(documents, np.float32)
        # A projector that changes nothing needs no second matrix of documents.
        unchanged = np.array_equal(adapter.tensors["projector"], np.eye(adapter.config.dim, dtype=np.float32))
        self.projected = self.base if unchanged else adapter.project(self.base)
        self._squared = (
            np.einsum("nm,nm->n", self.projected, self.projected) if adapter.config.mode == "lowrank" else 0.0
        )

    def __len__(self) -> int:
        return len(self.base)

    def query(self, vector: Rows) -> AdaptedQuery:
        """A unit query [dim] of the encoder, modulated by its feedback documents."""
        positions = np.empty(0, np.int64)
        if self.adapter.config.feedback == "top":
            depth = self.adapter.config.feedback_depth
            positions = best(self.base @ np.asarray(vector, np.float32), depth).positions
        return self.adapter.query(vector, self.projected[positions])

    def scores(self, vector: Rows) -> Rows:
        """float32[n]: every document's score for a unit query [dim] of the encoder."""
        return self.scores_of(self.query(vector))

    def scores_of(self, query: AdaptedQuery) -> Rows:
        """float32[n]: every document's score, without modulating a single one where the form allows."""
        by = query.upon
        if isinstance(by, Full):
            return self.adapter.score(query, self.projected)
        vector = self.adapter.compared(query)
        vector = vector / np.float32(float(np.linalg.norm(vector)) or 1.0)
        if isinstance(by, LowRank):
            return self._low_rank(by, vector)
        from lexent.adapters.kernels import diagonal_scores

        out = np.empty(len(self), np.float32)
        diagonal_scores(self.projected, by.scale, by.bias, vector, self.adapter.config.layer_norm, out)
        return out

    def rerank(self, vector: Rows, k: int) -> Ranking:
        """The k best documents of the base retriever, in the adapter's order."""
        found = best(self.base @ np.asarray(vector, np.float32), k).positions
        scores = self.adapter.score(self.query(vector), self.projected[found])
        order = np.lexsort((found, -scores))
        return Ranking(found[order], scores[order])

    def _low_rank(self, by: LowRank, vector: Rows) -> Rows:
        """|d + U z + b|^2 with z = V' d, from the products of d with a few columns."""
        assert len(by.left) == 1
        left, right, bias, m = by.left[0], by.right[0], by.bias, self.adapter.config.width
        columns = np.column_stack([right, left, vector + right @ (left.T @ vector), bias, np.ones(m, np.float32)])
        made = self.projected @ columns.astype(np.float32)
        r = left.shape[1]
        z, along, product, biased, total = made[:, :r], made[:, r : 2 * r], made[:, -3], made[:, -2], made[:, -1]
        length = self._squared + bias @ bias + 2 * biased
        length = (
            length + 2 * np.einsum("nr,nr->n", z, along + bias @ left) + np.einsum("nr,nr->n", z @ (left.T @ left), z)
        )
        if self.adapter.config.layer_norm:
            length = length - (total + z @ left.sum(axis=0) + bias.sum()) ** 2 / m
        found: Rows = (product + bias @ vector) / np.sqrt(np.maximum(length, 1e-12))
        return found.astype(np.float32)


def best(scores: Rows, k: int) -> Ranking:
    """The k highest, lower positions first among equals."""
    k = min(k, len(scores))
    kept = np.argpartition(-scores, k - 1)[:k] if k < len(scores) else np.arange(len(scores))
    order = kept[np.lexsort((kept, -scores[kept]))]
    return Ranking(order.astype(np.int64), scores[order])
