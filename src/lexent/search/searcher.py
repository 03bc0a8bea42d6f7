"""Exact top-k of weighted queries over postings. Knows latents and positions, not texts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.errors import ArtifactError, InputError
from lexent.indexing.postings import Postings
from lexent.recipes import Recipe
from lexent.types import SparseVectors
from lexent.weighting import bm25

CHUNK = 32
"""Queries that one thread takes at a time."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best documents of some queries, a row a query, strongest first; places left over hold -1 and 0."""

    positions: NDArray[np.int64]  # [n_queries, k]
    scores: NDArray[np.float64]  # [n_queries, k]

    def __iter__(self) -> Iterator[NDArray[np.generic]]:
        """So that `positions, scores = searcher.top(...)` works."""
        return iter((self.positions, self.scores))


class Searcher:
    """Postings, and what a query's weights are multiplied by."""

    def __init__(self, postings: Postings, recipe: Recipe) -> None:
        self.postings = postings
        self.recipe = recipe
        self.factors = bm25.query_factors(
            postings.df, postings.n_documents, recipe.weighting, prune=recipe.prune
        )  # float64[n_latents]: idf, 0 where pruned

    @staticmethod
    def from_vectors(document_vectors: SparseVectors, recipe: Recipe) -> Searcher:
        """In memory, from documents that are pooled, transformed and capped."""
        return Searcher(Postings.of(bm25.document_side(document_vectors, recipe.weighting)), recipe)

    @property
    def n_documents(self) -> int:
        return self.postings.n_documents

    def query_weights(self, query_vectors: SparseVectors) -> SparseVectors:
        """Queries that are pooled, transformed and capped, times idf. Pruned and unknown latents weigh 0."""
        known = query_vectors.ids < len(self.factors)
        factors = np.where(known, self.factors[np.where(known, query_vectors.ids, 0)], 0.0)
        return SparseVectors(
            ids=query_vectors.ids,
            values=(query_vectors.values * factors).astype(np.float32),
            offsets=query_vectors.offsets,
            size=query_vectors.size,
        )

    def top(self, query_vectors: SparseVectors, k: int, *, threads: int | None = None) -> Found:
        """The k best documents of each query (pooled, transformed and capped, not yet times idf)."""
        return self.top_weighted(self.query_weights(query_vectors), k, threads=threads)

    def top_weighted(self, queries: SparseVectors, k: int, *, threads: int | None = None) -> Found:
        """The k best documents of queries that carry their final weights, which may be negative.

        A document is a hit when it shares at least one latent of non-zero weight with the query, whatever its score.
        No more columns are given than there are documents.
        """
        from lexent.indexing import kernels

        if k < 0:
            raise InputError(f"k is {k}; allowed: 0 or more")
        n_queries, width = len(queries), min(k, self.n_documents)
        positions = np.full((n_queries, width), -1, np.int64)
        scores = np.zeros((n_queries, width), np.float64)
        postings = self.postings

        def search(start: int) -> int:
            rows = slice(start, start + CHUNK)
            outcome: int = kernels.top(
                postings.offsets,
                postings.documents,
                postings.weights,
                queries.offsets[start : start + CHUNK + 1],
                queries.ids,
                queries.values,
                postings.n_documents,
                positions[rows],
                scores[rows],
            )
            return outcome

        starts = range(0, n_queries, CHUNK)
        workers = min(len(starts), threads or os.cpu_count() or 1)
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                outcomes = list(pool.map(search, starts))
        else:
            outcomes = [search(start) for start in starts]
        _refuse_damage(outcomes)
        return Found(positions, scores)

    def scores(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The score of every document for one query with its final weights, and whether they share a latent."""
        from lexent.indexing import kernels

        scores = np.zeros(self.n_documents, np.float64)
        matched = np.zeros(self.n_documents, dtype=bool)
        postings = self.postings
        outcome = kernels.accumulate(
            postings.offsets, postings.documents, postings.weights, ids, weights, scores, matched
        )
        _refuse_damage([outcome])
        return scores, matched

    def document_weights(self, position: int, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """float32[len(ids)]: the stored weights of one document, 0 for latents that it lacks."""
        from lexent.indexing import kernels

        postings = self.postings
        found: NDArray[np.float32] = kernels.lookup(
            postings.offsets, postings.documents, postings.weights, position, ids
        )
        return found


def _refuse_damage(outcomes: list[int]) -> None:
    if any(outcome < 0 for outcome in outcomes):
        raise ArtifactError(
            "the index is damaged: postings/documents.npy names documents that it does not have; "
            "build it again: lexent index CORPUS --out DIR --overwrite"
        )
