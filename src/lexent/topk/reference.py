"""What the kernels compute, the obvious way in NumPy. Tests hold the two together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lexent.indexing import scale
from lexent.indexing.segment import Codes
from lexent.recipes import Recipe


def lengths(codes: Codes, recipe: Recipe) -> NDArray[np.float16]:
    """The length of each document: the sum of its values after the transform."""
    values = scale.transformed(recipe)
    sums = [values[codes.codes[start:stop]].sum() for start, stop in pairwise(codes.offsets)]
    return np.minimum(np.array(sums, np.float64), 65_504).astype(np.float16)


def weights(codes: Codes, recipe: Recipe) -> NDArray[np.float32]:
    """float32[n_entries]: the document-side weight of each entry, for documents that are the whole collection."""
    found = lengths(codes, recipe)
    average = scale.average_length(scale.length_units(found), len(found))
    shifts = scale.shifts(found, average, recipe).astype(np.int64)
    return scale.curve(recipe)[2 * codes.codes.astype(np.int64) + np.repeat(shifts, np.diff(codes.offsets))]


def scores(
    codes: Codes, recipe: Recipe, query_ids: NDArray[np.int32], query_weights: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The score of every document, and whether it shares a latent with the query."""
    factor = scale.query_scale(query_weights, float(scale.curve(recipe).max()))
    owners = np.repeat(np.arange(len(codes)), np.diff(codes.offsets))
    stored = weights(codes, recipe)
    total, matched = np.zeros(len(codes), np.int64), np.zeros(len(codes), dtype=bool)
    for latent, weight in zip(query_ids, query_weights * np.float32(factor), strict=True):
        if weight == 0:
            continue
        entries = np.flatnonzero(codes.ids == latent)
        gains = np.trunc(stored[entries] * weight).astype(np.int64)
        total[owners[entries]] += np.maximum(gains, 1) if weight > 0 else np.minimum(gains, -1)
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
