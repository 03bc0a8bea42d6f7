"""A paper's analyses on any collection, as one report."""

from lexent.studies.reproduction.papers import PAPERS, Paper
from lexent.studies.reproduction.reproduce import Outcome, reproduce
from lexent.studies.reproduction.study import Sizes, Study

__all__ = ["PAPERS", "Outcome", "Paper", "Sizes", "Study", "reproduce"]
