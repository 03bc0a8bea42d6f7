"""A recipe with relevance feedback, as a system under test."""

from __future__ import annotations

from dataclasses import dataclass

from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress
from lexent.evaluation.runs import Run, from_top, self_matches
from lexent.evaluation.systems import Latent
from lexent.search.feedback import Feedback, expansions
from lexent.types import SparseVectors


@dataclass(frozen=True, slots=True)
class Expanded:
    """A recipe that searches twice: the second time with concepts of the first hits."""

    first: Latent
    feedback: Feedback

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.first.name}+{self.feedback.method}"

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The documents that this system finds for each query, with their scores."""
        scorer = self.first.scorer(collection, progress=progress)
        weights = scorer.query_weights(self.first.queries(collection, progress=progress))
        own = self_matches(collection)
        places = {document.id: place for place, document in enumerate(collection.documents)}
        skipped = [places[own[query]] if query in own else -1 for query in collection.queries]
        learned = expansions(scorer, weights, self.feedback, skipped=skipped if own else None)
        found = [each.query for each in learned]
        best = scorer.top_weighted(SparseVectors.concatenate(found, size=scorer.size), depth + 1)
        return from_top(collection, best.positions, scores=best.scores, depth=depth)
