"""MaxSim search by upper bounds: above 128 documents, where not every document is scored, and above one chunk.

Expected scores come from the slow twin (`lexent.topk.maxsim_reference`). Collections are drawn from a few distinct
documents, so that most scores are equal and the order of equals is tested too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lexent.indexing.forward.tokens import TokenStore
from lexent.indexing.postings import quantisation
from lexent.indexing.postings.layout import CHUNK_DOCUMENTS
from lexent.indexing.segment import Packer, Tombstones
from lexent.search import DocumentScorer, Fast
from lexent.search.maxsim_scorer import MAX_EXHAUSTIVE_DOCUMENTS, MaxSimScorer
from lexent.search.query import Query, QueryRows
from lexent.topk import maxsim_reference as reference
from lexent.topk.maxsim import BOUND_BINS, MIN_SCORED_DOCUMENTS
from lexent.types import RowCodes
from test_maxsim import SIZE, SSR, best, codes, pairs, random_query

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Collection:
    """Documents in several segments; each is a copy of one of a few distinct documents."""

    distinct: TokenStore
    copies: Ints  # [n_documents]: which of the distinct documents each one is
    edges: list[int]  # where segments begin, and the end of the last
    dead: Mask  # [n_documents]
    chunk: int
    scorer: MaxSimScorer

    @staticmethod
    def of(
        distinct: TokenStore, copies: Ints, edges: list[int], dead: Mask, *, chunk: int = CHUNK_DOCUMENTS
    ) -> Collection:
        stores, segments, tombstones = [], [], []
        for start, stop in pairwise(edges):
            stores.append(distinct.take(copies[start:stop]))
            packer = Packer(size=SIZE, recipe=SSR, chunk=chunk)
            packer.add(stores[-1].maxima(size=SIZE))
            segments.append(packer.segment())
            tombstones.append(Tombstones.of(segments[-1], dead[start:stop]) if dead[start:stop].any() else None)
        scorer = MaxSimScorer(DocumentScorer(segments, SSR, size=SIZE, tombstones=tombstones), stores)
        return Collection(distinct, copies, edges, dead, chunk, scorer)

    def masks(self, allowed: Mask) -> list[Mask]:
        return [allowed[start:stop] for start, stop in pairwise(self.edges)]

    def scores(self, query: Query) -> NDArray[np.float64]:
        """Of every document, deleted or not, by the slow twin."""
        weights, divisor = integers(query)
        assert query.rows is not None
        found = reference.scores(self.distinct, query.rows.ids, weights, query.rows.offsets)
        return found[self.copies] / divisor

    def chunks(self) -> list[tuple[int, int]]:
        """First document and end of every chunk."""
        return [
            (first, min(first + self.chunk, stop))
            for start, stop in pairwise(self.edges)
            for first in range(start, stop, self.chunk)
        ]


def integers(query: Query) -> tuple[NDArray[np.int32], float]:
    """The query's weights as integers, and what scores are divided by."""
    assert query.rows is not None
    factor = quantisation.row_scale(query.rows.weights, query.rows.offsets)
    return quantisation.quantise_weights(query.rows.weights, factor), factor * quantisation.LINEAR_STEPS


def drawn(
    seed: int, n: int, *, distinct: int, cuts: list[int], gone: float, chunk: int, rare: bool = False
) -> Collection:
    """rare: documents of at most one token of one latent, so that posting lists are short."""
    draw = np.random.default_rng(seed)
    tokens = draw.integers(0, 2 if rare else 9, distinct).tolist()
    store = TokenStore.of(codes(seed, tokens, k=1 if rare else 6), size=SIZE)
    copies = draw.integers(0, distinct, n) if distinct < n else draw.permutation(n)
    edges = sorted({0, n, *(cut for cut in cuts if cut < n)})
    return Collection.of(store, copies, edges, draw.random(n) < gone, chunk=chunk)


