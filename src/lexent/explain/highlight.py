"""Which words of a document its score came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lexent.encoders.encoder import encode
from lexent.explain.attribution import words
from lexent.search.maxsim_scorer import MaxSimScorer
from lexent.types import TokenShare

if TYPE_CHECKING:
    from lexent.search.results import Hit


def highlights(hits: Sequence[Hit]) -> list[tuple[TokenShare, ...]]:
    """For each hit the words of its document's content, strongest first, with their shares of the score.

    A contribution is shared out in proportion to the activations of the words that raised its concept, so the shares
    sum to the score (see `lexent.explain.Attribution`). The documents are encoded again, together. Where a recipe
    matches tokens, a word has what the query's tokens found in it, and nothing is encoded. Recipes that encode a text
    as one vector have no words to show.
    """
    if not hits:
        return []
    index = hits[0].index
    encoder, recipe = index.encoder, index.recipe
    if recipe.level != "tokens":
        return [() for _ in hits]
    if index.maxsim is not None:
        return [_aligned(hit, index.maxsim) for hit in hits]
    texts = [document.content for document in index.reader.at([hit.position for hit in hits])]
    states = encode(encoder, texts, kind="document", level=recipe.level, specials=recipe.specials)
    codes = index.lexicon.codes(states, k=recipe.k_for("document"))
    found = []
    for place, tokens in enumerate(encoder.tokenize(texts, kind="document", specials=recipe.specials)):
        rows = slice(codes.offsets[place], codes.offsets[place + 1])
        ids, values = codes.ids[rows], codes.values[rows].astype(np.float64)
        heat = np.zeros(len(ids))
        for part in hits[place].explain().contributions:
            activations = np.where(ids == part.concept, values, 0.0).sum(axis=1)
            if recipe.pool == "max":
                activations = np.where(np.arange(len(ids)) == activations.argmax(), activations, 0.0)
            total = activations.sum()
            if total:
                heat += activations / total * part.value
        found.append(words(texts[place], tokens, heat))
    return found


def _aligned(hit: Hit, scorer: MaxSimScorer) -> tuple[TokenShare, ...]:
    """What the tokens of the query found in each word."""
    index, rows = hit.index, hit.query.rows
    assert rows is not None
    text = index.reader.at([hit.position])[0].content
    tokens = index.encoder.tokenize([text], kind="document", specials=index.recipe.specials)[0]
    found = scorer.align(hit.query, hit.position)
    whole = index.recipe.whole > 0
    heat = np.zeros(len(tokens) + whole)
    owners = np.repeat(found.best, np.diff(rows.offsets))
    known = (owners >= 0) & (owners < len(heat))  # a damaged store may hold rows that the text has not
    np.add.at(heat, owners[known], found.contributions[known] / found.divisor)
    return words(text, tokens, heat, whole=whole)
