"""How queries meet documents: by the lists of their concepts, or token by token. One form for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from lexent.errors import InputError
from lexent.recipes import Recipe
from lexent.search.query import Query
from lexent.search.searcher import Found, Masks, Searcher
from lexent.types import SparseVectors

ModeName = Literal["exact", "fast"]


@dataclass(frozen=True, slots=True)
class Fast:
    """SSR++: candidates by the strongest concepts of each token of the query, and exact scores for those alone.

    A document that is no candidate is not found, however high it would score: approximate.
    """

    concepts: int = 4
    """Concepts of each token that candidates are found by, the strongest ones."""
    candidates: int = 2000
    """Documents that are scored at most, of each chunk of an index (up to 65,536 documents of a segment)."""

    def __post_init__(self) -> None:
        for name, given in (("concepts", self.concepts), ("candidates", self.candidates)):
            if given < 1:
                raise InputError(f"{name} of the fast mode is {given}; allowed: 1 or more")


Mode = ModeName | Fast | None
"""exact, or fast: with the settings that `Fast` has, or others; None for what the recipe says."""


def fast_of(mode: Mode, recipe: Recipe) -> Fast | None:
    """The settings of the fast mode; None for the exact one."""
    if mode is None:
        return Fast() if recipe.fast else None
    if isinstance(mode, Fast):
        return mode
    if mode not in get_args(ModeName):
        raise InputError(f'mode is "{mode}"; allowed: {", ".join(get_args(ModeName))}')
    return Fast() if mode == "fast" else None


class Matcher(Protocol):
    """Scores the documents of an index."""

    def top(self, queries: Sequence[Query], k: int, *, allowed: Masks | None = None, mode: Mode = None) -> Found:
        """The k best documents of each query; allowed: which documents of each segment may be found."""
        ...

    def scores(self, query: Query) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The score of every document, and whether it is a hit. Deleted documents are none."""
        ...

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """For each of the query's concepts what a document has of it, and what that adds to its score: exact."""
        ...


class DocumentMatch:
    """By concepts of whole documents."""

    def __init__(self, searcher: Searcher) -> None:
        self.searcher = searcher

    def top(self, queries: Sequence[Query], k: int, *, allowed: Masks | None = None, mode: Mode = None) -> Found:
        if fast_of(mode, self.searcher.recipe) is not None:
            raise InputError(
                f'the recipe "{self.searcher.recipe.name}" has no fast mode: its search is exact and quick; '
                "fast is for recipes that match tokens, such as ssr"
            )
        size = self.searcher.size
        vectors = SparseVectors.concatenate([query.vectors(size) for query in queries], size=size)
        return self.searcher.top_weighted(vectors, k, allowed=allowed)

    def scores(self, query: Query) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        return self.searcher.scores(query.ids, query.weights)

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        return self.searcher.contributions(position, query.ids, query.weights)
