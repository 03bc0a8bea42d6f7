"""What a recipe is held against: the encoder's own dense cosine, and lexical BM25."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.encoder import AdaptedEncoder
from lexent.encoders.encoder import finite_batches
from lexent.evaluation import cache
from lexent.evaluation.collections import Collection
from lexent.evaluation.lexical import WordIndex, words
from lexent.evaluation.pooling import unit
from lexent.evaluation.progress import Progress, counter
from lexent.evaluation.runs import Run, from_top
from lexent.types import Kind

if TYPE_CHECKING:
    from lexent.encoders import Encoder

SCORES_PER_CHUNK = 1 << 25
"""How many scores are held at a time."""


def dense(collection: Collection, encoder: Encoder, *, k: int, progress: Progress | None = None) -> Run:
    """The k documents of highest cosine for each query, exactly, from the encoder's pooled vectors."""
    documents = pooled(encoder, collection.texts, kind="document", progress=progress)
    queries = pooled(encoder, list(collection.queries.values()), kind="query", progress=progress)
    depth = min(k + 1, len(documents))
    positions = np.empty((len(queries), depth), np.int64)
    scores = np.empty((len(queries), depth), np.float32)
    step = max(1, SCORES_PER_CHUNK // len(documents))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        positions[part], scores[part] = _best(queries[part] @ documents.T, depth)
    return from_top(collection, positions, scores=scores, depth=k)


def bm25(collection: Collection, *, k: int) -> Run:
    """The k best documents for each query by lexical BM25: bm25s with its defaults and English stop words."""
    found, scores = WordIndex.of(collection.texts).top(words(list(collection.queries.values())), k + 1)
    return from_top(collection, found, scores=scores, depth=k)


def pooled(
    encoder: Encoder, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
) -> NDArray[np.float32]:
    """float32[n_texts, d_in]: pooled vectors of length 1, from the cache where they are."""
    return unit(pooled_states(encoder, texts, kind=kind, progress=progress))


def pooled_states(
    encoder: Encoder, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
) -> NDArray[np.float32]:
    """float32[n_texts, d_in]: pooled vectors as the encoder gives them and a lexicon reads them, from the cache."""
    if isinstance(encoder, AdaptedEncoder):  # what its base gave is likely there already
        return encoder.adapt(pooled_states(encoder.base, texts, kind=kind, progress=progress), kind=kind)
    parts = {
        "what": "pooled",
        "encoder": encoder.fingerprint,
        "device": str(getattr(encoder, "device", "")),  # precision differs between devices
        "kind": kind,
    }
    return cache.matrix(cache.key(parts, texts), lambda: _encode(encoder, texts, kind, progress))


def _encode(encoder: Encoder, texts: Sequence[str], kind: Kind, progress: Progress | None) -> NDArray[np.float32]:
    advance = counter(progress, "dense", kind=kind, total=len(texts))
    rows = np.empty((len(texts), encoder.dim), np.float32)
    for positions, states in finite_batches(encoder, texts, kind=kind, level="pooled"):
        rows[positions] = states.numpy()
        advance(len(positions))
    return rows


def _best(scores: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k highest of each row, from high to low."""
    kept = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(scores, kept, axis=1)
    order = np.lexsort((kept, -values), axis=1)
    return np.take_along_axis(kept, order, axis=1), np.take_along_axis(values, order, axis=1)
