"""Slow twin of the top-k kernels, in plain NumPy. Tests compare the two."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings import quantisation
from lexent.recipes import Recipe

if TYPE_CHECKING:
    from lexent.indexing.codes import Codes


def lengths(codes: Codes, recipe: Recipe) -> NDArray[np.uint16]:
    """Length of each document: the sum of its transformed values, as a 16-bit code."""
    values = quantisation.transformed_values(recipe)
    sums = np.array([values[codes.codes[start:stop]].sum() for start, stop in pairwise(codes.offsets)], np.float64)
    return quantisation.encode_lengths(sums * 2.0 ** (recipe.power * doublings(codes)))


def doublings(codes: Codes) -> NDArray[np.uint8]:
    """Doublings of each document, zeros where none has any."""
    return np.zeros(len(codes), np.uint8) if codes.doublings is None else codes.doublings


def curve(codes: Codes, recipe: Recipe) -> NDArray[np.float32]:
    """Impact curve of the recipe for these documents."""
    return quantisation.impact_curve(recipe, doublings=int(doublings(codes).max(initial=0)))


def weights(codes: Codes, recipe: Recipe) -> NDArray[np.float32]:
    """float32[n_entries]: the impact of each entry, where the documents are the whole collection."""
    encoded = lengths(codes, recipe)
    average = quantisation.average_length(quantisation.length_units(encoded), len(encoded))
    shifts = quantisation.shifts(encoded, average, recipe, doublings=doublings(codes)).astype(np.int64)
    return curve(codes, recipe)[2 * codes.codes.astype(np.int64) + np.repeat(shifts, np.diff(codes.offsets))]


def scores(
    codes: Codes, recipe: Recipe, query_ids: NDArray[np.int32], query_weights: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The score of every document, and whether it shares a latent with the query."""
    factor = quantisation.query_scale(query_weights, float(curve(codes, recipe).max()))
    owners = np.repeat(np.arange(len(codes)), np.diff(codes.offsets))
    stored = weights(codes, recipe)
    total, matched = np.zeros(len(codes), np.int64), np.zeros(len(codes), dtype=bool)
    for latent, weight in zip(query_ids, query_weights * np.float32(factor), strict=True):
        if weight == 0:
            continue
        entries = np.flatnonzero(codes.ids == latent)
        contributions = np.trunc(stored[entries] * weight).astype(np.int64)
        total[owners[entries]] += np.maximum(contributions, 1) if weight > 0 else np.minimum(contributions, -1)
        matched[owners[entries]] = True
    return total / factor, matched


def top(
    codes: Codes,
    recipe: Recipe,
    query_ids: NDArray[np.int32],
    query_weights: NDArray[np.float32],
    *,
    k: int,
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """At most k matching documents: higher scores first, equal scores in document order."""
    total, matched = scores(codes, recipe, query_ids, query_weights)
    hits = np.flatnonzero(matched if allowed is None else matched & allowed)
    best = hits[np.lexsort((hits, -total[hits]))][:k]
    return best, total[best]
