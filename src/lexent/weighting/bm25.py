"""BM25 over latents, as a product: a document side that is stored and a query side that is made at query time.

score(q, d) = sum over latents of  [ w_q * idf ]  *  [ w_d (k1 + 1) / (w_d + k1 (1 - b + b |d| / avgdl)) ]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.recipes import BM25
from lexent.types import SparseVectors
from lexent.weighting.idf import idf


def document_side(vectors: SparseVectors, formula: BM25, *, average_length: float | None = None) -> SparseVectors:
    """The stored weights of documents whose vectors are transformed and capped; a length is the sum of a vector.

    average_length: of the whole collection, where these are only a part of it.
    """
    lengths = vectors.sums().astype(np.float64)
    average = mean_length(vectors) if average_length is None else average_length
    norms = formula.k1 * (1.0 - formula.b + formula.b * lengths / (average or 1.0))
    w = vectors.values.astype(np.float64)
    # k1 = 0 makes this w / w: every latent that a document has counts 1.
    weights = w * (formula.k1 + 1.0) / (w + np.repeat(norms, np.diff(vectors.offsets)))
    return SparseVectors(ids=vectors.ids, values=weights.astype(np.float32), offsets=vectors.offsets, size=vectors.size)


def mean_length(vectors: SparseVectors) -> float:
    """The average length of the documents; 0 when there are none."""
    return float(vectors.values.sum(dtype=np.float64)) / max(len(vectors), 1)


def query_factors(df: NDArray[np.int64], n_documents: int, formula: BM25, *, prune: float) -> NDArray[np.float64]:
    """float64[n_latents]: what a query's weight for a latent is multiplied by: its idf, or 0 where it is pruned."""
    factors = idf(df, n_documents, formula.idf)
    factors[most_frequent(df, prune)] = 0.0
    return factors


def most_frequent(df: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """The latents of highest document frequency: that share of those that any document has, lower ids first."""
    count = int(share * np.count_nonzero(df))
    return np.argsort(-df, kind="stable")[:count]
