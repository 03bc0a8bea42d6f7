"""Exact top-k of weighted queries over segments. Knows latents and positions, not texts."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.errors import InputError
from lexent.indexing import scale
from lexent.indexing.segment import CHUNK, Codes, Deleted, Segment, damaged
from lexent.indexing.statistics import Statistics
from lexent.recipes import Recipe
from lexent.types import SparseVectors
from lexent.weighting import bm25

BATCH = 32
"""Queries that one thread takes at a time."""
FEW = 128
"""Up to so many documents of a segment that a filter lets through are scored one by one; more are searched for."""

Masks = Sequence[NDArray[np.bool_]]
"""For each segment, which of its documents count; empty where all do."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best documents of some queries, a row a query, strongest first; places left over hold -1 and 0."""

    positions: NDArray[np.int64]  # [n_queries, k]
    scores: NDArray[np.float64]  # [n_queries, k]

    def __iter__(self) -> Iterator[NDArray[np.generic]]:
        """So that `positions, scores = searcher.top(...)` works."""
        return iter((self.positions, self.scores))


class Searcher:
    """Segments, and how their documents weigh under a recipe. Safe to use from many threads."""

    def __init__(
        self, segments: Sequence[Segment], recipe: Recipe, *, size: int, deleted: Sequence[Deleted | None] | None = None
    ) -> None:
        self.segments = tuple(segments)
        self.deleted = tuple(deleted) if deleted is not None else (None,) * len(self.segments)
        self.recipe = recipe
        self.size = size
        self.bases = np.cumsum([0, *(segment.n_documents for segment in self.segments)])
        found = Statistics.of(self.segments, self.deleted, size=size)
        self.n_documents, self.df, self.average_length = found.n_documents, found.df, found.average_length
        self.factors = bm25.query_factors(self.df, self.n_documents, recipe.weighting, prune=recipe.prune)
        self.curve = scale.curve(recipe)
        self._highest = float(self.curve.max())
        self._live: Masks = [np.empty(0, np.bool_) if gone is None else ~gone.mask for gone in self.deleted]
        self._weights: list[Any] = [None] * len(self.segments)
        self._scratch: deque[Any] = deque()

    @staticmethod
    def from_vectors(document_vectors: SparseVectors, recipe: Recipe) -> Searcher:
        """In memory, from documents that are pooled, not yet transformed."""
        size = document_vectors.size
        return Searcher([Segment.pack(Codes.of(document_vectors, recipe), size=size, recipe=recipe)], recipe, size=size)

    @property
    def n_postings(self) -> int:
        return int(self.df.sum())

    def query_weights(
        self, query_vectors: SparseVectors, *, factors: NDArray[np.float64] | None = None
    ) -> SparseVectors:
        """Queries that are pooled, transformed and capped, times idf. Pruned and unknown latents weigh 0."""
        factors = self.factors if factors is None else factors
        ids, size = query_vectors.ids, query_vectors.size
        if size > len(factors):
            factors = np.concatenate([factors, np.zeros(size - len(factors))])
        weights = bm25.query_side(query_vectors.values, self.recipe.weighting) * factors[ids]
        return SparseVectors(ids=ids, values=weights.astype(np.float32), offsets=query_vectors.offsets, size=size)

    def top(self, query_vectors: SparseVectors, k: int, *, threads: int | None = None) -> Found:
        """The k best documents of each query (pooled, transformed and capped, not yet times idf)."""
        return self.top_weighted(self.query_weights(query_vectors), k, threads=threads)

    def top_weighted(
        self, queries: SparseVectors, k: int, *, allowed: Masks | None = None, threads: int | None = None
    ) -> Found:
        """The k best documents of queries that carry their final weights, which may be negative.

        A document is a hit when it shares at least one latent of non-zero weight with the query, whatever its score.
        No more columns are given than there are documents. allowed: which documents of each segment may be found.
        """
        if k < 0:
            raise InputError(f"k is {k}; allowed: 0 or more")
        n_queries, width = len(queries), min(k, self.n_documents)
        positions = np.full((n_queries, width), -1, np.int64)
        scores = np.zeros((n_queries, width), np.float64)
        masks = self.masks(allowed)

        def search(start: int) -> None:
            for row in range(start, min(start + BATCH, n_queries)):
                best, who, scaled = self._one(*queries.of(row), width, masks)
                positions[row, : len(who)], scores[row, : len(who)] = who, best / scaled

        starts = range(0, n_queries if width else 0, BATCH)
        workers = min(len(starts), threads or os.cpu_count() or 1) if len(starts) > 1 else 1
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(search, starts))
        else:
            for start in starts:
                search(start)
        return Found(positions, scores)

    def scores(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The score of every document for one query with its final weights, and whether they share a latent.

        Deleted documents share nothing.
        """
        latents, scaled, _, factor = self._scaled(ids, weights)
        return self._all(latents, scaled, factor, self._live)

    def contributions(
        self, position: int, ids: NDArray[np.int32], weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """For one document and each of a query's latents the stored weight, and what it adds to the score: exact.

        Both are 0 for latents that the document lacks.
        """
        found = self.document_weights(position, ids)
        scaled = scale.query_scale(weights, self._highest)
        gains = np.trunc(found * (weights * np.float32(scaled)))  # float32, as the kernels have it
        gains = np.where(weights > 0, np.maximum(gains, 1), np.where(weights < 0, np.minimum(gains, -1), 0))
        return found, np.where(found > 0, gains.astype(np.float64) / scaled, 0.0)

    def document_weights(self, position: int, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """float32[len(ids)]: the stored weights of one document, 0 for latents that it lacks."""
        from lexent.indexing import tallies

        place = int(np.searchsorted(self.bases, position, side="right")) - 1
        segment, local = self.segments[place], position - int(self.bases[place])
        codes = np.zeros(len(ids), np.uint8)
        if tallies.codes_of(ids.astype(np.uint32), segment.lists, local, codes) < 0:
            raise damaged()
        shift = int(self._weights_of(place).shifts[local])
        return np.where(codes > 0, self.curve[2 * codes.astype(np.int64) + shift], np.float32(0))

    def documents(self, positions: Sequence[int] | NDArray[np.int64]) -> SparseVectors:
        """The whole vectors of some documents, in that order: their latents with the weights that the index stores."""
        wanted, order = np.unique(np.asarray(positions, np.int64), return_inverse=True)
        parts = []
        for place, segment in enumerate(self.segments):
            low, high = np.searchsorted(wanted, self.bases[place : place + 2])
            local = wanted[low:high] - self.bases[place]
            if not len(local):
                continue
            codes = segment.documents(local)
            shifts = np.repeat(self._weights_of(place).shifts[local].astype(np.int64), np.diff(codes.offsets))
            weights = self.curve[2 * codes.codes.astype(np.int64) + shifts]
            parts.append(SparseVectors(codes.ids, weights, codes.offsets, self.size))
        return SparseVectors.concatenate(parts, size=self.size).take(order)

    def df_within(self, ids: NDArray[np.int32], allowed: Masks) -> NDArray[np.int64]:
        """How many of the allowed documents have each of the latents."""
        from lexent.indexing import tallies

        total = np.zeros(len(ids), np.int64)
        for segment, mask in zip(self.segments, self._alive(allowed), strict=True):
            if tallies.count_within(ids.astype(np.uint32), segment.lists, mask, total) < 0:
                raise damaged()
        return total

    def n_allowed(self, allowed: Masks) -> int:
        """How many documents are allowed and not deleted."""
        masks = zip(self.segments, self._alive(allowed), strict=True)
        return sum(int(np.count_nonzero(mask)) if len(mask) else segment.n_documents for segment, mask in masks)

    def masks(self, allowed: Masks | None) -> Masks:
        """Which documents of each segment may be found: those allowed, all where it is None, but deleted ones."""
        return self._live if allowed is None else self._alive(allowed)

    def _alive(self, allowed: Masks) -> Masks:
        def both(mask: NDArray[np.bool_], live: NDArray[np.bool_]) -> NDArray[np.bool_]:
            return mask & live if len(live) and len(mask) else (mask if len(mask) else live)

        return [both(mask, live) for mask, live in zip(allowed, self._live, strict=True)]

    @cached_property
    def _kernels(self) -> Any:
        """Imported when first needed: Numba is heavy."""
        from lexent.indexing import kernels

        return kernels

    @cached_property
    def _workspace(self) -> Any:
        from lexent.indexing import workspace

        return workspace

    def _scaled(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32], bool, float]:
        """Known latents ascending, their weights times the scale, whether any is negative, and the scale."""
        factor = scale.query_scale(weights, self._highest)
        return *self._kernels.prepare(ids, weights, factor, self.size), factor

    def _one(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32], k: int, masks: Masks
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], float]:
        """The best documents of one query, strongest first: whole-number scores, positions and the scale."""
        kernels, factor = self._kernels, scale.query_scale(weights, self._highest)
        best, who, state = np.zeros(k, np.int32), np.full(k, -1, np.int64), np.array([0, 0, kernels.CARE])
        scratch = self._borrow()
        try:
            for place, segment in enumerate(self.segments):
                mask, base = masks[place], int(self.bases[place])
                few = len(mask) > 0 and np.count_nonzero(mask) <= FEW
                found = (best, who, state, scratch)
                if self.recipe.binary and not few:
                    outcome = self._count(ids, weights, factor, segment, mask, base, found)
                    if outcome >= 0:
                        continue
                weighed = self._weights_of(place)
                search: Any = kernels.top_of_few if few else kernels.top
                which = np.flatnonzero(mask) if few else mask
                outcome = search(ids, weights, factor, self.size, segment.lists, weighed, which, base, *found)
                if outcome == kernels.NEGATIVE:
                    return self._one_of_all(ids, weights, k, masks)
                if outcome < 0:
                    raise damaged()
        finally:
            self._scratch.append(scratch)
        count = int(state[0])
        kernels.arrange(best, who, count)
        return best[:count], who[:count], factor

    def _count(
        self,
        ids: NDArray[np.int32],
        weights: NDArray[np.float32],
        factor: float,
        segment: Segment,
        mask: NDArray[np.bool_],
        base: int,
        found: tuple[Any, ...],
    ) -> int:
        """Searches a binary segment by counting, where few weights differ; says UNEQUAL where more do."""
        from lexent.indexing import counting

        counts = found[3].narrow if len(ids) <= counting.NARROW else found[3].wide
        count: Any = counting.top
        return int(count(ids, weights, factor, self.size, segment.lists, mask, base, *found, counts))

    def _one_of_all(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32], k: int, masks: Masks
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], float]:
        """The same for weights that may be negative: nothing can be pruned, every document is scored."""
        latents, scaled, _, factor = self._scaled(ids, weights)
        scores, matched = self._all(latents, scaled, factor, masks)
        hits = np.flatnonzero(matched)
        order = hits[np.lexsort((hits, -scores[hits]))][:k]
        return np.rint(scores[order] * factor).astype(np.int32), order, factor

    def _all(
        self, latents: NDArray[np.uint32], scaled: NDArray[np.float32], factor: float, masks: Masks
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        from lexent.indexing import tallies

        n = int(self.bases[-1])
        scores, matched = np.zeros(n, np.int32), np.zeros(n, np.bool_)
        for place, segment in enumerate(self.segments):
            part = slice(self.bases[place], self.bases[place + 1])
            weighed, into = self._weights_of(place), (scores[part], matched[part])
            if tallies.all_scores(latents, scaled, segment.lists, weighed, *into) < 0:
                raise damaged()
            if len(masks[place]):
                matched[part] &= masks[place]
        return np.where(matched, scores / factor, 0.0), matched

    def _weights_of(self, place: int) -> Any:
        """How a segment's postings weigh, made when it is first searched."""
        if self._weights[place] is None:
            segment = self.segments[place]
            shifts = scale.shifts(segment.lengths, self.average_length, self.recipe)
            padded = np.concatenate([shifts, np.full(CHUNK, scale.NEUTRAL, np.uint8)])
            halves = self._workspace.aligned(len(padded))
            np.add(padded >> 1, padded & 1, out=halves)
            self._weights[place] = self._kernels.Weights(self.curve, padded, halves, self._rises(segment, shifts))
        return self._weights[place]

    def _rises(self, segment: Segment, shifts: NDArray[np.uint8]) -> NDArray[np.int64]:
        """For each chunk, by how much the shift of any of its documents is above that of when it was packed."""
        found, starts = [], segment.arrays["chunks"][:, 0].tolist()
        for (average, b), start, stop in zip(segment.arrays["packed_with"], starts[:-1], starts[1:], strict=True):
            before = scale.shifts(segment.lengths[start:stop], average, self.recipe, b=b)
            found.append(int((shifts[start:stop].astype(np.int64) - before).max(initial=-scale.CURVE)))
        return np.array(found, np.int64)

    def _borrow(self) -> Any:
        try:
            return self._scratch.pop()
        except IndexError:
            return self._workspace.scratch(binary=self.recipe.binary)
