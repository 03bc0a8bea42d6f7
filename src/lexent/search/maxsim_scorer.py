"""MaxSim over token codes: each token of a query adds its highest similarity to a token of the document.

    S(Q, D) = sum over tokens i of Q of the maximum, over tokens j of D, of  sum over concepts u of  z_i,u z_j,u

The posting lists keep the highest code of each concept over a document's tokens; the token store keeps all codes.
Scores are integers until they are divided by their scale, so they do not depend on the order of summation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.errors import InputError
from lexent.indexing.forward.tokens import TokenStore, damaged
from lexent.indexing.postings import quantisation
from lexent.search.document_scorer import DocumentScorer, Masks, Ranking, TopDocuments, search_all
from lexent.search.modes import Fast, Mode, fast_of
from lexent.search.query import Query, QueryRows


@dataclass(frozen=True, slots=True)
class Aligned:
    """Alignment of a query's rows with the rows of one document."""

    best: NDArray[np.int64]  # [n_rows]: the most similar row of the document, the first of equals; -1 for none
    codes: NDArray[np.int64]  # [n_entries], of the query's rows: the code of that concept there, 0 where it lacks it
    contributions: NDArray[np.int64]  # [n_entries]: weight times code; they sum to the score times `divisor`
    divisor: float


MAX_EXHAUSTIVE_DOCUMENTS = 128
"""Where a filter allows at most this many documents, every one is scored."""