collections = {
    "seed": st.integers(0, 10_000),
    "n": st.integers(300, 700),
    "distinct": st.sampled_from([3, 40, 1000]),
    "cuts": st.lists(st.integers(1, 700), max_size=3),
    "gone": st.sampled_from([0.0, 0.2]),
    "share": st.sampled_from([None, 0.6, 1.0]),
    "chunk": st.sampled_from([150, CHUNK_DOCUMENTS]),
    "n_rows": st.integers(1, 6),
    "rare": st.booleans(),
}


@settings(max_examples=60, deadline=None)
@given(**collections, k=st.sampled_from([1, 3, 10, 100, 1000]), negative=st.booleans())
def test_exact_search_returns_the_top_k_of_brute_force(
    seed: int,
    n: int,
    distinct: int,
    cuts: list[int],
    gone: float,
    share: float | None,
    chunk: int,
    n_rows: int,
    rare: bool,
    k: int,
    negative: bool,
) -> None:
    """Negative weights have no upper bound: every document is scored."""
    made = drawn(seed, n, distinct=min(distinct, n), cuts=cuts, gone=gone, chunk=chunk, rare=rare)
    query = random_query(seed + 1, n_rows, negative=negative)
    allowed = np.random.default_rng(seed + 2).random(n) < (1.0 if share is None else share)
    live = allowed & ~made.dead
    assume(live.sum() > MAX_EXHAUSTIVE_DOCUMENTS)
    found = made.scorer.top([query], k, allowed=None if share is None else made.masks(allowed))
    assert pairs(found) == best(made.scores(query), k, live)


@settings(max_examples=60, deadline=None)
@given(
    **collections,
    k=st.sampled_from([1, 10, 1000]),
    concepts=st.integers(1, 6),
    candidates=st.sampled_from([1, 7, MIN_SCORED_DOCUMENTS, 150, 1000]),
)
def test_fast_search_returns_the_best_of_the_candidates(
    seed: int,
    n: int,
    distinct: int,
    cuts: list[int],
    gone: float,
    share: float | None,
    chunk: int,
    n_rows: int,
    rare: bool,
    k: int,
    concepts: int,
    candidates: int,
) -> None:
    made = drawn(seed, n, distinct=min(distinct, n), cuts=cuts, gone=gone, chunk=chunk, rare=rare)
    query = random_query(seed + 1, n_rows)
    allowed = np.random.default_rng(seed + 2).random(n) < (1.0 if share is None else share)
    live = allowed & ~made.dead
    assume(live.sum() > MAX_EXHAUSTIVE_DOCUMENTS)
    masks, mode = None if share is None else made.masks(allowed), Fast(concepts=concepts, candidates=candidates)
    found = made.scorer.top([query], k, allowed=masks, mode=mode)
    assert pairs(found) == fast(made, query, k, live, mode)


def fast(made: Collection, query: Query, k: int, live: Mask, mode: Fast) -> list[tuple[int, float]]:
    """The slow twin of the fast mode.

    A chunk's documents are scored in the order of their bounds, until there are enough candidates or, from FIRST on,
    until the next one, at the highest ratio of score to bound so far, would not be among the k best.
    """
    bounds, scores = bounds_of(made, query, mode.concepts) * live, made.scores(query) * integers(query)[1]
    heap: list[tuple[float, int]] = []
    for start, stop in made.chunks():
        ratio = 0.0
        for scored, place in enumerate(highest(bounds[start:stop])[: mode.candidates].tolist()):
            document = start + place
            if scored >= MIN_SCORED_DOCUMENTS and len(heap) == k and bounds[document] * ratio < -heap[-1][0]:
                break
            if scores[document] > 0:
                heap = sorted([*heap, (-scores[document], document)])[:k]
                ratio = max(ratio, scores[document] / bounds[document])
    return [(document, -score / integers(query)[1]) for score, document in heap]


