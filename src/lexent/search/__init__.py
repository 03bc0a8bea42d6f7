"""Query to hits: weigh, steer, match, explain."""

from lexent.search.engine import Index
from lexent.search.feedback import Feedback
from lexent.search.results import AddedConcept, Hit, QueryConcept, Results
from lexent.search.searcher import Searcher

__all__ = ["AddedConcept", "Feedback", "Hit", "Index", "QueryConcept", "Results", "Searcher"]