class MaxSimScorer:
    """Matches queries token by token against the documents of a document scorer. Thread-safe."""

    def __init__(self, document_scorer: DocumentScorer, stores: Sequence[TokenStore]) -> None:
        self.document_scorer = document_scorer
        self.stores = tuple(stores)
        self._free_workspaces: deque[Any] = deque()

    @staticmethod
    def of_forward_index(document_scorer: DocumentScorer, forward: Sequence[dict[str, Any]]) -> MaxSimScorer:
        """From the forward index of each segment."""
        return MaxSimScorer(document_scorer, [stores[TokenStore.name] for stores in forward])

    def top(
        self,
        queries: Sequence[Query],
        k: int,
        *,
        allowed: Masks | None = None,
        mode: Mode = None,
        threads: int | None = None,
    ) -> TopDocuments:
        """The k best documents of each query. A document is a hit when its score is not 0."""
        if k < 0:
            raise InputError(f"k is {k}; allowed: 0 or more")
        fast, width = fast_of(mode, self.document_scorer.recipe), min(k, self.document_scorer.n_documents)
        masks = self.document_scorer.masks(allowed)

        def search(row: int) -> Ranking:
            return self._search_one(_rows(queries[row]), width, masks, fast)[:2]

        return search_all(search, len(queries), width, threads=threads, per_task=1)

    def scored(self, query: Query, k: int, *, mode: Mode = None) -> int:
        """Number of documents that a search for the k best scores; the others are pruned by their upper bounds."""
        width = min(k, self.document_scorer.n_documents)
        fast = fast_of(mode, self.document_scorer.recipe)
        return self._search_one(_rows(query), width, self.document_scorer.masks(None), fast)[2]

    def scores(self, query: Query) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scores of all documents, and which of them are hits. Deleted documents are no hits."""
        positions = self._live_positions(self.document_scorer.masks(None))
        found, divisor = self._score(_rows(query), positions)
        scores = np.zeros(int(self.document_scorer.bases[-1]), np.float64)
        scores[positions] = found / divisor
        return scores, scores != 0

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Strength of each of a query's concepts in a document, and its exact contribution to the score.

        The strength is the mean over the query's rows of the code in the most similar row, weighted by the query.
        """
        rows, aligned = _rows(query), self.align(query, position)
        places = np.searchsorted(query.ids, rows.ids)
        totals = np.bincount(
            places, weights=aligned.contributions, minlength=len(query.ids)
        )  # integers below 2 ** 53: exact
        values = totals / aligned.divisor
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(query.weights != 0, values / query.weights, 0.0)
        return shares.astype(np.float32), values

    def align(self, query: Query, position: int) -> Aligned:
        """Finds for each row of a query its most similar row in a document, and the concepts that the two share."""
        rows = _rows(query)
        place = int(np.searchsorted(self.document_scorer.bases, position, side="right")) - 1
        found = self.stores[place].document(position - int(self.document_scorer.bases[place]))
        weights, divisor = _quantised(rows)
        best, codes = np.full(len(rows), -1, np.int64), np.zeros(len(rows.ids), np.int64)
        if found.n_rows:
            # Pairs of an entry of the document and an entry of the query of the same latent.
            order = np.argsort(rows.ids, kind="stable")
            low, high = (np.searchsorted(rows.ids[order], found.latents, side=side) for side in ("left", "right"))
            counts = high - low
            of_document = np.repeat(np.arange(len(counts)), counts)
            of_query = order[np.arange(len(of_document)) - np.repeat(np.cumsum(counts) - counts - low, counts)]
            owners = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))[of_query]
            places = owners * found.n_rows + found.rows[of_document]
            products = weights[of_query].astype(np.int64) * found.values[of_document]
            sums = np.bincount(places, weights=products, minlength=len(rows) * found.n_rows)  # below 2 ** 53: exact
            best = sums.reshape(len(rows), found.n_rows).argmax(axis=1)
            in_best_row = found.rows[of_document] == best[owners]
            codes[of_query[in_best_row]] = found.values[of_document[in_best_row]]
        return Aligned(best, codes, codes * weights, divisor)

    # --- how ---------------------------------------------------------------------------------------------------

    def _live_positions(self, masks: Masks) -> NDArray[np.int64]:
        """Positions of all documents that the masks allow."""
        bases = self.document_scorer.bases.tolist()
        lengths = [segment.n_documents for segment in self.document_scorer.segments]
        positions = [
            base + (np.flatnonzero(mask) if len(mask) else np.arange(length))
            for base, mask, length in zip(bases, masks, lengths, strict=False)
        ]
        return np.concatenate([np.empty(0, np.int64), *positions])

    def _search_one(
        self, rows: QueryRows, k: int, masks: Masks, fast: Fast | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
        """Positions and scores of the best documents, highest first, and how many documents were scored."""
        from lexent.topk import maxsim
        from lexent.topk.heap import sort_heap

        weights, divisor = _quantised(rows)
        exhaustive = self.document_scorer.n_allowed(masks) <= MAX_EXHAUSTIVE_DOCUMENTS
        if (
            exhaustive or (weights < 0).any() or len(weights) > maxsim.MAX_QUERY_LATENTS
        ):  # no upper bound holds, or pruning does not pay
            documents = self._live_positions(masks)
            found, _ = self._score(rows, documents)
            hits = np.flatnonzero(found)
            order = hits[np.lexsort((documents[hits], -found[hits]))][:k]
            return documents[order], found[order] / divisor, len(documents)
        inverted = maxsim.invert_query(rows.ids, weights, rows.offsets, size=self.document_scorer.size)
        latents, sums = inverted.latents, np.add.reduceat(inverted.values.astype(np.int64), inverted.firsts[:-1])
        if fast is not None:
            latents, sums = _strongest_latents(rows, weights, fast.concepts, size=self.document_scorer.size)
        scores, documents, state = heap = np.zeros(k, np.int64), np.full(k, -1, np.int64), np.zeros(2, np.int64)
        workspace = self._borrow_workspace()
        try:
            for place, segment in enumerate(self.document_scorer.segments):
                query = (inverted, latents, sums, 0 if fast is None else fast.candidates)
                places = (
                    segment.lists,
                    self.stores[place].checked,
                    masks[place],
                    int(self.document_scorer.bases[place]),
                )
                if maxsim.top_k(*query, *places, *heap, workspace) < 0:
                    raise damaged()
        finally:
            self._free_workspaces.append(workspace)
        count = int(state[0])
        sort_heap(scores, documents, count)
        return documents[:count], scores[:count] / divisor, int(state[maxsim.SCORED])

    def _borrow_workspace(self) -> Any:
        from lexent.topk import maxsim

        try:
            return self._free_workspaces.pop()
        except IndexError:
            return maxsim.new_workspace()

    def _score(self, rows: QueryRows, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], float]:
        """Integer scores of the documents at ascending positions, and their divisor."""
        from lexent.topk import maxsim

        weights, divisor = _quantised(rows)
        inverted = maxsim.invert_query(rows.ids, weights, rows.offsets, size=self.document_scorer.size)
        scores = np.zeros(len(positions), np.int64)
        bases = self.document_scorer.bases
        for place, store in enumerate(self.stores):
            low, high = np.searchsorted(positions, bases[place : place + 2])
            local = positions[low:high] - bases[place]
            if len(local) and maxsim.score_documents(inverted, store.checked, local, scores[low:high]) < 0:
                raise damaged()
        return scores, divisor


def _strongest_latents(
    rows: QueryRows, weights: NDArray[np.int32], count: int, *, size: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Latents that are among the strongest of a row, ascending, and the sums of their weights in those rows."""
    owners = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
    order = np.lexsort((rows.ids, -rows.weights, owners))
    rank = np.arange(len(order)) - rows.offsets[owners]  # rows stay together in the sort
    kept = order[(rank < count) & (rows.ids[order] < size)]
    ids, places = np.unique(rows.ids[kept], return_inverse=True)
    return ids.astype(np.uint32), np.bincount(places, weights[kept], minlength=len(ids)).astype(np.int64)


def _rows(query: Query) -> QueryRows:
    assert query.rows is not None, "a query for MaxSim has rows"
    return query.rows


def _quantised(rows: QueryRows) -> tuple[NDArray[np.int32], float]:
    """A query's weights as integers, and the divisor of their scores."""
    factor = quantisation.row_scale(rows.weights, rows.offsets)
    return quantisation.quantise_weights(rows.weights, factor), factor * quantisation.LINEAR_STEPS