def bounds_of(made: Collection, query: Query, concepts: int) -> Ints:
    """What documents are ordered by: highest codes times weights, over the strongest concepts of each query row."""
    rows, (weights, _) = query.rows, integers(query)
    assert rows is not None
    sums = np.zeros(SIZE, np.int64)
    for start, stop in pairwise(rows.offsets):
        strongest = np.lexsort((rows.ids[start:stop], -rows.weights[start:stop]))[:concepts] + start
        np.add.at(sums, rows.ids[strongest], weights[strongest])
    found = np.zeros(len(made.distinct), np.int64)
    for document in range(len(made.distinct)):
        held, most = made.distinct.document(document), np.zeros(SIZE, np.int64)
        np.maximum.at(most, held.latents, held.values)
        found[document] = most @ sums
    return found[made.copies]


def highest(bounds: Ints) -> Ints:
    """Documents of the highest bounds first, in BOUND_BINS bins; those of a bin in document order; none of bound 0."""
    shift = 0
    while int(bounds.max(initial=0)) >> shift >= BOUND_BINS:
        shift += 1
    order = np.lexsort((np.arange(len(bounds)), -(bounds >> shift)))
    return order[bounds[order] > 0]


def test_most_documents_are_left_out_by_their_bounds() -> None:
    """An exact search that scored every document would return the same; this one must not."""
    made = drawn(5, 4000, distinct=2000, cuts=[], gone=0.0, chunk=CHUNK_DOCUMENTS)
    query = random_query(1, 3)
    assert pairs(made.scorer.top([query], 5)) == best(made.scores(query), 5)
    assert made.scorer.scored(query, 5) < 2000
    assert made.scorer.scored(query, 5, mode=Fast(candidates=50)) <= 50


def one_row(latents: list[int]) -> Query:
    """A query of one token that asks for all of the latents alike."""
    n = len(latents)
    ids, weights = np.array(latents, np.int32), np.ones(n, np.float32)
    return Query.of_rows("", QueryRows(ids, weights, np.array([0, n]), np.zeros(1, np.int32), np.ones(1, np.float32)))


def test_a_document_whose_bound_is_the_threshold_may_belong_to_the_top_k() -> None:
    """Its score is its bound; many others have the same score, higher bounds and later places."""
    tight = ([[0, 5]], [[1.0, 0.0]])
    loose = ([[0, 5], [1, 5]], [[1.0, 0.0], [1.0, 0.0]])  # the bound adds up two tokens
    other = ([[9, 5]], [[1.0, 0.0]])
    rows = [tight, loose, other]
    ids = np.array([row for one, _ in rows for row in one], np.int32)
    values = np.array([row for _, one in rows for row in one], np.float32)
    store = TokenStore.of(RowCodes(ids, values, np.array([0, 1, 3, 4])), size=SIZE)
    copies = np.array([2] * 100 + [0] + [2] * 100 + [1] * 100)
    made = Collection.of(store, copies, [0, len(copies)], np.zeros(len(copies), np.bool_))
    assert pairs(made.scorer.top([one_row([0, 1])], 1)) == [(100, 1.0)]
    assert [position for position, _ in pairs(made.scorer.top([one_row([0, 1])], 3))] == [100, 201, 202]


@pytest.mark.parametrize(
    ("places", "form"), [([0, 600, 1200, 1800], 0), (range(40), 1), (range(0, 2000, 15), 2), (range(0, 2000, 2), 3)]
)
def test_posting_lists_of_every_form_add_their_whole_part_to_bounds(places: list[int], form: int) -> None:
    """Documents of one latent, whose score is their bound, beside many of lower scores and higher bounds."""
    ids = np.array([[0, 5], [1, 5], [2, 5]], np.int32)
    values = np.array([[1.0, 0.0], [0.7, 0.0], [0.7, 0.0]], np.float32)
    store = TokenStore.of(RowCodes(ids, values, np.array([0, 1, 3])), size=SIZE)
    copies = np.ones(2000, np.int64)
    copies[places] = 0
    made = Collection.of(store, copies, [0, 2000], np.zeros(2000, np.bool_))
    assert int(made.scorer.document_scorer.segments[0].arrays["records"][0, 0]) & 3 == form
    found = made.scorer.top([one_row([0, 1, 2])], 4)
    assert pairs(found) == [(place, 1.0) for place in list(places)[:4]]


