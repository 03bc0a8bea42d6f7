"""Rank and frequency: are a collection's concepts spread as its words are?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.evaluation.collections import Collection
from lexent.evaluation.lexical import all_words
from lexent.evaluation.progress import Progress
from lexent.evaluation.systems import Latent
from lexent.nan_safe import UNDEFINED, plain, shown
from lexent.studies.analyses.table import Table

CURVE_POINTS = 60
"""Ranks that are kept of a curve, evenly spaced on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Terms by how many documents have them, the most frequent first."""

    name: str
    terms: int
    ranks: tuple[int, ...]
    frequencies: tuple[int, ...]
    """Documents that have the term of each of these ranks."""
    slope: float
    """Of the straight line through these points, both axes logarithmic; words of a language have about -1. Undefined
    for a single point."""
    common: float
    """Share of the terms that more than half of the documents have."""
    lone: float
    """Share of the terms that only one document has."""

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        points = [list(point) for point in zip(self.ranks, self.frequencies, strict=True)]
        facts = plain({"slope": self.slope, "common": self.common, "lone": self.lone})
        return {"name": self.name, "terms": self.terms, **facts, "points": points}


@dataclass(frozen=True, slots=True)
class Zipf:
    """The curves of words and of each system's concepts."""

    collection: str
    documents: int
    curves: tuple[Curve, ...]

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        curves = [curve.to_json() for curve in self.curves]
        return {"collection": self.collection, "documents": self.documents, "curves": curves}

    def tables(self) -> list[Table]:
        """The results as tables."""
        head = ("terms", "in use", "slope", "in > half of documents", "in one document", "documents of the first")
        rows = tuple(
            (
                *(each.name, each.terms, shown(each.slope, ".2f"), shown(each.common, ".2%"), shown(each.lone, ".1%")),
                next(iter(each.frequencies), 0),
            )
            for each in self.curves
        )
        note = "slope: of the line through rank and document frequency, both logarithmic; words: stop words too"
        return [Table(f"rank and frequency over {self.documents:,} documents", head, rows, note)]


def zipf(collection: Collection, systems: Sequence[Latent], *, progress: Progress | None = None) -> Zipf:
    """Document frequencies by rank: of all words, stop words too, and of each system's concepts as they are indexed."""
    counts = Counter(word for text in all_words(collection.texts) for word in set(text))
    n = len(collection.documents)
    curves = [curve("words", np.array(list(counts.values()), np.int64), n)]
    for system in systems:
        curves.append(curve(system.name, system.scorer(collection, progress=progress).df, n))
    return Zipf(collection.name, n, tuple(curves))


def curve(name: str, df: NDArray[np.int64], n_documents: int) -> Curve:
    """From the document frequencies of all terms, in any order."""
    ordered = -np.sort(-df[df > 0])
    terms = len(ordered)
    if not terms:
        return Curve(name, 0, (), (), UNDEFINED, UNDEFINED, UNDEFINED)
    ranks = np.unique(np.rint(np.geomspace(1, terms, CURVE_POINTS)).astype(np.int64))
    frequencies = ordered[ranks - 1]
    line = np.polyfit(np.log10(ranks), np.log10(frequencies), 1) if len(ranks) > 1 else (UNDEFINED, UNDEFINED)
    return Curve(
        name=name,
        terms=terms,
        ranks=tuple(ranks.tolist()),
        frequencies=tuple(frequencies.tolist()),
        slope=float(line[0]),
        common=float(np.mean(ordered > n_documents / 2)),
        lone=float(np.mean(ordered == 1)),
    )
