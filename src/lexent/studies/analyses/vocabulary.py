"""The vocabulary of a collection: its concepts by rank and frequency beside its words, and by their kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from lexent.evaluation.collections import Collection
from lexent.evaluation.lexical import all_words
from lexent.evaluation.systems import Latent
from lexent.lexicon.concepts import Category
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


def zipf(collection: Collection, systems: Sequence[Latent]) -> Zipf:
    """Document frequencies by rank: of all words, stop words too, and of each system's concepts as they are indexed."""
    counts = Counter(word for text in all_words(collection.texts) for word in set(text))
    n = len(collection.documents)
    curves = [curve("words", np.array(list(counts.values()), np.int64), n)]
    for system in systems:
        curves.append(curve(system.name, system.scorer(collection).df, n))
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


@dataclass(frozen=True, slots=True)
class Categories:
    """Shares of lexical, narrow, broad and unknown concepts; each column sums to 1."""

    collection: str
    system: str
    concepts: int
    lexicon: dict[str, float]
    """Of the lexicon's concepts."""
    live: dict[str, float]
    """Of the concepts that any document has."""
    documents: dict[str, float]
    """Of all concepts of all documents: a concept counts as often as documents have it."""
    queries: dict[str, float]
    """The same for the queries, by the concepts that count."""

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        return asdict(self)

    def tables(self) -> list[Table]:
        """The results as tables."""
        columns = (self.lexicon, self.live, self.documents, self.queries)
        rows = tuple((name, *(f"{column[name]:.1%}" for column in columns)) for name in self.lexicon)
        head = (self.system, "of the lexicon", "of live ones", "in documents", "in queries")
        note = "in documents, in queries: a concept counts as often as it is active"
        return [Table(f"kinds of concepts, {self.concepts:,} in all", head, rows, note)]


def categories(collection: Collection, system: Latent) -> Categories:
    """Shares of each kind, in the lexicon and by use."""
    names = get_args(Category)
    kinds = np.array([names.index(concept.category) for concept in system.lexicon.concepts])
    scorer = system.scorer(collection)
    weights = scorer.query_weights(system.queries(collection))
    used = np.bincount(weights.ids[weights.values != 0], minlength=scorer.size)

    def shares(counts: NDArray[Any]) -> dict[str, float]:
        sums = np.bincount(kinds, weights=counts, minlength=len(names))
        return {name: float(share) for name, share in zip(names, sums / max(sums.sum(), 1e-12), strict=True)}

    return Categories(
        collection=collection.name,
        system=system.name,
        concepts=len(kinds),
        lexicon=shares(np.ones(len(kinds))),
        live=shares((scorer.df > 0).astype(np.float64)),
        documents=shares(scorer.df.astype(np.float64)),
        queries=shares(used.astype(np.float64)),
    )
