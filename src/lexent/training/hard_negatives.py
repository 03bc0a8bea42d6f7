"""Hard negatives: documents that look like answers and are not known to be. Random ones teach nothing for long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from lexent.encoders.encoder import finite_batches
from lexent.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.encoders import Encoder
    from lexent.training.pairs import Pairs
    from lexent.types import Kind

MINING_DEPTH = 32
"""Best documents of a query that are looked at."""
SKIPPED_DOCUMENTS = 2
"""Of those, the first that are left out: the likeliest to be answers that nobody marked."""
MAX_RELATIVE_SIMILARITY = 0.95
"""A document at least this share as like the query as its own answer may well be an answer too."""
QUERIES_PER_BATCH = 1024
"""Queries at a time."""


def chosen(candidates: NDArray[np.int64], pairs: Pairs, *, skip: int = SKIPPED_DOCUMENTS) -> NDArray[np.int64]:
    """int64[n_queries, depth - skip]: candidates, best first, without known answers and the first others; -1 after."""
    found = np.full((len(candidates), max(candidates.shape[1] - skip, 0)), -1, np.int64)
    for row, answers in enumerate(pairs.answers()):
        kept = candidates[row][(candidates[row] >= 0) & ~np.isin(candidates[row], answers)][skip:]
        found[row, : len(kept)] = kept[: found.shape[1]]
    return found


def dense_negatives(
    pairs: Pairs,
    encoder: Encoder,
    *,
    depth: int = MINING_DEPTH,
    skip: int = SKIPPED_DOCUMENTS,
    margin: float = MAX_RELATIVE_SIMILARITY,
    progress: Callable[[float], None] | None = None,
) -> NDArray[np.int64]:
    """int64[n_queries, depth - skip]: the documents whose vectors are nearest to the query's.

    Left out are known answers, the first `skip` others, and whatever is nearer than `margin` times the best answer.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    documents = _vectors(encoder, pairs.documents, "document", device)
    queries = _vectors(encoder, pairs.queries, "query", device)
    most = min(depth + max(len(found) for found in pairs.answers()), len(documents))
    candidates = np.full((len(queries), most), -1, np.int64)
    bar = np.full(len(queries), -np.inf)
    own = (queries[torch.from_numpy(pairs.query)] * documents[torch.from_numpy(pairs.positive)]).sum(dim=1)
    np.maximum.at(bar, pairs.query, margin * own.cpu().numpy())
    for start in range(0, len(queries), QUERIES_PER_BATCH):
        part = slice(start, start + QUERIES_PER_BATCH)
        best = (queries[part] @ documents.t()).topk(most, dim=1)
        near = best.values.cpu().numpy() < bar[part, None]
        candidates[part] = np.where(near, best.indices.cpu().numpy(), -1)
        if progress is not None:
            progress(min(1.0, (start + QUERIES_PER_BATCH) / len(queries)))
    return chosen(candidates, pairs, skip=skip)[:, : depth - skip]


def joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Negatives of several kinds for the same queries, side by side, each document once."""
    if not parts:
        raise InputError("there are no negatives to join")
    side = np.concatenate(list(parts), axis=1)
    order = np.sort(side, axis=1)
    found = np.where(np.diff(order, axis=1, prepend=-2) == 0, -1, order)
    return np.take_along_axis(found, np.argsort(found < 0, axis=1, kind="stable"), axis=1)


def _vectors(encoder: Encoder, texts: Sequence[str], kind: Kind, device: torch.device) -> torch.Tensor:
    """float32[n, d]: vectors of length 1."""
    found = torch.zeros(len(texts), encoder.dim, device=device)
    for places, states in finite_batches(encoder, texts, kind=kind, level="pooled"):
        rows = states.values.to(device).float()
        found[torch.from_numpy(places).to(device)] = torch.nn.functional.normalize(rows, dim=1)
    return found
