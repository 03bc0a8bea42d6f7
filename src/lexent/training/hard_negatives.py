"""Hard negatives: documents that look like answers and are not known to be. Random ones teach nothing for long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from lexent.encoders import Encoder
from lexent.encoders.encoder import finite_batches
from lexent.errors import InputError
from lexent.training.pairs import Pairs
from lexent.types import Kind

Miner = Literal["bm25", "dense"]
"""How hard negatives are found: by words, or by the encoder's vectors."""
Progress = Callable[[float], None]

MINING_DEPTH = 32
"""Best documents of a query that are considered."""
SKIPPED_DOCUMENTS = 2
"""Of those, the first that are left out: the likeliest to be answers that nobody marked."""
MAX_RELATIVE_SIMILARITY = 0.95
"""A document at least this share as similar to the query as its own answer may well be an answer too."""
QUERIES_PER_BATCH = 1024


def mined(pairs: Pairs, miners: Sequence[str], *, encoder: Encoder, progress: Progress | None = None) -> Pairs:
    """The pairs with hard negatives of each requested kind; those that have some already stay as they are."""
    unknown = [miner for miner in miners if miner not in get_args(Miner)]
    if unknown:
        raise InputError(f'no way to find negatives is called "{unknown[0]}"; allowed: {", ".join(get_args(Miner))}')
    if not miners or pairs.negatives.shape[1]:
        return pairs
    found = [
        bm25_negatives(pairs, progress=progress)
        if miner == "bm25"
        else dense_negatives(pairs, encoder, progress=progress)
        for miner in dict.fromkeys(miners)
    ]
    return pairs.with_negatives(joined(found))


def bm25_negatives(
    pairs: Pairs, *, depth: int = MINING_DEPTH, skip: int = SKIPPED_DOCUMENTS, progress: Progress | None = None
) -> NDArray[np.int64]:
    """int64[n_queries, depth - skip]: the best documents by BM25, without known answers and the first `skip` others."""
    from lexent.search.lexical import Lexical  # needs Numba, which training alone does not

    lexical = Lexical.of_texts(pairs.documents)

    def best(part: slice, k: int) -> NDArray[np.int64]:
        return lexical.document_scorer.top(lexical.words.counts(pairs.queries[part]), k).positions

    return _negatives(pairs, best, depth=depth, skip=skip, progress=progress)


def dense_negatives(
    pairs: Pairs,
    encoder: Encoder,
    *,
    depth: int = MINING_DEPTH,
    skip: int = SKIPPED_DOCUMENTS,
    margin: float = MAX_RELATIVE_SIMILARITY,
    progress: Progress | None = None,
) -> NDArray[np.int64]:
    """int64[n_queries, depth - skip]: the documents whose vectors are nearest to the query's.

    Left out are known answers, the first `skip` others, and whatever is nearer than `margin` times the best answer.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    documents = _vectors(encoder, pairs.documents, "document", device)
    queries = _vectors(encoder, pairs.queries, "query", device)
    threshold = np.full(len(queries), -np.inf)
    own = (queries[torch.from_numpy(pairs.query)] * documents[torch.from_numpy(pairs.positive)]).sum(dim=1)
    np.maximum.at(threshold, pairs.query, margin * own.cpu().numpy())

    def best(part: slice, k: int) -> NDArray[np.int64]:
        found = (queries[part] @ documents.t()).topk(k, dim=1)
        return np.where(found.values.cpu().numpy() < threshold[part, None], found.indices.cpu().numpy(), -1)

    return _negatives(pairs, best, depth=depth, skip=skip, progress=progress)


def joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Negatives of several kinds for the same queries, side by side, each document once."""
    if not parts:
        raise InputError("there are no negatives to join")
    order = np.sort(np.concatenate(list(parts), axis=1), axis=1)
    found = np.where(np.diff(order, axis=1, prepend=-2) == 0, -1, order)
    return np.take_along_axis(found, np.argsort(found < 0, axis=1, kind="stable"), axis=1)


def _negatives(
    pairs: Pairs,
    best: Callable[[slice, int], NDArray[np.int64]],
    *,
    depth: int,
    skip: int,
    progress: Progress | None,
) -> NDArray[np.int64]:
    """The best documents of each query without known answers and the first `skip` others, -1 after the last.

    best: gives the k best documents of some queries, best first, -1 for none.
    """
    answers = pairs.answers()
    k = min(depth + max(map(len, answers)), len(pairs.documents))
    found = np.full((len(pairs.queries), max(min(k, depth) - skip, 0)), -1, np.int64)
    for start in range(0, len(pairs.queries), QUERIES_PER_BATCH):
        for row, candidates in enumerate(best(slice(start, start + QUERIES_PER_BATCH), k), start):
            kept = candidates[(candidates >= 0) & ~np.isin(candidates, answers[row])][skip:][: found.shape[1]]
            found[row, : len(kept)] = kept
        if progress is not None:
            progress(min(1.0, (start + QUERIES_PER_BATCH) / len(pairs.queries)))
    return found


def _vectors(encoder: Encoder, texts: Sequence[str], kind: Kind, device: torch.device) -> torch.Tensor:
    """float32[n, d]: vectors of length 1."""
    found = torch.zeros(len(texts), encoder.dim, device=device)
    for places, states in finite_batches(encoder, texts, kind=kind, level="pooled"):
        rows = states.tensor().to(device).float()
        found[torch.from_numpy(places).to(device)] = torch.nn.functional.normalize(rows, dim=1)
    return found
