"""The concepts of texts, kept in the cache: what changes only their weights costs no encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
    advance = counter(progress, recipe.name, kind=kind, total=len(texts))
    return cache.vectors(
        cache.key(parts, texts),
        lambda: pipeline.represent(texts, kind=kind, encoder=encoder, lexicon=lexicon, recipe=recipe, progress=advance),
    )
