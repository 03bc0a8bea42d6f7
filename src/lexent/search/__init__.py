"""Query to hits: weigh, steer, match, explain."""

from lexent.search.feedback import Feedback
from lexent.search.matching import Fast
from lexent.search.results import AddedConcept, DenseHit, Hit, QueryConcept, Results
from lexent.search.searcher import Searcher

__all__ = ["AddedConcept", "DenseHit", "Fast", "Feedback", "Hit", "QueryConcept", "Results", "Searcher"]
