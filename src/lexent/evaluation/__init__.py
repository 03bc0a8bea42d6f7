"""How good a ranking is: collections, measures, baselines and reports."""

from lexent.evaluation.collections import Collection, load
from lexent.evaluation.evaluate import Report, evaluate

__all__ = ["Collection", "Report", "evaluate", "load"]
