"""Exact top-k of weighted queries over segments, by latents and positions; texts are not known here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import cpu
from lexent.errors import InputError
from lexent.indexing.codes import Codes
from lexent.indexing.postings import quantisation
from lexent.indexing.postings.layout import CHUNK_DOCUMENTS, damaged
from lexent.indexing.segment import Packer, Segment, Tombstones
from lexent.indexing.statistics import Statistics
from lexent.recipes import Recipe
from lexent.topk.kernels import group
from lexent.topk.numpy_scores import prepare_terms
from lexent.types import SparseVectors
from lexent.weighting import bm25

QUERIES_PER_TASK = 32
"""Queries of one task of the thread pool."""
MAX_ALLOWED_TO_PROBE = 128
"""Where a filter allows at most this many documents of a segment, each is probed in every posting list."""
NUMPY_SECONDS_PER_POSTING = 3e-8
"""What NumPy takes to read a posting and to add it to a score, roughly."""
NO_DOCUMENTS = np.empty(0, np.int64)

Masks = Sequence[NDArray[np.bool_]]
"""For each segment, which of its documents may be found; empty for all."""


@dataclass(frozen=True, slots=True)
class TopDocuments:
    """The best documents of some queries, a row a query, highest score first; unused places hold -1 and 0."""

    positions: NDArray[np.int64]  # [n_queries, k]
    scores: NDArray[np.float64]  # [n_queries, k]

    def __iter__(self) -> Iterator[NDArray[np.generic]]:
        """Lets `positions, scores = scorer.top(...)` unpack."""
        return iter((self.positions, self.scores))


Ranking = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Positions of the best documents of one query, highest score first, and their scores."""


def search_all(
    search: Callable[[int], Ranking], n_queries: int, width: int, *, threads: int | None, per_task: int
) -> TopDocuments:
    """The rankings of all queries by a search of one: `width` documents each at most, `per_task` queries a task."""
    found = TopDocuments(np.full((n_queries, width), -1, np.int64), np.zeros((n_queries, width), np.float64))

    def search_some(start: int) -> None:
        for row in range(start, min(start + per_task, n_queries)):
            positions, scores = search(row)
            found.positions[row, : len(positions)], found.scores[row, : len(positions)] = positions, scores

    starts = range(0, n_queries if width else 0, per_task)
    workers = min(len(starts), threads or cpu.threads())
    if workers > 1:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(search_some, starts))
    else:
        for start in starts:
            search_some(start)
    return found


