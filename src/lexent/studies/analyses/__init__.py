"""Analyses of retrieval: mismatch sets, costs, sweeps over settings, rank and frequency, kinds of concepts.

Each is a function of a collection and one or several systems, and gives a frozen value with `to_json` and `tables`.
`caps`, `ks`, `weightings`, `pruning` and `published` give the settings of a system that `sweep` compares.
"""

from lexent.studies.analyses.analyse import ANALYSES, QUICK, Analyses, analyse
from lexent.studies.analyses.mismatch import Mismatch, mismatch
from lexent.studies.analyses.settings import Settings, Sweep, caps, ks, pruning, published, sweep, weightings
from lexent.studies.analyses.table import Analysis, Table
from lexent.studies.analyses.usage import Costs, Usage, costs
from lexent.studies.analyses.vocabulary import Categories, Zipf, categories, zipf

__all__ = [
    "ANALYSES",
    "QUICK",
    "Analyses",
    "Analysis",
    "Categories",
    "Costs",
    "Mismatch",
    "Settings",
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
    "sweep",
    "weightings",
    "zipf",
]
