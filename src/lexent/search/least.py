"""The least score or strength of a hit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexent import arguments

if TYPE_CHECKING:
    from lexent.search.document_scorer import TopDocuments
    from lexent.search.query import Query
    from lexent.search.searcher import Searcher


@dataclass(frozen=True, slots=True)
class Least:
    """What a document must reach to be a hit."""

    score: float | None
    strength: float | None
    """From 0 to 1."""

    @staticmethod
    def of(score: object, strength: object) -> Least:
        """Both, checked; None where there is no such bound."""
        least_score = None if score is None else arguments.number("min_score", score)
        least_strength = None if strength is None else arguments.number("min_strength", strength)
        if least_strength is not None and not 0 <= least_strength <= 1:
            raise arguments.refused("min_strength", strength, "from 0 to 1", "it is the strength that each hit shows")
        return Least(least_score, least_strength)

    def kept(self, searcher: Searcher, query: Query, found: TopDocuments, row: int) -> NDArray[np.int64]:
        """Positions of the documents of a query that reach it. Scores fall, so these are the first ones."""
        positions, scores = found.positions[row], found.scores[row]
        n = int(np.count_nonzero(positions >= 0))
        if self.score is not None:
            n = int(np.count_nonzero(scores[:n] >= self.score))
        if self.strength is not None:
            strong = (searcher.strength(query, score) >= self.strength for score in scores[:n].tolist())
            n = next((place for place, reached in enumerate(strong) if not reached), n)
        kept: NDArray[np.int64] = positions[:n]
        return kept