def test_fast_search_goes_on_while_the_highest_ratio_may_reach_the_top_k() -> None:
    """One document has a score as high as its bound, so another of a lower bound than most may have one too."""
    ids = np.array([[0, 5], [1, 5], [2, 5], [1, 2]], np.int32)
    values = np.array([[1.0, 0.0], [0.7, 0.0], [0.7, 0.0], [1.0, 1.0]], np.float32)
    store = TokenStore.of(RowCodes(ids, values, np.array([0, 1, 3, 4])), size=SIZE)
    copies = np.ones(300, np.int64)
    copies[[150, 200]] = 2, 0
    made = Collection.of(store, copies, [0, 300], np.zeros(300, np.bool_))
    found = made.scorer.top([one_row([0, 1, 2])], 2, mode=Fast(concepts=3, candidates=2000))
    assert pairs(found) == [(150, 2.0), (200, 1.0)]


def test_bounds_beyond_31_bits_stay_bounds() -> None:
    """Of a query of hundreds of tokens: weights are divided, and rounded up."""
    made = drawn(3, 400, distinct=60, cuts=[], gone=0.0, chunk=CHUNK_DOCUMENTS)
    rows = random_query(4, 700, k=8).rows
    assert rows is not None
    query = Query.of_rows(
        "", QueryRows(rows.ids, np.ones_like(rows.weights), rows.offsets, rows.tokens, rows.strengths)
    )
    assert integers(query)[0].sum(dtype=np.int64) * 255 > 2**31
    assert pairs(made.scorer.top([query], 10)) == best(made.scores(query), 10)


@pytest.fixture(scope="module")
def large() -> Collection:
    """Two segments, the first of two chunks; of 300 distinct documents, common and rare, with deletions."""
    draw, n = np.random.default_rng(7), CHUNK_DOCUMENTS + 3000
    store = TokenStore.of(codes(7, draw.integers(0, 3, 300).tolist(), k=2), size=SIZE)
    shares = 1.0 / np.arange(1, 301) ** 2
    return Collection.of(
        store, draw.choice(300, n, p=shares / shares.sum()), [0, CHUNK_DOCUMENTS + 1000, n], draw.random(n) < 0.1
    )


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("k", [1, 10, 2000, 50_000])
def test_more_than_one_chunk(large: Collection, k: int, filtered: bool) -> None:
    segments = large.scorer.document_scorer.segments
    assert [len(segment.arrays["chunks"]) - 1 for segment in segments] == [2, 1]
    assert set((segments[0].arrays["records"][:, 0] & 3).tolist()) == {0, 1, 2, 3}  # posting lists in every form
    allowed = np.random.default_rng(k).random(len(large.copies)) < (0.5 if filtered else 1.0)
    live = allowed & ~large.dead
    for seed in range(3):
        query = random_query(seed, 3)
        masks = large.masks(allowed) if filtered else None
        scores = large.scores(query)
        assert pairs(large.scorer.top([query], k, allowed=masks)) == best(scores, k, live)
        mode = Fast(concepts=2, candidates=60)
        assert pairs(large.scorer.top([query], k, allowed=masks, mode=mode)) == fast(large, query, k, live, mode)


def test_the_best_document_may_stand_in_the_last_place_of_any_chunk() -> None:
    ids = np.array([[0, 1], [0, 2]], np.int32)
    values = np.array([[0.6, 0.8], [1.0, 0.0]], np.float32)
    store = TokenStore.of(RowCodes(ids, values, np.arange(3)), size=SIZE)
    n = CHUNK_DOCUMENTS + 200
    for place in (0, CHUNK_DOCUMENTS - 1, CHUNK_DOCUMENTS, n - 1):
        copies = np.zeros(n, np.int64)
        copies[place] = 1
        made = Collection.of(store, copies, [0, n], np.zeros(n, np.bool_))
        found = pairs(made.scorer.top([one_row([0])], 2))
        assert [position for position, _ in found] == [place, 0 if place else 1]
