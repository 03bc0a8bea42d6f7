"""Documents by their best passage: exact top-k over documents, from exact top-k over passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lexent.search.document_scorer import TopDocuments

FIRST_FACTOR = 2
"""At first this many passages are searched for each document that is wanted."""
NEXT_FACTOR = 4
"""Where they are of too few documents, this many times as many are."""

SearchPassages = Callable[[Sequence[int], int], TopDocuments]
"""The best passages of some queries, by their numbers: so many of each."""


def first_of_each(owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of the first passage of each document in a ranking. owners: the documents of its passages."""
    return np.sort(np.unique(owners, return_index=True)[1])


def top_documents(
    search: SearchPassages, owners: NDArray[np.int64], n_queries: int, k: int, *, n_documents: int
) -> TopDocuments:
    """The k best documents of each query, by the positions and scores of their best passages.

    owners: the document of each passage, ascending. A document that is not among the best passages has no passage that
    scores higher than the last of them, so the first k documents among the passages are the best ones. Documents of one
    score stand in their order, as passages do.
    """
    width = min(k, n_documents)
    found = TopDocuments(np.full((n_queries, width), -1, np.int64), np.zeros((n_queries, width), np.float64))
    rows, depth = list(range(n_queries)) if width else [], FIRST_FACTOR * k
    while rows:
        part, unfinished = search(rows, depth), []
        for place, row in enumerate(rows):
            n = int(np.count_nonzero(part.positions[place] >= 0))
            firsts = first_of_each(owners[part.positions[place, :n]])[:width]
            if len(firsts) < width and n == depth:  # there may be more
                unfinished.append(row)
            else:
                found.positions[row, : len(firsts)] = part.positions[place, firsts]
                found.scores[row, : len(firsts)] = part.scores[place, firsts]
        rows, depth = unfinished, depth * NEXT_FACTOR
    return found
