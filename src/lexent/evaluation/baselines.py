"""What a recipe is compared with: dense cosine and MaxSim of the encoder's own states, and lexical BM25."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.encoder import AdaptedEncoder
from lexent.encoders import Encoder
from lexent.encoders.encoder import encode, finite_batches
from lexent.evaluation import cache
from lexent.evaluation.collections import Collection
from lexent.evaluation.lexical import WordIndex, words
from lexent.evaluation.pooling import unit
from lexent.evaluation.progress import Progress, counter
from lexent.evaluation.runs import Run, from_top
from lexent.types import Kind, States

SCORES_PER_CHUNK = 1 << 25
"""How many scores are held at a time."""
CACHED_DEPTH = 1001
"""Documents of each query that are kept of MaxSim, which is slow."""


def dense(collection: Collection, encoder: Encoder, *, k: int, progress: Progress | None = None) -> Run:
    """The k documents of highest cosine for each query, exactly, from the encoder's pooled vectors."""
    documents, queries = pooled_sides(encoder, collection, progress=progress)
    depth = min(k + 1, len(documents))
    positions = np.empty((len(queries), depth), np.int64)
    scores = np.empty((len(queries), depth), np.float32)
    step = max(1, SCORES_PER_CHUNK // len(documents))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        positions[part], scores[part] = _best(queries[part] @ documents.T, depth)
    return from_top(collection, positions, scores=scores, depth=k)


def bm25(collection: Collection, *, k: int) -> Run:
    """The k best documents for each query by lexical BM25: bm25s with its defaults and English stop words."""
    found, scores = WordIndex.of(collection.texts).top(words(collection.query_texts), k + 1)
    return from_top(collection, found, scores=scores, depth=k)


def pooled(
    encoder: Encoder, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
) -> NDArray[np.float32]:
    """float32[n_texts, d_in]: pooled vectors of length 1, from the cache where they are."""
    return unit(pooled_states(encoder, texts, kind=kind, progress=progress))


def pooled_sides(
    encoder: Encoder, collection: Collection, *, progress: Progress | None = None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Pooled vectors of length 1 of a collection's documents and of its queries, from the cache where they are."""
    documents = pooled(encoder, collection.texts, kind="document", progress=progress)
    return documents, pooled(encoder, collection.query_texts, kind="query", progress=progress)


def pooled_states(
    encoder: Encoder, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
) -> NDArray[np.float32]:
    """float32[n_texts, d_in]: pooled vectors as the encoder gives them and a lexicon reads them, from the cache."""
    if isinstance(encoder, AdaptedEncoder):  # what its base gave is likely there already
        return encoder.adapt(pooled_states(encoder.base, texts, kind=kind, progress=progress), kind=kind)

    def make() -> NDArray[np.float32]:
        advance = counter(progress, "dense", kind=kind, total=len(texts))
        rows = np.empty((len(texts), encoder.dim), np.float32)
        for positions, states in finite_batches(encoder, texts, kind=kind, level="pooled"):
            rows[positions] = states.numpy()
            advance(len(positions))
        return rows

    return cache.matrix(cache.key_for(encoder, texts, what="pooled", kind=kind), make)


def _best(scores: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k highest of each row, from high to low."""
    kept = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(scores, kept, axis=1)
    order = np.lexsort((kept, -values), axis=1)
    return np.take_along_axis(kept, order, axis=1), np.take_along_axis(values, order, axis=1)


@dataclass(frozen=True, slots=True)
class DenseMaxSim:
    """Every token of a query counts by the highest cosine that a token of the document has with it."""

    encoder: Encoder
    name: str = "dense-maxsim"

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The documents that this system finds for each query, with their scores."""
        texts, queries = collection.texts, collection.query_texts
        kept = max(CACHED_DEPTH, depth + 1)
        key = cache.key_for(self.encoder, [*queries, *texts], what="dense maxsim", depth=kept, queries=len(queries))
        held = cache.arrays(
            key, frozenset(["positions", "scores"]), lambda: self._best(texts, queries, depth=kept, progress=progress)
        )
        return from_top(collection, held["positions"], scores=held["scores"], depth=depth)

    def _best(self, texts: list[str], queries: list[str], *, depth: int, progress: Progress | None) -> cache.Arrays:
        query_states = encode(self.encoder, queries, kind="query")
        advance = counter(progress, self.name, kind="document", total=len(texts))
        positions = np.empty((len(queries), 0), np.int64)
        scores = np.empty((len(queries), 0), np.float32)
        for places, states in finite_batches(self.encoder, texts, kind="document"):
            # Only the best so far are held beside a batch.
            scores = np.concatenate([scores, maxsim(query_states, states)], axis=1)
            positions = np.concatenate([positions, np.broadcast_to(places, (len(queries), len(places)))], axis=1)
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
        # The highest product within the columns of each document, none of which is empty.
        best = np.maximum.reduceat(ours[start : start + step] @ theirs.T, documents.offsets[full], axis=1)
        part = np.zeros((queries.n_texts, len(full)), np.float32)
        np.add.at(part, owners[start : start + step], best)
        found[:, full] += part
    return found
