"""The codes of tokens of texts, kept in the cache: what changes only their weights costs no encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexent.encoders.encoder import batches_with_whole
from lexent.evaluation import cache
from lexent.evaluation.progress import Progress, counter
from lexent.indexing.forward.tokens import TokenStore
from lexent.pipeline import Pipeline
from lexent.search.token_rows import TokenRows, of_text
from lexent.types import States

if TYPE_CHECKING:
    from lexent.encoders import Encoder


def documents(texts: Sequence[str], pipeline: Pipeline, *, progress: Progress | None = None) -> TokenStore:
    """The codes of documents' tokens, as an index keeps them, from the cache where they are."""
    encoder, lexicon, recipe = pipeline.encoder, pipeline.lexicon, pipeline.recipe
    # Whole texts are coded wherever they can be: a query without a row for them passes them by.
    coding = recipe if lexicon.whole is None else recipe.having(whole=recipe.whole or 1.0)

    def make() -> cache.Arrays:
        advance = counter(progress, recipe.name, kind="document", total=len(texts))
        stores, order = replace(pipeline, recipe=coding).collect(
            texts, lambda batch: TokenStore.of(batch.codes, size=lexicon.size), kind="document", progress=advance
        )
        return TokenStore.concatenate(stores).take(order).arrays

    parts = _parts(encoder, "document") | {
        "what": "token codes",
        "lexicon": lexicon.hash,
        "specials": recipe.specials,
        "k": recipe.k,
        "whole": coding.whole > 0,
    }
    return TokenStore(cache.arrays(cache.key(parts, texts), frozenset(TokenStore.columns), make))


def queries(texts: Sequence[str], pipeline: Pipeline, *, progress: Progress | None = None) -> list[TokenRows]:
    """The rows of queries before idf. Their states come from the cache: queries are few and short."""
    import torch

    encoder, lexicon, recipe = pipeline.encoder, pipeline.lexicon, pipeline.recipe

    def make() -> cache.Arrays:
        advance = counter(progress, recipe.name, kind="query", total=len(texts))
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
    parts = _parts(encoder, "query") | {"what": "token states", "specials": recipe.specials}
    held = cache.arrays(cache.key(parts, texts), frozenset(["rows", "offsets", "whole"]), make)
    codes = pipeline.code(
        texts,
        States(torch.from_numpy(held["rows"]), held["offsets"]),
        kind="query",
        whole=States(torch.from_numpy(held["whole"]), np.arange(len(texts) + 1)),
    )
    return [TokenRows.of(of_text(codes, text), recipe, size=lexicon.size) for text in range(len(texts))]


def _parts(encoder: Encoder, kind: str) -> dict[str, Any]:
    return {"encoder": encoder.fingerprint, "device": str(getattr(encoder, "device", "")), "kind": kind}
