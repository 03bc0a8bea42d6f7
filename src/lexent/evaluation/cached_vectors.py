"""The concepts of texts and of their tokens, kept in the cache: what changes only their weights costs no encoding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.encoders.encoder import batches_with_whole
from lexent.evaluation import cache
from lexent.evaluation.baselines import pooled_states
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import counter
from lexent.indexing.forward.tokens import TokenStore
from lexent.pipeline import Pipeline
from lexent.recipes import Recipe
from lexent.search.token_rows import TokenRows, of_text
from lexent.types import Kind, RowCodes, SparseVectors, States
from lexent.weighting import pool, unit

STATES_PER_STEP = 4096
"""Pooled states that are coded at a time."""


def represent(texts: Sequence[str], pipeline: Pipeline, *, kind: Kind) -> SparseVectors:
    """Pooled vectors before the transform, from the cache where they are.

    The entry's name holds the recipe's settings up to pooling: k1, b, idf, power and caps may change without encoding
    anything again.
    """
    found = cache.vectors(_key(texts, pipeline, kind=kind), lambda: _represented(texts, [pipeline], kind=kind)[0])
    return unit(found, buckets=pipeline.lexicon.buckets) if pipeline.recipe.unit else found


def prepare(collection: Collection, pipeline: Pipeline, recipes: Iterable[Recipe]) -> None:
    """Fills the cache for several recipes that differ in coding and pooling; texts are encoded once for all of them."""
    every = [replace(pipeline, recipe=recipe) for recipe in recipes]
    sides: tuple[tuple[Kind, list[str]], ...] = (("document", collection.texts), ("query", collection.query_texts))
    for kind, texts in sides:
        missing = {key: one for one in every if not cache.has(key := _key(texts, one, kind=kind))}
        if len(missing) > 1 and cache.limit() > 0:
            made = _represented(texts, list(missing.values()), kind=kind)
            for key, vectors in zip(missing, made, strict=True):
                cache.vectors(key, partial(replace, vectors))


def token_codes(texts: Sequence[str], pipeline: Pipeline) -> TokenStore:
    """The codes of documents' tokens, as an index keeps them, from the cache where they are."""
    lexicon, recipe = pipeline.lexicon, pipeline.recipe
    # Whole texts are coded wherever they can be: a query without a row for them passes them by.
    coding = recipe if lexicon.whole is None else recipe.having(whole=recipe.whole or 1.0)

    def make() -> cache.Arrays:
        advance = counter(recipe.name, kind="document", total=len(texts))
        stores, order = replace(pipeline, recipe=coding).collect(
            texts, lambda batch: TokenStore.of(batch.codes, size=lexicon.size), kind="document", progress=advance
        )
        return TokenStore.concatenate(stores).take(order).arrays

    settings = {"lexicon": lexicon.hash, "specials": recipe.specials, "k": recipe.k, "whole": coding.whole > 0}
    settings |= {"punctuation": recipe.punctuation}
    key = cache.key_for(pipeline.encoder, texts, what="token codes", kind="document", **settings)
    return TokenStore(cache.arrays(key, frozenset(TokenStore.columns), make))


def query_rows(texts: Sequence[str], pipeline: Pipeline) -> list[TokenRows]:
    """The token rows of queries before idf. Their states come from the cache: queries are few and short."""
    import torch

    encoder, lexicon, recipe = pipeline.encoder, pipeline.lexicon, pipeline.recipe

    def make() -> cache.Arrays:
        advance = counter(recipe.name, kind="query", total=len(texts))
        rows: list[NDArray[Any]] = [np.empty((0, encoder.dim), np.float32)] * len(texts)
        whole = np.empty((len(texts), encoder.dim), np.float32)
        for positions, states, pooled in batches_with_whole(encoder, texts, kind="query", specials=recipe.specials):
            for place, position in enumerate(positions.tolist()):
                rows[position] = states.of(place)
            whole[positions] = pooled.numpy()
            advance(len(positions))
        offsets = np.concatenate([[0], np.cumsum([len(one) for one in rows])]).astype(np.int64)
        return {"rows": np.concatenate(rows), "offsets": offsets, "whole": whole}

    lexicon.check(encoder, level=recipe.level)
    key = cache.key_for(encoder, texts, what="token states", kind="query", specials=recipe.specials)
    held = cache.arrays(key, frozenset(["rows", "offsets", "whole"]), make)
    states = States(torch.from_numpy(held["rows"]), held["offsets"])
    whole = States(torch.from_numpy(held["whole"]), np.arange(len(texts) + 1))
    codes = pipeline.code(texts, states, kind="query", whole=whole)
    return [TokenRows.of(of_text(codes, text), recipe, size=lexicon.size) for text in range(len(texts))]


