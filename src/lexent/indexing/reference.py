"""What the kernels compute, the obvious way in NumPy. Tests hold the two together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.types import SparseVectors


def invert(vectors: SparseVectors) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Offsets by latent, and the documents and weights of each latent, documents ascending."""
    owners = np.repeat(np.arange(len(vectors), dtype=np.int32), np.diff(vectors.offsets))
    order = np.lexsort((owners, vectors.ids))
    counts = np.bincount(vectors.ids, minlength=vectors.size)
    return np.concatenate([[0], np.cumsum(counts)]), owners[order], vectors.values[order]


def scores(
    vectors: SparseVectors, query_ids: NDArray[np.int32], query_weights: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The score of every document, and whether it shares a latent with the query."""
    dense = np.zeros((len(vectors), vectors.size), np.float64)
    for document in range(len(vectors)):
        ids, values = vectors.of(document)
        dense[document, ids] = values
    total = np.zeros(len(vectors), np.float64)
    matched = np.zeros(len(vectors), dtype=bool)
    for latent, weight in zip(query_ids, query_weights, strict=True):
        if weight != 0 and 0 <= latent < vectors.size:
            total += np.float64(weight) * dense[:, latent]
            matched |= dense[:, latent] != 0
    return total, matched


def top(
    vectors: SparseVectors, query_ids: NDArray[np.int32], query_weights: NDArray[np.float32], *, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """At most k matching documents: higher scores first, equal scores in document order."""
    total, matched = scores(vectors, query_ids, query_weights)
    hits = np.flatnonzero(matched)
    best = hits[np.lexsort((hits, -total[hits]))][:k]
    return best, total[best]


def lookup(vectors: SparseVectors, document: int, latents: NDArray[np.int32]) -> NDArray[np.float32]:
    """The weights of one document for the given latents, 0 where it lacks one."""
    ids, values = vectors.of(document)
    known = dict(zip(ids.tolist(), values, strict=True))
    return np.array([known.get(int(latent), 0.0) for latent in latents], dtype=np.float32)
