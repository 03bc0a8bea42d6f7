"""Exact MaxSim over the encoder's own token states: what codes of tokens are held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexent.encoders.encoder import encode, finite_batches
from lexent.evaluation import cache
from lexent.evaluation.baselines import SCORES_PER_CHUNK
from lexent.evaluation.collections import Collection
from lexent.evaluation.pooling import unit
from lexent.evaluation.progress import Progress, counter
from lexent.evaluation.runs import Run, from_top
from lexent.types import States

if TYPE_CHECKING:
    from lexent.encoders import Encoder

CACHED_DEPTH = 1001
"""Documents that are kept of each query."""


@dataclass(frozen=True, slots=True)
class DenseMaxSim:
    """Every token of a query counts by the highest cosine that a token of the document has with it."""

    encoder: Encoder
    name: str = "dense-maxsim"

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The documents that this system finds for each query, with their scores."""
        texts, asked = collection.texts, list(collection.queries.values())
        kept = max(CACHED_DEPTH, depth + 1)
        parts = {
            "what": "dense maxsim",
            "encoder": self.encoder.fingerprint,
            "device": str(getattr(self.encoder, "device", "")),
            "depth": kept,
            "queries": len(asked),
        }
        held = cache.arrays(
            cache.key(parts, [*asked, *texts]),
            frozenset(["positions", "scores"]),
            lambda: self._best(texts, asked, depth=kept, progress=progress),
        )
        return from_top(collection, held["positions"], scores=held["scores"], depth=depth)

    def _best(self, texts: list[str], asked: list[str], *, depth: int, progress: Progress | None) -> cache.Arrays:
        queries = encode(self.encoder, asked, kind="query")
        advance = counter(progress, self.name, kind="document", total=len(texts))
        positions = np.empty((len(asked), 0), np.int64)
        scores = np.empty((len(asked), 0), np.float32)
        for places, states in finite_batches(self.encoder, texts, kind="document"):
            # Only the best so far are held beside a batch.
            scores = np.concatenate([scores, maxsim(queries, states)], axis=1)
            positions = np.concatenate([positions, np.broadcast_to(places, (len(asked), len(places)))], axis=1)
            order = np.lexsort((positions, -scores), axis=1)[:, :depth]
            positions, scores = np.take_along_axis(positions, order, axis=1), np.take_along_axis(scores, order, axis=1)
            advance(len(places))
        return {"positions": positions, "scores": scores}


def maxsim(queries: States, documents: States) -> NDArray[np.float32]:
    """float32[n_queries, n_documents]: the sum over a query's states of the highest cosine in each document."""
    ours, theirs = unit(queries.numpy()), unit(documents.numpy())
    full = np.flatnonzero(np.diff(documents.offsets) > 0)
    owners = np.repeat(np.arange(queries.n_texts), np.diff(queries.offsets))
    found = np.zeros((queries.n_texts, documents.n_texts), np.float32)
    if not len(full):
        return found
    step = max(1, SCORES_PER_CHUNK // len(theirs))
    for start in range(0, len(ours), step):
        best = _highest(ours[start : start + step] @ theirs.T, documents.offsets[full])
        part = np.zeros((queries.n_texts, len(full)), np.float32)
        np.add.at(part, owners[start : start + step], best)
        found[:, full] += part
    return found


def _highest(products: NDArray[np.float32], starts: NDArray[np.int64]) -> NDArray[Any]:
    """The highest of each row within the columns of each document, none of which is empty."""
    return np.maximum.reduceat(products, starts, axis=1)
