"""MaxSim over codes of tokens: every token of a query counts by the document's token that is most like it.

    S(Q, D) = sum over tokens i of Q of the highest, over tokens j of D, of  sum over concepts u of  z_i,u z_j,u

The lists of an index keep the highest code of each concept of a document, over its tokens; the store of tokens keeps
all of them. Scores are whole numbers until they are divided by their scale, so no order of summing changes one.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.errors import InputError
from lexent.indexing import scale
from lexent.indexing.tokens import TokenStore, damaged
from lexent.search.matching import Fast, Mode, fast_of
from lexent.search.query import Query, Rows
from lexent.search.searcher import Found, Masks, Searcher


@dataclass(frozen=True, slots=True)
class Aligned:
    """What each row of a query found in one document."""

    best: NDArray[np.int64]  # [n_rows]: the document's row that is most like it, the first of equals; -1 for none
    codes: NDArray[np.int64]  # [n_entries], of the query's rows: the code of that concept there, 0 where it lacks it
    gains: NDArray[np.int64]  # [n_entries]: the products; they sum to the score times `divisor`
    divisor: float


FEW = 128
"""Of so many documents that a filter lets through, or fewer, every one is scored."""


class MaxSim:
    """Token codes of the documents of a searcher. Safe to use from many threads."""

    def __init__(self, searcher: Searcher, stores: Sequence[TokenStore]) -> None:
        self.searcher = searcher
        self.stores = tuple(stores)
        self._scratch: deque[Any] = deque()

    def top(
        self,
        queries: Sequence[Query],
        k: int,
        *,
        allowed: Masks | None = None,
        mode: Mode = None,
        threads: int | None = None,
    ) -> Found:
        """The k best documents of each query. A document is a hit when its score is not 0."""
        if k < 0:
            raise InputError(f"k is {k}; allowed: 0 or more")
        fast, width = fast_of(mode, self.searcher.recipe), min(k, self.searcher.n_documents)
        positions = np.full((len(queries), width), -1, np.int64)
        scores = np.zeros((len(queries), width), np.float64)
        masks = self.searcher.masks(allowed)

        def search(row: int) -> None:
            who, found, divisor, _ = self._best(_rows(queries[row]), width, masks, fast)
            positions[row, : len(who)], scores[row, : len(who)] = who, found / divisor

        workers = min(len(queries), threads or os.cpu_count() or 1)
        if workers > 1 and width:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(search, range(len(queries))))
        else:
            for row in range(len(queries) if width else 0):
                search(row)
        return Found(positions, scores)

    def scored(self, query: Query, k: int, *, mode: Mode = None) -> int:
        """How many documents a search for the k best scores; the others were left out by their bounds."""
        width = min(k, self.searcher.n_documents)
        fast = fast_of(mode, self.searcher.recipe)
        return self._best(_rows(query), width, self.searcher.masks(None), fast)[3]

    def scores(self, query: Query) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The score of every document, and whether it is a hit. Deleted documents are none."""
        who = self._all(self.searcher.masks(None))
        found, divisor = self._refined(_rows(query), who)
        scores = np.zeros(int(self.searcher.bases[-1]), np.float64)
        scores[who] = found / divisor
        return scores, scores != 0

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """For each of a query's concepts what the document has of it, and what that adds to its score: exact.

        What a token of the query finds of a concept in its best token is weighed by what it asks for of it.
        """
        rows, aligned = _rows(query), self.align(query, position)
        places = np.searchsorted(query.ids, rows.ids)
        totals = np.bincount(places, weights=aligned.gains, minlength=len(query.ids))  # whole numbers below 2 ** 53
        values = totals / aligned.divisor
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(query.weights != 0, values / query.weights, 0.0)
        return shares.astype(np.float32), values

    def align(self, query: Query, position: int) -> Aligned:
        """For each row of a query its best row in a document, and the concepts that the two share."""
        rows = _rows(query)
        place = int(np.searchsorted(self.searcher.bases, position, side="right")) - 1
        found = self.stores[place].document(position - int(self.searcher.bases[place]))
        weights, divisor = _whole(rows)
        best, codes = np.full(len(rows), -1, np.int64), np.zeros(len(rows.ids), np.int64)
        if found.n_rows:
            # Every entry of the document beside every entry of the query that is of the same latent.
            order = np.argsort(rows.ids, kind="stable")
            low, high = (np.searchsorted(rows.ids[order], found.latents, side=side) for side in ("left", "right"))
            counts = high - low
            theirs = np.repeat(np.arange(len(counts)), counts)
            ours = order[np.arange(len(theirs)) - np.repeat(np.cumsum(counts) - counts - low, counts)]
            owners = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))[ours]
            places = owners * found.n_rows + found.rows[theirs]
            products = weights[ours].astype(np.int64) * found.values[theirs]
            sums = np.bincount(places, weights=products, minlength=len(rows) * found.n_rows)  # below 2 ** 53: exact
            best = sums.reshape(len(rows), found.n_rows).argmax(axis=1)
            there = found.rows[theirs] == best[owners]
            codes[ours[there]] = found.values[theirs[there]]
        return Aligned(best, codes, codes * weights, divisor)

    # --- how ---------------------------------------------------------------------------------------------------

    def _all(self, masks: Masks) -> NDArray[np.int64]:
        """The positions of all documents that the masks let through."""
        bases = self.searcher.bases.tolist()
        lengths = [segment.n_documents for segment in self.searcher.segments]
        found = [
            base + (np.flatnonzero(mask) if len(mask) else np.arange(length))
            for base, mask, length in zip(bases, masks, lengths, strict=False)
        ]
        return np.concatenate([np.empty(0, np.int64), *found])

    def _best(
        self, rows: Rows, k: int, masks: Masks, fast: Fast | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], float, int]:
        """Positions and whole-number scores of the best documents, strongest first, what to divide those by, and how
        many documents were scored.
        """
        from lexent.indexing import maxsim
        from lexent.indexing.heap import arrange

        weights, divisor = _whole(rows)
        few = self.searcher.n_allowed(masks) <= FEW
        if few or (weights < 0).any() or len(weights) > maxsim.MANY:  # no bound holds, or it does not pay
            who = self._all(masks)
            found, _ = self._refined(rows, who)
            hits = np.flatnonzero(found)
            order = hits[np.lexsort((who[hits], -found[hits]))][:k]
            return who[order], found[order], divisor, len(who)
        asked = maxsim.ask(rows.ids, weights, rows.offsets, size=self.searcher.size)
        latents, sums = asked.latents, np.add.reduceat(asked.values.astype(np.int64), asked.firsts[:-1])
        if fast is not None:
            latents, sums = _strongest(rows, weights, fast.concepts, size=self.searcher.size)
        best, who, state = np.zeros(k, np.int64), np.full(k, -1, np.int64), np.zeros(2, np.int64)
        scratch = self._borrow()
        try:
            for place, segment in enumerate(self.searcher.segments):
                query = (asked, latents, sums, 0 if fast is None else fast.candidates)
                places = (segment.lists, self.stores[place].checked, masks[place], int(self.searcher.bases[place]))
                if maxsim.top(*query, *places, best, who, state, scratch) < 0:
                    raise damaged()
        finally:
            self._scratch.append(scratch)
        count = int(state[0])
        arrange(best, who, count)
        return who[:count], best[:count], divisor, int(state[1])

    def _borrow(self) -> Any:
        from lexent.indexing import maxsim

        try:
            return self._scratch.pop()
        except IndexError:
            return maxsim.scratch()

    def _refined(self, rows: Rows, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], float]:
        """Whole-number scores of the documents at ascending positions, and what to divide them by."""
        from lexent.indexing import maxsim

        weights, divisor = _whole(rows)
        asked = maxsim.ask(rows.ids, weights, rows.offsets, size=self.searcher.size)
        scores = np.zeros(len(positions), np.int64)
        bases = self.searcher.bases
        for place, store in enumerate(self.stores):
            low, high = np.searchsorted(positions, bases[place : place + 2])
            local = positions[low:high] - bases[place]
            if len(local) and maxsim.refine(asked, store.checked, local, scores[low:high]) < 0:
                raise damaged()
        return scores, divisor


def _strongest(
    rows: Rows, weights: NDArray[np.int32], count: int, *, size: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The latents that are among the strongest of a row, ascending, and the sums of their weights there."""
    owners = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
    order = np.lexsort((rows.ids, -rows.weights, owners))
    rank = np.arange(len(order)) - rows.offsets[owners]  # rows stay together, so their places do
    kept = order[(rank < count) & (rows.ids[order] < size)]
    ids, places = np.unique(rows.ids[kept], return_inverse=True)
    return ids.astype(np.uint32), np.bincount(places, weights[kept], minlength=len(ids)).astype(np.int64)


def _rows(query: Query) -> Rows:
    assert query.rows is not None, "a query for MaxSim has rows"
    return query.rows


def _whole(rows: Rows) -> tuple[NDArray[np.int32], float]:
    """A query's weights as whole numbers, and what a score of theirs is divided by."""
    factor = scale.row_scale(rows.weights, rows.offsets)
    return scale.whole_numbers(rows.weights, factor), factor * scale.LINEAR


def of_stores(searcher: Searcher, sides: Sequence[dict[str, Any]]) -> MaxSim:
    """From what a snapshot has of each segment."""
    return MaxSim(searcher, [side[TokenStore.name] for side in sides])
