"""How much a latent counts for, by the number of documents that have it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.recipes import IdfMode


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
