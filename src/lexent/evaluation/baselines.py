"""What a recipe is compared with: dense cosine and MaxSim of the encoder's own states, and lexical BM25."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import unit
from lexent.adapters.encoder import AdaptedEncoder
from lexent.encoders import Encoder
from lexent.encoders.encoder import encode, finite_batches
from lexent.evaluation import cache
from lexent.evaluation.collections import Collection
from lexent.evaluation.lexical import WordIndex, words
from lexent.evaluation.progress import counter
from lexent.evaluation.runs import Run, from_top
from lexent.evaluation.vector_search import SCORES_PER_CHUNK, best_of, blocks, nearest, none_yet
from lexent.types import Kind, States

CACHED_DEPTH = 1001
"""Documents of each query that are kept of MaxSim, which is slow."""


def dense(collection: Collection, encoder: Encoder, *, k: int) -> Run:
    """The k documents of highest cosine for each query, exactly, from the encoder's pooled vectors."""
    documents, queries = pooled_sides(encoder, collection)
    positions, scores = nearest(queries, blocks(documents, n_queries=len(queries)), k=k + 1)
    return from_top(collection, positions, scores=scores, depth=k)


def bm25(collection: Collection, *, k: int) -> Run:
    """The k best documents for each query by lexical BM25: bm25s with its defaults and English stop words."""
    found, scores = WordIndex.of(collection.texts).top(words(collection.query_texts), k + 1)
    return from_top(collection, found, scores=scores, depth=k)


def pooled(encoder: Encoder, texts: Sequence[str], *, kind: Kind) -> NDArray[np.float32]:
    """float32[n_texts, d_in]: pooled vectors of length 1, from the cache where they are."""
    return unit(pooled_states(encoder, texts, kind=kind))


def pooled_sides(encoder: Encoder, collection: Collection) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Pooled vectors of length 1 of a collection's documents and of its queries, from the cache where they are."""
    documents = pooled(encoder, collection.texts, kind="document")
    return documents, pooled(encoder, collection.query_texts, kind="query")


def pooled_states(encoder: Encoder, texts: Sequence[str], *, kind: Kind) -> NDArray[np.float32]:
    """float32[n_texts, d_in]: pooled vectors as the encoder gives them and a lexicon reads them, from the cache."""
    if isinstance(encoder, AdaptedEncoder):  # what its base gave is likely there already
        return encoder.adapt(pooled_states(encoder.base, texts, kind=kind), kind=kind)

    def make() -> NDArray[np.float32]:
        advance = counter("dense", kind=kind, total=len(texts))
        rows = np.empty((len(texts), encoder.dim), np.float32)
        for positions, states in finite_batches(encoder, texts, kind=kind, level="pooled"):
            rows[positions] = states.numpy()
            advance(len(positions))
        return rows

    return cache.matrix(cache.key_for(encoder, texts, what="pooled", kind=kind), make)


@dataclass(frozen=True, slots=True)
class DenseMaxSim:
    """Every token of a query counts by the highest cosine that a token of the document has with it."""

    encoder: Encoder
    name: str = "dense-maxsim"

    def run(self, collection: Collection, *, depth: int) -> Run:
        """The documents that this system finds for each query, with their scores."""
        texts, queries = collection.texts, collection.query_texts
        kept = max(CACHED_DEPTH, depth + 1)
        key = cache.key_for(self.encoder, [*queries, *texts], what="dense maxsim", depth=kept, queries=len(queries))
        held = cache.arrays(key, frozenset(["positions", "scores"]), lambda: self._best(texts, queries, depth=kept))
        return from_top(collection, held["positions"], scores=held["scores"], depth=depth)

    def _best(self, texts: list[str], queries: list[str], *, depth: int) -> cache.Arrays:
        query_states = encode(self.encoder, queries, kind="query")
        advance = counter(self.name, kind="document", total=len(texts))
        found = none_yet(len(queries))
        for places, states in finite_batches(self.encoder, texts, kind="document"):
            # Only the best so far are held beside a batch.
            every = np.broadcast_to(places, (len(queries), len(places)))
            found = best_of(found, (every, maxsim(query_states, states)), k=depth)
            advance(len(places))
        return dict(zip(("positions", "scores"), found, strict=True))


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
