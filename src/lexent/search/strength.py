"""The strength of a hit: a score between 0 and 1 that means the same for every query.

Scores grow with the length of a query and with the rarity of its concepts. Divided by the length of the query's vector
they are set on a scale whose ends the index itself gives: what a query of concepts drawn from many documents gets from
its best document (0: no better than words thrown together), and what a document gets from its own strongest concepts
(1: as a passage of the document itself). By MaxSim the ends are documents drawn at random, and one that has
every token.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexent import forks
from lexent.search.query import Query
from lexent.types import SparseVectors

if TYPE_CHECKING:
    from lexent.search.document_scorer import DocumentScorer
    from lexent.search.maxsim_scorer import MaxSimScorer

SAMPLED_DOCUMENTS = 96
DRAWN_QUERIES = 24
"""Queries that the lower end of the scale is the mean of."""
QUERY_CONCEPTS, QUERY_WORDS = 90, 6
"""Concepts of those queries, and words where the index has them: about as many as a question of ten words has."""


class StrengthScale:
    """Turns the scores of one generation of an index into strengths. The ends of its scale are made on first use."""

    def __init__(self, scorer: DocumentScorer, maxsim: MaxSimScorer | None = None) -> None:
        self._scorer = scorer
        self._maxsim = maxsim
        self._ends: tuple[float, float] | None = None
        self._making = threading.RLock()
        forks.renew_lock(self, "_making")

    def of(self, query: Query, score: float) -> float:
        """The strength of a score of a query."""
        if self._maxsim is not None:
            low, high = self._ends_of_rows(query, self._maxsim)
        else:
            length = float(np.linalg.norm(query.weights.astype(np.float64)))
            score = score / length if length else 0.0
            with self._making:
                if self._ends is None:
                    self._ends = self._measured()
            low, high = self._ends
        return float(np.clip((score - low) / (high - low), 0.0, 1.0)) if high > low else 0.0

    def _measured(self) -> tuple[float, float]:
        """The scores over the length of the query that have the strengths 0 and 1."""
        scorer, random = self._scorer, np.random.default_rng(0)
        live = self._live()
        if not len(live):
            return 0.0, 0.0
        chosen = np.sort(random.permutation(live)[:SAMPLED_DOCUMENTS])
        documents = scorer.documents(chosen)
        weights = documents.values.astype(np.float64) * scorer.factors[documents.ids]
        own = []
        for part in (slice(*documents.offsets[row : row + 2]) for row in range(len(documents))):
            is_word = documents.ids[part] >= scorer.concepts
            own.append(_own_score(weights[part], documents.values[part], is_word))
        mixed = [self._mixed(documents, weights, random) for _ in range(DRAWN_QUERIES)]
        best = scorer.top_weighted(SparseVectors.concatenate(mixed, size=scorer.size), 1)
        drawn = [max(float(np.linalg.norm(query.values)), 1e-12) for query in mixed]
        few = min(1.0, len(documents) / QUERY_CONCEPTS)  # of the concepts of a query from elsewhere, few are there
        return few * float(np.mean(best.scores[:, 0] / drawn)), float(np.median(own))

    def _mixed(
        self, documents: SparseVectors, weights: NDArray[np.float64], random: np.random.Generator
    ) -> SparseVectors:
        """A query of concepts and words that are drawn from many documents."""
        scorer = self._scorer
        is_word = documents.ids >= scorer.concepts
        order = random.permutation(len(documents.ids))
        drawn = np.concatenate([order[~is_word[order]][:QUERY_CONCEPTS], order[is_word[order]][:QUERY_WORDS]])
        ids, first = np.unique(documents.ids[drawn], return_index=True)
        values = weights[drawn][first].astype(np.float32)
        kept = values != 0
        offsets = np.array([0, int(kept.sum())], np.int64)
        return SparseVectors(ids[kept], values[kept], offsets, scorer.size)

    def _live(self) -> NDArray[np.int64]:
        """Positions of the documents that are not deleted."""
        masks = self._scorer.masks(None)
        counts = np.diff(self._scorer.bases)
        found = [mask if len(mask) else np.ones(count, np.bool_) for mask, count in zip(masks, counts, strict=True)]
        return np.flatnonzero(np.concatenate([*found, np.empty(0, np.bool_)]))

    def _ends_of_rows(self, query: Query, maxsim: MaxSimScorer) -> tuple[float, float]:
        """By MaxSim: the mean score of documents drawn at random, and that of one that has every token of the query."""
        rows = query.rows
        assert rows is not None
        owners = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
        highest = float(np.sqrt(np.bincount(owners, rows.weights.astype(np.float64) ** 2)).sum())
        drawn = np.random.default_rng(0).permutation(self._live())[:DRAWN_QUERIES].tolist()
        lowest = [float(maxsim.contributions(query, position)[1].sum()) for position in drawn]
        return float(np.mean(lowest)) if lowest else 0.0, highest


def _own_score(weights: NDArray[np.float64], impacts: NDArray[np.float32], is_word: NDArray[np.bool_]) -> float:
    """The score of a document for its strongest concepts and words, over the length of that query."""
    ranked = np.argsort(-weights, kind="stable")
    order = np.concatenate([ranked[~is_word[ranked]][:QUERY_CONCEPTS], ranked[is_word[ranked]][:QUERY_WORDS]])
    length = float(np.linalg.norm(weights[order]))
    return float(weights[order] @ impacts[order]) / length if length else 0.0
