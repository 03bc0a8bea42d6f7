"""Hard negatives by words: what BM25 ranks high for a query, and is not known to answer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from lexent.errors import InputError
from lexent.search.document_scorer import DocumentScorer
from lexent.search.lexical import RECIPE, counts, words
from lexent.training.hard_negatives import (
    MINING_DEPTH,
    QUERIES_PER_BATCH,
    SKIPPED_DOCUMENTS,
    chosen,
    dense_negatives,
    joined,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.encoders import Encoder
    from lexent.training.pairs import Pairs

Miner = Literal["bm25", "dense"]
"""How hard negatives are found: by words, or by the encoder's vectors."""


def mined(
    pairs: Pairs, miners: Sequence[str], *, encoder: Encoder, progress: Callable[[float], None] | None = None
) -> Pairs:
    """The pairs with hard negatives of each kind asked for; those that have some already stay as they are."""
    unknown = [miner for miner in miners if miner not in get_args(Miner)]
    if unknown:
        raise InputError(f'no way to find negatives is called "{unknown[0]}"; allowed: {", ".join(get_args(Miner))}')
    if not miners or pairs.negatives.shape[1]:
        return pairs
    found = []
    for miner in dict.fromkeys(miners):
        if miner == "bm25":
            found.append(bm25_negatives(pairs, progress=progress))
        else:
            found.append(dense_negatives(pairs, encoder, progress=progress))
    return pairs.with_negatives(joined(found))


def bm25_negatives(
    pairs: Pairs,
    *,
    depth: int = MINING_DEPTH,
    skip: int = SKIPPED_DOCUMENTS,
    progress: Callable[[float], None] | None = None,
) -> NDArray[np.int64]:
    """int64[n_queries, depth - skip]: the best documents by BM25, without known answers and the first `skip` others."""
    vocabulary: dict[str, int] = {}
    scorer = DocumentScorer.from_vectors(counts(map(words, pairs.documents), vocabulary, grow=True), RECIPE)
    most = min(depth + max(len(found) for found in pairs.answers()), len(pairs.documents))
    candidates = np.full((len(pairs.queries), most), -1, np.int64)
    for start in range(0, len(pairs.queries), QUERIES_PER_BATCH):
        part = slice(start, start + QUERIES_PER_BATCH)
        queries = counts(map(words, pairs.queries[part]), vocabulary, grow=False)
        candidates[part] = scorer.top(queries, most).positions
        if progress is not None:
            progress(min(1.0, (start + QUERIES_PER_BATCH) / len(pairs.queries)))
    return chosen(candidates, pairs, skip=skip)[:, : depth - skip]
