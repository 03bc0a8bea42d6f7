"""BM25 over latents, as a product: a document side that is stored and a query side that is made at query time.

score(q, d) = sum over latents of  [ w_q * idf ]  *  [ w_d (k1 + 1) / (w_d + k1 (1 - b + b |d| / avgdl)) ]

The document side is a function of w_d / (1 - b + b |d| / avgdl), which the index keeps on a logarithmic scale:
see `lexent.indexing.postings.quantisation`. Here are idf and the query side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.recipes import BM25, IdfMode, Recipe


def idf(df: NDArray[np.int64], n_documents: int, mode: IdfMode) -> NDArray[np.float64]:
    """float64[n_latents]: the weight of each latent that `df` documents of `n_documents` have.

    "okapi" is negative for latents of more than half the documents and "okapi-floor0" is 0 for them. The other modes
    are above 0 for every latent.
    """
    n = df.astype(np.float64)
    odds = (n_documents - n + 0.5) / (n + 0.5)
    if mode == "lucene":
        return np.log1p(odds)
    if mode == "root":
        return np.sqrt(np.log1p(odds))
    if mode == "okapi":
        return np.log(odds)
    if mode == "okapi-floor0":
        return np.maximum(np.log(odds), 0.0)
    if mode == "clsr":
        # ln(N / (1 + df)) is 0 or less for a latent of all documents, or of all but one; with one or two documents that
        # is every latent. A floor keeps these above 0 and below the others; it falls as 1 / N.
        paper = np.log(max(n_documents, 1) / (1.0 + n))
        floor = np.log1p((n_documents + 1 - n) / (2.0 * (n_documents + 1)))
        return np.where(paper > 0, paper, floor)
    return np.ones(len(n))


def query_side(values: NDArray[np.float32], formula: BM25) -> NDArray[np.float64]:
    """A query's values as they count, before idf: saturated where the formula has a k2."""
    w = values.astype(np.float64)
    return w if formula.k2 is None else w * (formula.k2 + 1.0) / (w + formula.k2)


def query_factors(df: NDArray[np.int64], n_documents: int, formula: BM25, *, prune: float) -> NDArray[np.float64]:
    """float64[n_latents]: what a query's weight for a latent is multiplied by: its idf, or 0 where it is pruned."""
    factors = idf(df, n_documents, formula.idf)
    factors[most_frequent(df, prune)] = 0.0
    return factors


def word_factors(df: NDArray[np.int64], n_documents: int, recipe: Recipe) -> NDArray[np.float64]:
    """float64[n_words]: what a query's weight for a word is multiplied by.

    A word's idf, times its share of the highest idf that a word can have, to the power rarity - 1. Never below 0, and 0
    for a word that no document has any more.
    """
    own = np.maximum(idf(df, n_documents, recipe.weighting.idf), 0.0) * (df > 0)
    highest = float(idf(np.ones(1, np.int64), max(n_documents, 1), recipe.weighting.idf)[0])
    if highest <= 0 or recipe.rarity == 1:
        return own * recipe.words
    return own * np.minimum(own / highest, 1.0) ** (recipe.rarity - 1.0) * recipe.words


def most_frequent(df: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """The latents of highest document frequency: that share of those that any document has, lower ids first."""
    count = int(share * np.count_nonzero(df))
    return np.argsort(-df, kind="stable")[:count]
