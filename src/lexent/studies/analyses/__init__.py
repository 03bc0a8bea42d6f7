"""Analyses of retrieval: mismatch sets, costs, sweeps over settings, rank and frequency, kinds of concepts.

Each is a function of a collection and one or several systems, and gives a frozen value with `to_json` and `tables`.
"""

from lexent.evaluation.analyses.analyse import ANALYSES, QUICK, Analyses, analyse
from lexent.evaluation.analyses.categories import Categories, categories
from lexent.evaluation.analyses.costs import Costs, costs
from lexent.evaluation.analyses.ks import ks
from lexent.evaluation.analyses.mismatch import Mismatch, mismatch
from lexent.evaluation.analyses.settings import caps, pruning, published, weightings
from lexent.evaluation.analyses.sweep import Sweep
from lexent.evaluation.analyses.table import Analysis, Table
from lexent.evaluation.analyses.usage import Usage
from lexent.evaluation.analyses.zipf import Zipf, zipf

__all__ = [
    "ANALYSES",
    "QUICK",
    "Analyses",
    "Analysis",
    "Categories",
    "Costs",
    "Mismatch",
    "Sweep",
    "Table",
    "Usage",
    "Zipf",
    "analyse",
    "caps",
    "categories",
    "costs",
    "ks",
    "mismatch",
    "pruning",
    "published",
    "weightings",
    "zipf",
]
