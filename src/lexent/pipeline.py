"""Stages 1 to 3 in one stream: texts to pooled concept vectors, never holding more than a batch of states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lexent.types import Kind, RowCodes, SparseVectors, States

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon
    from lexent.recipes import Recipe


def represent(
    texts: Sequence[str],
    *,
    kind: Kind,
    encoder: Encoder,
    lexicon: Lexicon,
    recipe: Recipe,
    progress: Callable[[int], None] | None = None,
) -> SparseVectors:
    """The concepts of each text, pooled over its tokens and not yet transformed, in the order of the texts.

    progress is called with the number of texts done since its last call.
    """
    from lexent.weighting import pool

    lexicon.check(encoder, level=recipe.level)
    parts: list[SparseVectors] = []
    positions: list[np.ndarray] = []
    for rows, states in encoder.batches(texts, kind=kind, level=recipe.level, specials=recipe.specials):
        codes = code([texts[row] for row in rows], states, kind=kind, encoder=encoder, lexicon=lexicon, recipe=recipe)
        parts.append(pool(codes, size=lexicon.size, how=recipe.pool))
        positions.append(rows)
        if progress is not None:
            progress(len(rows))
    vectors = SparseVectors.concatenate(parts, size=lexicon.size)
    if not positions:
        return vectors
    return vectors.take(np.argsort(np.concatenate(positions), kind="stable"))


def code(
    texts: Sequence[str], states: States, *, kind: Kind, encoder: Encoder, lexicon: Lexicon, recipe: Recipe
) -> RowCodes:
    """The codes of the states of some texts, as they are pooled: some tokens of a query count for more than others."""
    codes = lexicon.codes(states, k=recipe.k_for(kind))
    if kind != "query" or recipe.level != "tokens":
        return codes
    weights = np.ones(len(codes.values), np.float32)
    if recipe.function_words != 1:
        from lexent.function_words import token_weights

        tokens = encoder.tokenize(texts, kind=kind, specials=recipe.specials)
        weights *= np.concatenate([*(token_weights(found, recipe.function_words) for found in tokens), weights[:0]])
    mean = lexicon.sae.config.mean_length
    if recipe.emphasis and mean > 0:
        weights *= (states.values.float().norm(dim=1).cpu().numpy() / mean) ** recipe.emphasis
    return replace(codes, values=codes.values * weights[:, None])
