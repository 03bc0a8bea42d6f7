"""Stages 1 to 3 in one stream: texts to pooled concept vectors, never holding more than a batch of states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexent.errors import MismatchError
from lexent.types import Kind, RowCodes, SparseVectors, States

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon
    from lexent.recipes import Recipe


@dataclass(frozen=True, slots=True)
class Coded:
    """A batch of texts after stage 2."""

    positions: NDArray[np.int64]  # [n_texts], among all texts
    codes: RowCodes
    whole: States | None
    """The encoder's own vector of each text, where it was asked for."""


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
    parts: list[SparseVectors] = []
    positions: list[NDArray[np.int64]] = []
    for batch in coded(texts, kind=kind, encoder=encoder, lexicon=lexicon, recipe=recipe, progress=progress):
        parts.append(as_pooled(batch.codes, lexicon, recipe))
        positions.append(batch.positions)
    vectors = SparseVectors.concatenate(parts, size=lexicon.size)
    if not positions:
        return vectors
    return vectors.take(np.argsort(np.concatenate(positions), kind="stable"))


def as_pooled(codes: RowCodes, lexicon: Lexicon, recipe: Recipe) -> SparseVectors:
    """One vector a text: its tokens pooled, and of length 1 in each bucket where the recipe says so."""
    from lexent.weighting import pool, unit

    vectors = pool(codes, size=lexicon.size, how=recipe.pool)
    return unit(vectors, buckets=lexicon.buckets) if recipe.unit else vectors


def as_asked(vectors: SparseVectors, lexicon: Lexicon, recipe: Recipe) -> SparseVectors:
    """Pooled queries as a recipe weighs them with a lexicon, before idf and steering."""
    from lexent.lexicon.bucket_weights import features
    from lexent.weighting import as_query

    weights = None
    if recipe.predicted:
        if lexicon.bucket_weights is None:
            raise MismatchError(
                f'the recipe "{recipe.name}" lets queries weigh buckets, and the lexicon "{lexicon.name}" has not '
                "learned how; learn it: lexent tune COLLECTION --recipe uhd --lexicon DIR --predict NEW_DIR"
            )
        weights = lexicon.bucket_weights.of(features(vectors, lexicon.sae))
    return as_query(vectors, recipe, buckets=lexicon.buckets, weights=weights)


def coded(
    texts: Sequence[str],
    *,
    kind: Kind,
    encoder: Encoder,
    lexicon: Lexicon,
    recipe: Recipe,
    vectors: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Coded]:
    """The codes of texts, a batch at a time, in any order. vectors: also the encoder's own vector of each text."""
    from lexent.encoders.encoder import batches_with_whole

    lexicon.check(encoder, level=recipe.level)
    if recipe.whole and lexicon.whole is None:  # said before anything is encoded
        raise MismatchError(
            f'the recipe "{recipe.name}" codes whole texts beside tokens, and the lexicon "{lexicon.name}" has no '
            "concepts for those; take another recipe, for example ssr, or a lexicon that has them"
        )
    parts: Iterator[tuple[NDArray[np.int64], States, States | None]]
    if recipe.level == "tokens" and (vectors or recipe.whole):
        parts = batches_with_whole(encoder, texts, kind=kind, specials=recipe.specials)
    else:
        found = encoder.batches(texts, kind=kind, level=recipe.level, specials=recipe.specials)
        parts = ((rows, states, states if recipe.level == "pooled" else None) for rows, states in found)
    for rows, states, whole in parts:
        own = [texts[row] for row in rows]
        codes = code(own, states, kind=kind, encoder=encoder, lexicon=lexicon, recipe=recipe, whole=whole)
        yield Coded(rows, codes, whole if vectors else None)
        if progress is not None:
            progress(len(rows))


def code(
    texts: Sequence[str],
    states: States,
    *,
    kind: Kind,
    encoder: Encoder,
    lexicon: Lexicon,
    recipe: Recipe,
    whole: States | None = None,
) -> RowCodes:
    """The codes of the states of some texts, as they are pooled: some tokens of a query count for more than others.

    For MaxSim the code of every token has the length 1, before those weights. whole: the texts' own vectors; their
    codes come as a last row of each text where the recipe gives them a weight.
    """
    codes = lexicon.codes(states, k=recipe.k_for(kind))
    light = kind == "query" and recipe.level == "tokens" and recipe.function_words != 1
    adaptive = kind == "query" and recipe.adaptive_k
    tokens = encoder.tokenize(texts, kind=kind, specials=recipe.specials) if light or adaptive else []
    if adaptive:
        counts = [int(np.count_nonzero(~found.special)) for found in tokens]
        codes = _strongest(codes, [recipe.k_for(kind, tokens=count) for count in counts])
    if recipe.match == "maxsim":
        codes = _unit(codes)
    if kind == "query" and recipe.level == "tokens":
        weights = np.ones(len(codes.values), np.float32)
        if light:
            from lexent.function_words import token_weights

            weights *= np.concatenate([*(token_weights(found, recipe.function_words) for found in tokens), weights[:0]])
        mean = lexicon.sae.config.mean_length
        if recipe.emphasis and mean > 0:
            weights *= (states.values.float().norm(dim=1).cpu().numpy() / mean) ** recipe.emphasis
        codes = replace(codes, values=codes.values * weights[:, None])
        owners = np.repeat(np.arange(len(texts)), np.diff(codes.offsets))
        strengths = np.bincount(owners, weights, minlength=len(texts)).astype(np.float32)
        if lexicon.sae.query_gain is not None:
            codes = replace(codes, values=codes.values * lexicon.sae.query_gain[codes.ids])
    if recipe.whole:
        assert whole is not None
        extra = _unit(lexicon.whole_codes(whole, k=recipe.k))
        if kind == "query":  # a share of what the tokens weigh together, so that it counts alike in short and long ones
            extra = replace(extra, values=extra.values * (np.float32(recipe.whole) * strengths)[:, None])
        codes = _with_last(codes, extra)
    return codes


def _unit(codes: RowCodes) -> RowCodes:
    """The codes with every row of length 1; a row without latents stays as it is."""
    lengths = np.sqrt(np.square(codes.values).sum(axis=1, keepdims=True))
    lengths[lengths == 0] = 1
    return replace(codes, values=(codes.values / lengths).astype(np.float32, copy=False))


def _strongest(codes: RowCodes, ks: Sequence[int]) -> RowCodes:
    """At most the first ks[i] latents of each row of text i, which are its strongest."""
    rows = np.repeat(np.array(ks, np.int64), np.diff(codes.offsets))
    kept = np.arange(codes.values.shape[1])[None, :] < rows[:, None]
    return replace(codes, values=np.where(kept, codes.values, np.float32(0)))


def _with_last(codes: RowCodes, extra: RowCodes) -> RowCodes:
    """Every text's rows, and then its row of `extra`."""
    n_texts, width = len(extra.ids), max(codes.ids.shape[1], extra.ids.shape[1])
    offsets = codes.offsets + np.arange(n_texts + 1)
    last = np.zeros(int(offsets[-1]), np.bool_)
    last[offsets[1:] - 1] = True
    ids, values = np.zeros((len(last), width), np.int32), np.zeros((len(last), width), np.float32)
    for rows, part in ((~last, codes), (last, extra)):
        ids[rows, : part.ids.shape[1]], values[rows, : part.ids.shape[1]] = part.ids, part.values
    return RowCodes(ids, values, offsets)
