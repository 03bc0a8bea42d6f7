"""Query to hits: weigh, steer, match, explain."""

from lexent.search.document_scorer import DocumentScorer
from lexent.search.feedback import Feedback
from lexent.search.modes import Fast
from lexent.search.results import AddedConcept, DenseHit, Hit, QueryConcept, Results
from lexent.search.searcher import Searcher

__all__ = [
    "AddedConcept",
    "DenseHit",
    "DocumentScorer",
    "Fast",
    "Feedback",
    "Hit",
    "QueryConcept",
    "Results",
    "Searcher",
]
