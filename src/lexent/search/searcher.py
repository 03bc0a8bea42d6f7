"""Exact top-k of weighted queries over segments, by latents and positions; texts are not known here."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.errors import InputError
from lexent.indexing.postings import quantisation
from lexent.indexing.segment import CHUNK_DOCUMENTS, Codes, Segment, Tombstones, damaged
from lexent.indexing.statistics import Statistics
from lexent.recipes import Recipe
from lexent.types import SparseVectors
from lexent.weighting import bm25

QUERIES_PER_TASK = 32
"""Queries of one task of the thread pool."""
MAX_ALLOWED_TO_PROBE = 128
"""Where a filter allows at most this many documents of a segment, each is probed in every posting list."""

Masks = Sequence[NDArray[np.bool_]]
"""For each segment, which of its documents may be found; empty for all."""


@dataclass(frozen=True, slots=True)
class TopDocuments:
    """The best documents of some queries, a row a query, highest score first; unused places hold -1 and 0."""

    positions: NDArray[np.int64]  # [n_queries, k]
    scores: NDArray[np.float64]  # [n_queries, k]

    def __iter__(self) -> Iterator[NDArray[np.generic]]:
        """Lets `positions, scores = searcher.top(...)` unpack."""
        return iter((self.positions, self.scores))


class Searcher:
    """Searches segments under a recipe's weighting. Thread-safe."""

    def __init__(
        self,
        segments: Sequence[Segment],
        recipe: Recipe,
        *,
        size: int,
        tombstones: Sequence[Tombstones | None] | None = None,
    ) -> None:
        self.segments = tuple(segments)
        self.tombstones = tuple(tombstones) if tombstones is not None else (None,) * len(self.segments)
        self.recipe = recipe
        self.size = size
        self.bases = np.cumsum([0, *(segment.n_documents for segment in self.segments)])
        statistics = Statistics.of(self.segments, self.tombstones, size=size)
        self.n_documents = statistics.n_documents
        self.df = statistics.df
        self.average_length = statistics.average_length
        self.factors = bm25.query_factors(self.df, self.n_documents, recipe.weighting, prune=recipe.prune)
        max_doublings = max((segment.most_doublings for segment in self.segments), default=0)
        self.curve = quantisation.impact_curve(recipe, doublings=max_doublings)
        self._highest_impact = float(self.curve.max())
        self._live: Masks = [np.empty(0, np.bool_) if deleted is None else ~deleted.mask for deleted in self.tombstones]
        self._impacts: list[Any] = [None] * len(self.segments)
        self._free_workspaces: deque[Any] = deque()

    @staticmethod
    def from_vectors(document_vectors: SparseVectors, recipe: Recipe) -> Searcher:
        """In memory, from pooled document vectors, before the transform."""
        size = document_vectors.size
        return Searcher([Segment.pack(Codes.of(document_vectors, recipe), size=size, recipe=recipe)], recipe, size=size)

    @property
    def n_postings(self) -> int:
        """Number of postings of live documents."""
        return int(self.df.sum())

    def query_weights(
        self, query_vectors: SparseVectors, *, factors: NDArray[np.float64] | None = None
    ) -> SparseVectors:
        """Multiplies pooled, transformed and capped queries by idf. Pruned and unknown latents get 0."""
        factors = self.factors if factors is None else factors
        ids, size = query_vectors.ids, query_vectors.size
        if size > len(factors):
            factors = np.concatenate([factors, np.zeros(size - len(factors))])
        weights = bm25.query_side(query_vectors.values, self.recipe.weighting) * factors[ids]
        return SparseVectors(ids=ids, values=weights.astype(np.float32), offsets=query_vectors.offsets, size=size)

    def top(self, query_vectors: SparseVectors, k: int, *, threads: int | None = None) -> TopDocuments:
        """The k best documents of each query (pooled, transformed and capped, before idf)."""
        return self.top_weighted(self.query_weights(query_vectors), k, threads=threads)

    def top_weighted(
        self, queries: SparseVectors, k: int, *, allowed: Masks | None = None, threads: int | None = None
    ) -> TopDocuments:
        """The k best documents of queries that have their final weights, which may be negative.

        A document is a hit when it shares at least one latent of non-zero weight with the query, whatever its score.
        The result has at most as many columns as there are documents. allowed: documents that may be found.
        """
        if k < 0:
            raise InputError(f"k is {k}; allowed: 0 or more")
        n_queries, width = len(queries), min(k, self.n_documents)
        positions = np.full((n_queries, width), -1, np.int64)
        scores = np.zeros((n_queries, width), np.float64)
        masks = self.masks(allowed)

        def search(start: int) -> None:
            for row in range(start, min(start + QUERIES_PER_TASK, n_queries)):
                best, documents, scale = self._search_one(*queries.of(row), width, masks)
                positions[row, : len(documents)], scores[row, : len(documents)] = documents, best / scale

        starts = range(0, n_queries if width else 0, QUERIES_PER_TASK)
        workers = min(len(starts), threads or os.cpu_count() or 1) if len(starts) > 1 else 1
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(search, starts))
        else:
            for start in starts:
                search(start)
        return TopDocuments(positions, scores)

    def scores(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scores of all documents for one query with its final weights, and which of them share a latent with it.

        Deleted documents score 0 and share none.
        """
        latents, scaled, _, scale = self._scaled_terms(ids, weights)
        return self._score_all(latents, scaled, scale, self._live)

    def contributions(
        self, position: int, ids: NDArray[np.int32], weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Impact of each of a query's latents in one document, and its exact contribution to the score.

        Both are 0 for latents that the document lacks.
        """
        impacts = self.document_weights(position, ids)
        scale = quantisation.query_scale(weights, self._highest_impact)
        contributed = np.trunc(impacts * (weights * np.float32(scale)))  # in float32, as in the kernels
        contributed = np.where(
            weights > 0, np.maximum(contributed, 1), np.where(weights < 0, np.minimum(contributed, -1), 0)
        )
        return impacts, np.where(impacts > 0, contributed.astype(np.float64) / scale, 0.0)

    def document_weights(self, position: int, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """float32[len(ids)]: impacts of latents in one document, 0 for those that it lacks."""
        from lexent.topk import random_access

        place = int(np.searchsorted(self.bases, position, side="right")) - 1
        segment, local = self.segments[place], position - int(self.bases[place])
        codes = np.zeros(len(ids), np.uint8)
        if random_access.codes_of(ids.astype(np.uint32), segment.lists, local, codes) < 0:
            raise damaged()
        shift = int(self._impacts_of(place).shifts[local])
        return np.where(codes > 0, self.curve[2 * codes.astype(np.int64) + shift], np.float32(0))

    def documents(self, positions: Sequence[int] | NDArray[np.int64]) -> SparseVectors:
        """Vectors of some documents, in that order: their latents and impacts."""
        wanted, order = np.unique(np.asarray(positions, np.int64), return_inverse=True)
        parts = []
        for place, segment in enumerate(self.segments):
            low, high = np.searchsorted(wanted, self.bases[place : place + 2])
            local = wanted[low:high] - self.bases[place]
            if not len(local):
                continue
            codes = segment.documents(local)
            shifts = np.repeat(self._impacts_of(place).shifts[local].astype(np.int64), np.diff(codes.offsets))
            weights = self.curve[2 * codes.codes.astype(np.int64) + shifts]
            parts.append(SparseVectors(codes.ids, weights, codes.offsets, self.size))
        return SparseVectors.concatenate(parts, size=self.size).take(order)

    def df_within(self, ids: NDArray[np.int32], allowed: Masks) -> NDArray[np.int64]:
        """Document frequencies of some latents among the allowed documents."""
        from lexent.topk import random_access

        total = np.zeros(len(ids), np.int64)
        for segment, mask in zip(self.segments, self._live_masks(allowed), strict=True):
            if random_access.count_within(ids.astype(np.uint32), segment.lists, mask, total) < 0:
                raise damaged()
        return total

    def n_allowed(self, allowed: Masks) -> int:
        """Number of documents that are allowed and not deleted."""
        masks = zip(self.segments, self._live_masks(allowed), strict=True)
        return sum(int(np.count_nonzero(mask)) if len(mask) else segment.n_documents for segment, mask in masks)

    def masks(self, allowed: Masks | None) -> Masks:
        """Which documents of each segment may be found: the allowed ones (None for all) that are not deleted."""
        return self._live if allowed is None else self._live_masks(allowed)

    def _live_masks(self, allowed: Masks) -> Masks:
        def both(mask: NDArray[np.bool_], live: NDArray[np.bool_]) -> NDArray[np.bool_]:
            return mask & live if len(live) and len(mask) else (mask if len(mask) else live)

        return [both(mask, live) for mask, live in zip(allowed, self._live, strict=True)]

    @cached_property
    def _kernels(self) -> Any:
        """Imported on first use, since Numba is slow to import."""
        from lexent.topk import weighted

        return weighted

    @cached_property
    def _workspace_module(self) -> Any:
        from lexent.topk import workspace

        return workspace

    def _scaled_terms(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32], bool, float]:
        """Known latents ascending, their scaled weights, whether any is negative, and the scale."""
        scale = quantisation.query_scale(weights, self._highest_impact)
        return *self._kernels.prepare_terms(ids, weights, scale, self.size), scale

    def _search_one(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32], k: int, masks: Masks
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], float]:
        """The best documents of one query, highest score first: integer scores, positions, and the scale of scores."""
        kernels, scale = self._kernels, quantisation.query_scale(weights, self._highest_impact)
        heap_scores = np.zeros(k, np.int32)
        heap_documents = np.full(k, -1, np.int64)
        state = np.array([0, 0, kernels.NEUTRAL_AGGRESSIVENESS])
        workspace = self._borrow_workspace()
        try:
            for place, segment in enumerate(self.segments):
                mask, base = masks[place], int(self.bases[place])
                probed = len(mask) > 0 and np.count_nonzero(mask) <= MAX_ALLOWED_TO_PROBE
                heap_and_workspace = (heap_scores, heap_documents, state, workspace)
                if self.recipe.binary and not probed:
                    outcome = self._search_by_counting(ids, weights, scale, segment, mask, base, heap_and_workspace)
                    if outcome >= 0:
                        continue
                impacts = self._impacts_of(place)
                search: Any = kernels.top_k_of_few if probed else kernels.top_k
                selected = np.flatnonzero(mask) if probed else mask
                outcome = search(
                    ids, weights, scale, self.size, segment.lists, impacts, selected, base, *heap_and_workspace
                )
                if outcome == kernels.NEGATIVE_WEIGHT:
                    return self._search_exhaustively(ids, weights, k, masks)
                if outcome < 0:
                    raise damaged()
        finally:
            self._free_workspaces.append(workspace)
        count = int(state[0])
        kernels.sort_heap(heap_scores, heap_documents, count)
        return heap_scores[:count], heap_documents[:count], scale

    def _search_by_counting(
        self,
        ids: NDArray[np.int32],
        weights: NDArray[np.float32],
        scale: float,
        segment: Segment,
        mask: NDArray[np.bool_],
        base: int,
        heap_and_workspace: tuple[Any, ...],
    ) -> int:
        """Searches a binary segment by counting; returns TOO_MANY_WEIGHTS where the query has too many."""
        from lexent.topk import counting

        workspace = heap_and_workspace[3]
        counts = workspace.counts_8bit if len(ids) <= counting.MAX_TERMS_8BIT else workspace.counts_16bit
        count: Any = counting.top_k
        return int(count(ids, weights, scale, self.size, segment.lists, mask, base, *heap_and_workspace, counts))

    def _search_exhaustively(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32], k: int, masks: Masks
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], float]:
        """`_search_one` for weights that may be negative: no upper bound holds, so every document is scored."""
        latents, scaled, _, scale = self._scaled_terms(ids, weights)
        scores, matched = self._score_all(latents, scaled, scale, masks)
        hits = np.flatnonzero(matched)
        order = hits[np.lexsort((hits, -scores[hits]))][:k]
        return np.rint(scores[order] * scale).astype(np.int32), order, scale

    def _score_all(
        self, latents: NDArray[np.uint32], scaled: NDArray[np.float32], scale: float, masks: Masks
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        from lexent.topk import random_access

        n = int(self.bases[-1])
        scores, matched = np.zeros(n, np.int32), np.zeros(n, np.bool_)
        for place, segment in enumerate(self.segments):
            part = slice(self.bases[place], self.bases[place + 1])
            impacts, into = self._impacts_of(place), (scores[part], matched[part])
            if random_access.all_scores(latents, scaled, segment.lists, impacts, *into) < 0:
                raise damaged()
            if len(masks[place]):
                matched[part] &= masks[place]
        return np.where(matched, scores / scale, 0.0), matched

    def _impacts_of(self, place: int) -> Any:
        """A segment's `SegmentImpacts`, made when it is first searched."""
        if self._impacts[place] is None:
            segment = self.segments[place]
            shifts = quantisation.shifts(
                segment.lengths, self.average_length, self.recipe, doublings=segment.doublings()
            )
            padded = np.concatenate([shifts, np.full(CHUNK_DOCUMENTS, quantisation.NEUTRAL_SHIFT, np.uint16)])
            half_shifts = self._workspace_module.aligned_zeros(len(padded))
            quantisation.half_shifts(padded, half_shifts)
            starts = segment.arrays["chunks"][:, 0].tolist()
            neutral = quantisation.NEUTRAL_SHIFT
            lowest_shifts = [int(shifts[start:stop].min(initial=neutral)) for start, stop in pairwise(starts)]
            self._impacts[place] = self._kernels.SegmentImpacts(
                curve=self.curve,
                shifts=padded,
                half_shifts=half_shifts,
                shift_rises=self._shift_rises(segment, shifts),
                lowest_shifts=np.array(lowest_shifts, np.int64),
            )
        return self._impacts[place]

    def _shift_rises(self, segment: Segment, shifts: NDArray[np.uint16]) -> NDArray[np.int64]:
        """For each chunk, the most that the shift of a document is above the one that the chunk was packed with."""
        rises, starts = [], segment.arrays["chunks"][:, 0].tolist()
        for (average, b), start, stop in zip(segment.arrays["packed_with"], starts[:-1], starts[1:], strict=True):
            lengths, doublings = segment.lengths[start:stop], segment.doublings(start, stop)
            packed_shifts = quantisation.narrow_shifts(lengths, average, self.recipe, b=b, doublings=doublings)
            narrow_shifts = shifts[start:stop].astype(np.int64) - quantisation.NARROW_SHIFT_OFFSET
            rise = narrow_shifts - packed_shifts.astype(np.int64)
            # Empty documents are in no list.
            rises.append(int(rise.max(initial=-quantisation.CURVE_SIZE, where=lengths > 0)))
        return np.array(rises, np.int64)

    def _borrow_workspace(self) -> Any:
        try:
            return self._free_workspaces.pop()
        except IndexError:
            return self._workspace_module.new_workspace(binary=self.recipe.binary)
