"""The concepts of texts, kept in the cache: what changes only their weights costs no encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexent.evaluation import cache
from lexent.evaluation.progress import Progress, counter
from lexent.recipes import Recipe
from lexent.types import Kind, SparseVectors

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon


def represent(
    texts: Sequence[str],
    *,
    kind: Kind,
    recipe: Recipe,
    lexicon: Lexicon,
    encoder: Encoder,
    progress: Progress | None = None,
) -> SparseVectors:
    """Pooled vectors before the transform, from the cache where they are.

    The entry's name holds the recipe's settings up to pooling: k1, b, idf, power and caps may change without encoding
    anything again.
    """
    from lexent import pipeline

    advance = counter(progress, recipe.name, kind=kind, total=len(texts))
    return cache.vectors(
        _key(texts, kind=kind, recipe=recipe, lexicon=lexicon, encoder=encoder),
        lambda: pipeline.represent(texts, kind=kind, encoder=encoder, lexicon=lexicon, recipe=recipe, progress=advance),
    )


def prepare(
    texts: Sequence[str],
    *,
    kind: Kind,
    recipes: Sequence[Recipe],
    lexicon: Lexicon,
    encoder: Encoder,
    progress: Progress | None = None,
) -> None:
    """Fills the cache for several recipes that differ in coding and pooling; the texts are encoded once for all."""
    from lexent import pipeline
    from lexent.weighting import pool

    given = {_key(texts, kind=kind, recipe=each, lexicon=lexicon, encoder=encoder): each for each in recipes}
    missing = {key: each for key, each in given.items() if not cache.has(key)}
    if not missing:
        return
    advance = counter(progress, lexicon.name, kind=kind, total=len(texts))
    parts: dict[str, list[SparseVectors]] = {key: [] for key in missing}
    positions: list[NDArray[np.int64]] = []
    first = recipes[0]
    for rows, states in encoder.batches(texts, kind=kind, level=first.level, specials=first.specials):
        batch = [texts[row] for row in rows]
        for key, each in missing.items():
            codes = pipeline.code(batch, states, kind=kind, encoder=encoder, lexicon=lexicon, recipe=each)
            parts[key].append(pool(codes, size=lexicon.size, how=each.pool))
        positions.append(rows)
        advance(len(rows))
    order = np.argsort(np.concatenate([np.empty(0, np.int64), *positions]), kind="stable")
    for key, found in parts.items():
        vectors = SparseVectors.concatenate(found, size=lexicon.size).take(order)
        cache.vectors(key, lambda vectors=vectors: vectors)  # type: ignore[misc]


def _key(texts: Sequence[str], *, kind: Kind, recipe: Recipe, lexicon: Lexicon, encoder: Encoder) -> str:
    parts = {
        "what": "latents",
        "encoder": encoder.fingerprint,
        "device": str(getattr(encoder, "device", "")),
        "lexicon": lexicon.hash,
        "kind": kind,
        "level": recipe.level,
        "specials": recipe.specials,
        "k": recipe.k_for(kind),
        "pool": recipe.pool,
    }
    if kind == "query":
        parts |= {"function_words": recipe.function_words, "emphasis": recipe.emphasis}
    return cache.key(parts, texts)
