"""The scales that an index keeps its numbers on: codes for values, shifts for lengths, whole numbers for scores.

A value is kept as a code of 8 bits on a logarithmic scale, 16 steps to the doubling: at most 2.2 % from the value it
stands for. Since a document-side weight is a function of value / divisor of its document, and the divisor is kept on
such a scale too, a weight is found by an addition: curve[2 code + shift]. (The divisor's steps are half as wide: its
error is the same for all of a document's concepts, and does not average out.) Codes hold values before the transform,
so k1, b, the transform and the collection's average length can change without the codes changing.

Codes of tokens are of length 1 and are compared by their products alone: where a recipe matches by MaxSim, codes are on
a linear scale of 255 steps from 0 to 1, and a weight is code / 255.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lexent.recipes import Recipe

STEPS = 16
"""Codes to a doubling of the value."""
LOWEST = -8.0
"""The base-2 logarithm of the value of code 1; 255 stands for 2 ** 7.875, about 235. Others are moved to the ends."""
NEUTRAL = 112
"""The shift of a document whose divisor is 1."""
CURVE = 768
"""Places of a curve: twice codes up to 255, and shifts up to 255."""
LINEAR = 255
"""Steps of the linear scale."""
FULL = 2.0**30
"""No sum of a query's scaled contributions is larger."""

ONE = 129
"""The code of the value 1, which every concept of a document has in a binary index."""
VALUES: NDArray[np.float64] = np.concatenate([[0.0], 2.0 ** (np.arange(255) / STEPS + LOWEST)])
"""float64[256]: the values that codes stand for; code 0 is no value."""


def encode(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The codes of values above 0."""
    steps = np.rint((np.log2(values) - np.float32(LOWEST)) * np.float32(STEPS))
    codes: NDArray[np.uint8] = (np.clip(steps, 0, 254) + 1).astype(np.uint8)
    return codes


def encode_linear(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The codes of values from 0 to 1 on the linear scale; only 0 has the code 0."""
    steps = np.clip(np.rint(values * np.float32(LINEAR)), 1, LINEAR)
    return np.where(values > 0, steps, 0).astype(np.uint8)


def transformed(recipe: Recipe) -> NDArray[np.float64]:
    """float64[256]: the values of codes after the recipe's transform."""
    return VALUES**recipe.power if recipe.match == "documents" else np.arange(256) / LINEAR


def curve(recipe: Recipe) -> NDArray[np.float32]:
    """float32[768]: the document-side weight at 2 code + shift."""
    if recipe.match == "maxsim":
        return (np.clip((np.arange(CURVE) - NEUTRAL) / 2, 0, LINEAR) / LINEAR).astype(np.float32)
    logarithm = (np.arange(CURVE) - 2 - NEUTRAL) / (2 * STEPS) + LOWEST
    ratio = 2.0 ** (recipe.power * logarithm)
    formula = recipe.weighting
    if formula.formula == "count":
        return np.ones(CURVE, np.float32)
    if formula.formula == "dot":
        # Values of vectors of length 1 are at most 1. The highest weight decides how fine scores are (`query_scale`):
        # with the scale's own, thousands of small products would come to 0.
        return (np.minimum(ratio, 1.0) if recipe.unit else ratio).astype(np.float32)
    # k1 = 0 makes this 1: every latent that a document has counts the same.
    return (ratio * (formula.k1 + 1.0) / (ratio + formula.k1)).astype(np.float32)


def slope(recipe: Recipe) -> float:
    """How much the lengths of documents matter: b, and not at all in formulas that leave them out."""
    return recipe.weighting.b if recipe.weighting.formula == "bm25" else 0.0


def shifts(
    lengths: NDArray[np.float16], average: float, recipe: Recipe, *, b: float | None = None
) -> NDArray[np.uint8]:
    """The shifts of documents of these lengths, by what BM25 divides their values by: 1 - b + b * length / average.

    b: another than the recipe's.
    """
    b = slope(recipe) if b is None else b
    if b == 0 or average <= 0:
        return np.full(lengths.shape, NEUTRAL, np.uint8)
    # Every length that 16 bits can say, once: cheaper than a logarithm a document. b above 1 makes short documents'
    # divisors negative; they are held at what the scale can say.
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float64)
    divisor = 1.0 - b + b * np.where(np.isfinite(every) & (every > 0), every, 0.0) / average
    steps = NEUTRAL - np.log2(np.maximum(divisor, 2.0**-16)) * (2 * STEPS / recipe.power)
    table = np.clip(np.rint(steps), 0, 255).astype(np.uint8)
    return table[lengths.view(np.uint16)]


def length_units(lengths: NDArray[np.float16]) -> int:
    """The sum of lengths in units of 2 ** -24, exact: the same however the documents are spread over segments."""
    units = (lengths.astype(np.float64) * 2.0**24).astype(np.int64)  # at most 2 ** 40 each
    return int(units.sum())


def average_length(units: int, n_documents: int) -> float:
    return units / 2**24 / n_documents if n_documents else 0.0


def query_scale(weights: NDArray[np.float32], highest: float) -> float:
    """What a query's weights are multiplied by, a power of two: no sum of its contributions then exceeds 2 ** 30.

    highest: the largest document-side weight.
    """
    total = float(np.add.reduce(np.abs(weights), dtype=np.float64)) * highest
    return math.ldexp(FULL, -math.frexp(total)[1]) if total and math.isfinite(total) else 1.0


def row_scale(weights: NDArray[np.float32], offsets: NDArray[np.int64]) -> float:
    """What the weights of a query's rows are multiplied by for MaxSim, a power of two: none is then above 2 ** 12.

    It is less where a row's products with the codes of a token would not fit 31 bits.
    """
    if not len(weights):
        return 1.0
    sums = np.add.reduceat(np.abs(weights), offsets[:-1][np.diff(offsets) > 0], dtype=np.float64)
    # A weight is rounded up to 1 at least, so each may come to more than its share by 1.
    room = (2.0**31 - 1) / LINEAR - int(np.diff(offsets).max())
    most = min(2.0**12 / float(np.abs(weights).max()), room / float(sums.max()))
    return math.ldexp(1.0, math.frexp(most)[1] - 1)


def whole_numbers(weights: NDArray[np.float32], scale: float) -> NDArray[np.int32]:
    """Weights times their scale, rounded; one that is not 0 stays so."""
    rounded = np.rint(weights.astype(np.float64) * scale)
    rounded = np.where(weights > 0, np.maximum(rounded, 1), np.where(weights < 0, np.minimum(rounded, -1), 0))
    return rounded.astype(np.int32)