class DocumentScorer:
    """Searches segments under a recipe's weighting. Thread-safe."""

    def __init__(
        self,
        segments: Sequence[Segment],
        recipe: Recipe,
        *,
        size: int,
        tombstones: Sequence[Tombstones | None] | None = None,
        concepts: int | None = None,
    ) -> None:
        """size: number of concepts and words. concepts: ids from here on are words; None where there are no words."""
        self.segments = tuple(segments)
        self.tombstones = tuple(tombstones) if tombstones is not None else (None,) * len(self.segments)
        self.recipe = recipe
        self.size = size
        self.concepts = size if concepts is None else concepts
        self.bases = np.cumsum([0, *(segment.n_documents for segment in self.segments)])
        statistics = Statistics.of(self.segments, self.tombstones, size=size)
        self.n_documents = statistics.n_documents
        self.df = statistics.df
        self.average_length = statistics.average_length
        self.factors = self.factors_of(self.df, self.n_documents, prune=recipe.prune)
        """float64[size]: what a query's weight for each concept and word is multiplied by."""
        max_doublings = max((segment.most_doublings for segment in self.segments), default=0)
        self.curve = quantisation.impact_curve(recipe, doublings=max_doublings)
        self._highest_impact = float(self.curve.max())
        self._live: Masks = [
            _read_only(np.empty(0, np.bool_) if deleted is None else ~deleted.mask) for deleted in self.tombstones
        ]
        self._impacts: list[Any] = [None] * len(self.segments)
        self._shifts: dict[int, NDArray[np.uint16]] = {}
        self._free_workspaces: deque[Any] = deque()

    @staticmethod
    def from_vectors(
        document_vectors: SparseVectors, recipe: Recipe, *, words: SparseVectors | None = None
    ) -> DocumentScorer:
        """In memory, from pooled document vectors, before the transform, and from the counts of words beside them."""
        segment = packed(document_vectors, recipe, words=words)
        return DocumentScorer([segment], recipe, size=segment.size, concepts=document_vectors.size)

    @property
    def n_postings(self) -> int:
        """Number of postings of live documents."""
        return int(self.df.sum())

    def factors_of(self, df: NDArray[np.int64], n_documents: int, *, prune: float = 0.0) -> NDArray[np.float64]:
        """The factors that document frequencies int64[size] among so many documents give."""
        own, words = np.split(df, [self.concepts])
        factors = bm25.query_factors(own, n_documents, self.recipe.weighting, prune=prune)
        return np.concatenate([factors, bm25.word_factors(words, n_documents, self.recipe)])

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
        width, masks = min(k, self.n_documents), self.masks(allowed)

        def search(row: int) -> Ranking:
            return self._search_one(*queries.of(row), width, masks)

        return search_all(search, len(queries), width, threads=threads, per_task=QUERIES_PER_TASK)

    def scores(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scores of all documents for one query with its final weights, and which of them share a latent with it.

        Deleted documents score 0 and share none.
        """
        return self._score_all(ids, weights, self._live)

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
        place = int(np.searchsorted(self.bases, position, side="right")) - 1
        segment, local = self.segments[place], position - int(self.bases[place])
        codes, latents = np.zeros(len(ids), np.uint8), ids.astype(np.uint32)
        if not self._compiled(ids):
            codes = segment.numpy_lists.codes_of(latents, local)
        elif self._topk.random_access.codes_of(latents, segment.lists, local, codes) < 0:
            raise damaged()
        shift = int(self._shifts_of(place)[local])
        return np.where(codes > 0, self.curve[2 * codes.astype(np.int64) + shift], np.float32(0))

    def documents(self, positions: Sequence[int] | NDArray[np.int64]) -> SparseVectors:
        """Vectors of some documents, in that order: their latents and impacts, with words where the recipe has any."""
        wanted, order = np.unique(np.asarray(positions, np.int64), return_inverse=True)
        parts = []
        for place, segment in enumerate(self.segments):
            low, high = np.searchsorted(wanted, self.bases[place : place + 2])
            local = wanted[low:high] - self.bases[place]
            if not len(local):
                continue
            codes = segment.documents(local)
            if not self.recipe.words and segment.size > self.concepts:
                codes = codes.divided(self.concepts)[0]
            shifts = np.repeat(self._shifts_of(place)[local].astype(np.int64), np.diff(codes.offsets))
            weights = self.curve[2 * codes.codes.astype(np.int64) + shifts]
            parts.append(SparseVectors(codes.ids, weights, codes.offsets, self.size))
        return SparseVectors.concatenate(parts, size=self.size).take(order)

    def df_within(self, ids: NDArray[np.int32], allowed: Masks) -> NDArray[np.int64]:
        """Document frequencies of some latents among the allowed documents."""
        total, latents, compiled = np.zeros(len(ids), np.int64), ids.astype(np.uint32), self._compiled(ids)
        for segment, mask in zip(self.segments, self._live_masks(allowed), strict=True):
            if not compiled:
                segment.numpy_lists.count_within(latents, mask, total)
            elif self._topk.random_access.count_within(latents, segment.lists, mask, total) < 0:
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
            return _read_only(mask & live if len(live) and len(mask) else (mask if len(mask) else live))

        return [both(mask, live) for mask, live in zip(allowed, self._live, strict=True)]

    def _compiled(self, ids: NDArray[np.int32]) -> bool:
        """Whether the lists of some latents are read by the kernels."""
        known = ids[(ids >= 0) & (ids < len(self.df))]
        return group(binary=self.recipe.binary).use(float(self.df[known].sum()) * NUMPY_SECONDS_PER_POSTING)

    @cached_property
    def _topk(self) -> Any:
        """The package of the kernels, imported on first use, since Numba is slow to import."""
        import lexent.topk.counting
        import lexent.topk.random_access
        import lexent.topk.weighted

        return lexent.topk

    def _search_one(self, ids: NDArray[np.int32], weights: NDArray[np.float32], k: int, masks: Masks) -> Ranking:
        """The best documents of one query."""
        if not self._compiled(ids):
            return self._best_of_all(ids, weights, k, masks)
        weighted, counting = self._topk.weighted, self._topk.counting
        scale = quantisation.query_scale(weights, self._highest_impact)
        query = (ids, weights, scale)
        state = np.array([0, 0, self._topk.bound_pruning.NEUTRAL_AGGRESSIVENESS])
        scores, documents = heap = np.zeros(k, np.int32), np.full(k, -1, np.int64)
        workspace = self._borrow_workspace()
        counts = workspace.counts_8bit if len(ids) <= counting.MAX_TERMS_8BIT else workspace.counts_16bit
        try:
            for place, segment in enumerate(self.segments):
                mask, lists, base = masks[place], segment.lists, int(self.bases[place])
                probed = len(mask) > 0 and np.count_nonzero(mask) <= MAX_ALLOWED_TO_PROBE
                outcome = counting.TOO_MANY_WEIGHTS
                if self.recipe.binary and not probed:
                    outcome = counting.top_k(*query, segment.size, lists, mask, base, *heap, state, workspace, counts)
                if outcome == counting.TOO_MANY_WEIGHTS:
                    selected = (mask, np.flatnonzero(mask) if probed else NO_DOCUMENTS)
                    outcome = weighted.top_k(
                        *query, segment.size, lists, self._impacts_of(place), *selected, base, *heap, state, workspace
                    )
                if outcome == weighted.NEGATIVE_WEIGHT:  # no upper bound holds
                    return self._best_of_all(ids, weights, k, masks)
                if outcome < 0:
                    raise damaged()
        finally:
            self._free_workspaces.append(workspace)
        count = int(state[0])
        self._topk.heap.sort_heap(scores, documents, count)
        return documents[:count], scores[:count] / scale

    def _best_of_all(self, ids: NDArray[np.int32], weights: NDArray[np.float32], k: int, masks: Masks) -> Ranking:
        """The best documents of one query, by the scores of all."""
        totals, matched = self._score_all(ids, weights, masks)
        hits = np.flatnonzero(matched)
        order = hits[np.lexsort((hits, -totals[hits]))][:k]
        return order, totals[order]

    def _score_all(
        self, ids: NDArray[np.int32], weights: NDArray[np.float32], masks: Masks
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        scale = quantisation.query_scale(weights, self._highest_impact)
        latents, scaled = prepare_terms(ids, weights, scale, self.size)
        compiled = self._compiled(ids)
        n = int(self.bases[-1])
        scores, matched = np.zeros(n, np.int32), np.zeros(n, np.bool_)
        for place, segment in enumerate(self.segments):
            part = slice(self.bases[place], self.bases[place + 1])
            into = scores[part], matched[part]
            if not compiled:
                segment.numpy_lists.all_scores(latents, scaled, self.curve, self._shifts_of(place), *into)
            elif (
                self._topk.random_access.all_scores(latents, scaled, segment.lists, self._impacts_of(place), *into) < 0
            ):
                raise damaged()
            if len(masks[place]):
                matched[part] &= masks[place]
        return np.where(matched, scores / scale, 0.0), matched

    def _shifts_of(self, place: int) -> NDArray[np.uint16]:
        """uint16[n_documents]: the shifts of a segment's documents, made when it is first searched."""
        if place not in self._shifts:
            segment = self.segments[place]
            self._shifts[place] = quantisation.shifts(
                segment.lengths, self.average_length, self.recipe, doublings=segment.doublings()
            )
        return self._shifts[place]

    def _impacts_of(self, place: int) -> Any:
        """A segment's `SegmentImpacts`, made when the kernels first search it."""
        if self._impacts[place] is None:
            segment, shifts = self.segments[place], self._shifts_of(place)
            neutral, rises, lowest_shifts = quantisation.NEUTRAL_SHIFT, [], []
            bounds = pairwise(segment.arrays["chunks"][:, 0].tolist())
            for (start, stop), (average, b) in zip(bounds, segment.arrays["packed_with"], strict=True):
                lengths, doublings = segment.lengths[start:stop], segment.doublings(start, stop)
                packed_shifts = quantisation.narrow_shifts(lengths, average, self.recipe, b=b, doublings=doublings)
                narrow_shifts = shifts[start:stop].astype(np.int64) - quantisation.NARROW_SHIFT_OFFSET
                rise = narrow_shifts - packed_shifts.astype(np.int64)
                # A document without concepts is in no list, unless by its words.
                listed = True if segment.size > self.concepts else lengths > 0
                rises.append(int(rise.max(initial=-quantisation.CURVE_SIZE, where=listed)))
                lowest_shifts.append(int(shifts[start:stop].min(initial=neutral)))
            padded = np.concatenate([shifts, np.full(CHUNK_DOCUMENTS, neutral, np.uint16)])
            half_shifts = self._topk.workspace.aligned_zeros(len(padded))
            quantisation.half_shifts(padded, half_shifts)
            chunks = np.array(rises, np.int64), np.array(lowest_shifts, np.int64)
            self._impacts[place] = self._topk.weighted.SegmentImpacts(self.curve, padded, half_shifts, *chunks)
        return self._impacts[place]

    def _borrow_workspace(self) -> Any:
        try:
            return self._free_workspaces.pop()
        except IndexError:
            return self._topk.workspace.new_workspace(binary=self.recipe.binary)


def packed(vectors: SparseVectors, recipe: Recipe, *, words: SparseVectors | None = None) -> Segment:
    """A segment in memory, from pooled vectors before the transform. words: counts of words, numbered from 0."""
    codes, concepts = Codes.of(vectors, recipe), vectors.size
    if words is None:
        return Segment.pack(codes, size=concepts, recipe=recipe)
    packer = Packer(size=concepts + words.size, recipe=recipe, concepts=concepts)
    packer.add(codes.with_words(words.above(concepts)))
    return packer.segment()


def _read_only(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The mask as filters give it: kernels are compiled once for read-only masks, and once more for writable ones."""
    view = mask.view()
    view.setflags(write=False)
    return view
