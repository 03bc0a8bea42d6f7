"""The interface of matchers: by posting lists of whole documents, or token by token (MaxSim)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from lexent import arguments
from lexent.errors import InputError
from lexent.recipes import Recipe
from lexent.search.query import Query
from lexent.search.searcher import Masks, Searcher, TopDocuments
from lexent.types import SparseVectors

ModeName = Literal["exact", "fast"]


@dataclass(frozen=True, slots=True)
class Fast:
    """Approximate search (SSR++): candidates by the strongest concepts of each query token, exact scores for those.

    A document that is no candidate is not found, however high it would score.
    """

    concepts: int = 4
    """Strongest concepts of each token that candidates are found by."""
    candidates: int = 2000
    """Documents that are scored, at most, in each chunk of an index (up to 65,536 documents of a segment)."""

    def __post_init__(self) -> None:
        for name, given in (("concepts", self.concepts), ("candidates", self.candidates)):
            arguments.whole(f"{name} of the fast mode", given, least=1)


Mode = ModeName | Fast | None
"""Search mode: "exact"; "fast", with the default settings; `Fast` with others; None for the recipe's own."""


def fast_of(mode: Mode, recipe: Recipe) -> Fast | None:
    """Settings of the fast mode; None for the exact mode."""
    if mode is None:
        return Fast() if recipe.fast else None
    if isinstance(mode, Fast):
        return mode
    return Fast() if arguments.choice("mode", mode, get_args(ModeName)) == "fast" else None


class Matcher(Protocol):
    """Scores the documents of an index for queries."""

    def top(self, queries: Sequence[Query], k: int, *, allowed: Masks | None = None, mode: Mode = None) -> TopDocuments:
        """The k best documents of each query. allowed: documents that may be found."""
        ...

    def scores(self, query: Query) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scores of all documents, and which of them are hits. Deleted documents are no hits."""
        ...

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Strength of each of the query's concepts in a document, and its exact contribution to the score."""
        ...


class DocumentMatch:
    """Matches by the concepts of whole documents, in the posting lists."""

    def __init__(self, searcher: Searcher) -> None:
        self.searcher = searcher

    def top(self, queries: Sequence[Query], k: int, *, allowed: Masks | None = None, mode: Mode = None) -> TopDocuments:
        """The k best documents of each query; there is no fast mode."""
        if fast_of(mode, self.searcher.recipe) is not None:
            raise InputError(
                f'the recipe "{self.searcher.recipe.name}" has no fast mode: its search is exact and quick; '
                "fast is for recipes that match tokens, such as ssr"
            )
        size = self.searcher.size
        vectors = SparseVectors.concatenate([query.vectors(size) for query in queries], size=size)
        return self.searcher.top_weighted(vectors, k, allowed=allowed)

    def scores(self, query: Query) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scores of all documents, and which of them are hits."""
        return self.searcher.scores(query.ids, query.weights)

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Impact of each of the query's concepts in a document, and its exact contribution to the score."""
        return self.searcher.contributions(position, query.ids, query.weights)