def _represented(texts: Sequence[str], pipelines: Sequence[Pipeline], *, kind: Kind) -> list[SparseVectors]:
    """What `Pipeline.represent` gives for each of some recipes of one level, from one pass over the states."""
    first, recipes = pipelines[0], [each.recipe for each in pipelines]
    lexicon = first.lexicon
    lexicon.check(first.encoder, level=first.recipe.level)
    widest = max(pipelines, key=lambda each: each.recipe.k_for(kind))
    alike = len({replace(recipe, k=widest.recipe.k, query_k=None) for recipe in recipes}) == 1
    sliced = len(recipes) > 1 and alike and lexicon.sae.config.architecture == "winners"
    parts: list[list[SparseVectors]] = [[] for _ in recipes]
    positions: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    name = lexicon.name if len(recipes) > 1 else recipes[0].name
    for rows, states in _states(texts, first, kind=kind, name=name):
        batch = [texts[row] for row in rows]
        whole = widest.code(batch, states, kind=kind) if sliced else None
        for made, each in zip(parts, pipelines, strict=True):
            if whole is not None:
                codes = _strongest(whole, each.recipe.k_for(kind), buckets=lexicon.buckets)
            else:
                codes = each.code(batch, states, kind=kind)
            made.append(pool(codes, size=lexicon.size, how=each.recipe.pool))
        positions.append(rows)
    order = np.argsort(np.concatenate(positions), kind="stable")
    return [SparseVectors.concatenate(made, size=lexicon.size).take(order) for made in parts]


def _strongest(codes: RowCodes, k: int, *, buckets: int) -> RowCodes:
    """The k strongest winners of each state and bucket, which come strongest first."""
    first = np.arange(codes.ids.shape[1]).reshape(buckets, -1)[:, :k].ravel()
    return RowCodes(codes.ids[:, first], codes.values[:, first], codes.offsets)


def _states(
    texts: Sequence[str], pipeline: Pipeline, *, kind: Kind, name: str
) -> Iterator[tuple[NDArray[np.int64], States]]:
    """Positions and their states. Pooled ones are those that dense search uses too, so they come from the cache."""
    encoder, recipe = pipeline.encoder, pipeline.recipe
    if recipe.level != "pooled":
        advance = counter(name, kind=kind, total=len(texts))
        for rows, states in encoder.batches(texts, kind=kind, level=recipe.level, specials=recipe.specials):
            yield rows, states
            advance(len(rows))
        return
    values = pooled_states(encoder, texts, kind=kind)
    for start in range(0, len(values), STATES_PER_STEP):
        part = values[start : start + STATES_PER_STEP]
        yield np.arange(start, start + len(part)), States(part, np.arange(len(part) + 1))


def _key(texts: Sequence[str], pipeline: Pipeline, *, kind: Kind) -> str:
    recipe = pipeline.recipe
    parts: dict[str, Any] = {"lexicon": pipeline.lexicon.hash, "level": recipe.level, "specials": recipe.specials}
    parts |= {"kind": kind, "k": recipe.k_for(kind), "pool": recipe.pool, "punctuation": recipe.punctuation}
    if kind == "query":
        parts |= {"function_words": recipe.function_words, "emphasis": recipe.emphasis}
    return cache.key_for(pipeline.encoder, texts, what="latents", **parts)
