"""A paper's analyses on any collection, as one report."""

from lexent.evaluation.reproduction.papers import PAPERS, Paper
from lexent.evaluation.reproduction.reproduce import Outcome, reproduce
from lexent.evaluation.reproduction.study import Sizes, Study

__all__ = ["PAPERS", "Outcome", "Paper", "Sizes", "Study", "reproduce"]
