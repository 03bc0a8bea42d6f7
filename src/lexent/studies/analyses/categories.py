"""Of which kinds a lexicon's concepts are, and which kinds a collection uses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress
from lexent.evaluation.systems import Latent
from lexent.lexicon.concepts import Category
from lexent.studies.analyses.table import Table


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


def categories(collection: Collection, system: Latent, *, progress: Progress | None = None) -> Categories:
    """Shares of each kind, in the lexicon and by use."""
    names = get_args(Category)
    kinds = np.array([names.index(concept.category) for concept in system.lexicon.concepts])
    scorer = system.scorer(collection, progress=progress)
    weights = scorer.query_weights(system.queries(collection, progress=progress))
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
