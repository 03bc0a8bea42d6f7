"""A paper's analyses on any collection, as one report."""

from lexent.studies.reproduction.reproduce import Outcome, reproduce
from lexent.studies.reproduction.study import PAPERS, Paper, Sizes, Study

__all__ = ["PAPERS", "Outcome", "Paper", "Sizes", "Study", "reproduce"]
