"""A recipe as a system under test: represent, weigh and search a collection in memory, by the index's own kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lexent.evaluation import cache
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress, counter
from lexent.evaluation.runs import Run, from_top
from lexent.recipes import Recipe
from lexent.types import Kind, SparseVectors

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon


def search(
    collection: Collection,
    *,
    recipe: Recipe,
    lexicon: Lexicon,
    encoder: Encoder,
    k: int,
    progress: Progress | None = None,
) -> Run:
    """The k best documents for each query."""
    from lexent.search.searcher import Searcher
    from lexent.weighting import transform

    def pooled(texts: Sequence[str], kind: Kind) -> SparseVectors:
        return represent(texts, kind=kind, recipe=recipe, lexicon=lexicon, encoder=encoder, progress=progress)

    searcher = Searcher.from_vectors(pooled(collection.texts, "document"), recipe)
    queries = pooled(list(collection.queries.values()), "query")
    found = searcher.top(transform(queries, power=recipe.power_for("query"), cap=recipe.query_cap), k + 1)
    return from_top(collection, found.positions, scores=found.scores, depth=k)


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
