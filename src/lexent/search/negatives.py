"""Hard negatives by words: what BM25 ranks high for a query, and is not known to answer it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lexent.coders.negatives import DEPTH, SKIPPED, STEP, chosen
from lexent.search.lexical import RECIPE, counts, words
from lexent.search.searcher import Searcher

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.coders.pairs import Pairs


def bm25_negatives(
    pairs: Pairs, *, depth: int = DEPTH, skip: int = SKIPPED, progress: Callable[[float], None] | None = None
) -> NDArray[np.int64]:
    """int64[n_queries, depth - skip]: the best documents by BM25, without known answers and the first `skip` others."""
    vocabulary: dict[str, int] = {}
    searcher = Searcher.from_vectors(counts(map(words, pairs.documents), vocabulary, grow=True), RECIPE)
    most = min(depth + max(len(found) for found in pairs.answers()), len(pairs.documents))
    candidates = np.full((len(pairs.queries), most), -1, np.int64)
    for start in range(0, len(pairs.queries), STEP):
        part = slice(start, start + STEP)
        queries = counts(map(words, pairs.queries[part]), vocabulary, grow=False)
        candidates[part] = searcher.top(queries, most).positions
        if progress is not None:
            progress(min(1.0, (start + STEP) / len(pairs.queries)))
    return chosen(candidates, pairs, skip=skip)[:, : depth - skip]
