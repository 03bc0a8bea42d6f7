"""Query to hits: weigh, steer, match, explain."""

from lexent.search.engine import Index
from lexent.search.results import Hit, QueryConcept, Results
from lexent.search.searcher import Searcher

__all__ = ["Hit", "Index", "QueryConcept", "Results", "Searcher"]
