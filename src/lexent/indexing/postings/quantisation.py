"""Quantisation: 8-bit codes of values, shifts of document lengths, integer scales of scores.

A value is stored as an 8-bit code on a logarithmic scale, 16 codes to the doubling: at most 2.2 % from the value. An
impact (document-side weight) is a function of value / divisor of its document. The divisor is stored on such a scale
too, as a shift, so an impact is found by an addition: curve[2 code + shift]. (The steps of shifts are half as wide: the
error of a divisor is the same for all concepts of a document, and does not average out.) Codes hold values before the
transform, so k1, b, the transform and the collection's average length can change without the codes changing.

Neither scale saturates in practice. Shifts have 16 bits: a document may be from a thousandth to ten thousand times as
long as the average. A document with a value above HIGHEST_VALUE has doublings: its codes stand for its values divided
by 2 ** doublings, and its shift makes up for it. Its values below 1 / 65,000 of the largest are then raised to that.

Token codes are vectors of length 1 and are compared by dot products only. Where a recipe matches by MaxSim, codes are
on a linear scale of 255 steps from 0 to 1, and an impact is code / 255.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lexent.recipes import Recipe

CODES_PER_DOUBLING = 16
"""Codes to a doubling of the value."""
LOWEST_LOG2 = -8.0
"""Base-2 logarithm of the value of code 1. Lower values are raised to it."""
HIGHEST_VALUE = 2.0 ** (254 / CODES_PER_DOUBLING + LOWEST_LOG2)
"""Value of code 255, about 235. Documents with higher values have doublings."""
MAX_DOUBLINGS = 96
"""Doublings of a document, at most (a list's max position has bits for 104). Higher values are clipped."""
NEUTRAL_SHIFT = 8192
"""Shift of a document whose divisor is 1."""
CURVE_SIZE = 2 * NEUTRAL_SHIFT
"""Elements of an impact curve, which is indexed by 2 code + shift."""
NARROW_NEUTRAL_SHIFT = 112
"""`NEUTRAL_SHIFT` on the narrow scale: the 8-bit shifts of the max positions in records, and of upper bounds."""
NARROW_SHIFT_OFFSET = NEUTRAL_SHIFT - NARROW_NEUTRAL_SHIFT
"""Added to a narrow shift, gives the shift."""
MIN_DIVISOR = 2.0**-10
"""Lower divisors are raised to this: of documents below a thousandth of the average length, or where b is above 1."""
MAX_LENGTH = 2.0**32
"""Length of a document, at most. Longer ones are clipped."""
LINEAR_STEPS = 255
"""Steps of the linear scale of codes."""
MAX_SCALED_SCORE = 2.0**30
"""Upper limit of the sum of a query's scaled contributions."""

CODE_OF_ONE = 129
"""Code of the value 1, which every concept of a document has in a binary index."""
CODE_VALUES: NDArray[np.float64] = np.concatenate([[0.0], 2.0 ** (np.arange(255) / CODES_PER_DOUBLING + LOWEST_LOG2)])
"""float64[256]: values of the codes; code 0 is no value."""


def doublings(values: NDArray[np.float32], offsets: NDArray[np.int64]) -> NDArray[np.uint8] | None:
    """uint8[n_documents]: how often each document's values are halved to be at most HIGHEST_VALUE; None where never."""
    if not len(values) or float(values.max()) <= HIGHEST_VALUE:
        return None
    counts, nonempty = np.zeros(len(offsets) - 1, np.uint8), np.diff(offsets) > 0
    highest = np.maximum.reduceat(values, offsets[:-1][nonempty]).astype(np.float64)
    counts[nonempty] = np.ceil(np.clip(np.log2(highest / HIGHEST_VALUE), 0, MAX_DOUBLINGS))
    return counts


def encode(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Codes of values above 0, up to HIGHEST_VALUE."""
    steps = np.rint((np.log2(values) - np.float32(LOWEST_LOG2)) * np.float32(CODES_PER_DOUBLING))
    codes: NDArray[np.uint8] = (np.clip(steps, 0, 254) + 1).astype(np.uint8)
    return codes


def encode_linear(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Codes of values from 0 to 1 on the linear scale; only 0 has the code 0."""
    steps = np.clip(np.rint(values * np.float32(LINEAR_STEPS)), 1, LINEAR_STEPS)
    return np.where(values > 0, steps, 0).astype(np.uint8)


def transformed_values(recipe: Recipe) -> NDArray[np.float64]:
    """float64[256]: values of the codes after the recipe's transform."""
    return CODE_VALUES**recipe.power if recipe.match == "documents" else np.arange(256) / LINEAR_STEPS


def impact_curve(recipe: Recipe, *, doublings: int = 0) -> NDArray[np.float32]:
    """float32[CURVE_SIZE]: the impact at 2 code + shift; it is non-decreasing.

    doublings: the highest of any document.
    """
    if recipe.match == "maxsim":
        return (np.clip((np.arange(CURVE_SIZE) - NEUTRAL_SHIFT) / 2, 0, LINEAR_STEPS) / LINEAR_STEPS).astype(np.float32)
    logarithm = (np.arange(CURVE_SIZE) - 2 - NEUTRAL_SHIFT) / (2 * CODES_PER_DOUBLING) + LOWEST_LOG2
    formula = recipe.weighting
    if formula.formula == "count":
        return np.ones(CURVE_SIZE, np.float32)
    if formula.formula == "dot":
        # The highest impact sets the resolution of scores (`query_scale`), so the curve is flat above the highest value
        # that there can be. Values of vectors of length 1 are at most 1.
        logarithm = np.minimum(logarithm, 0.0 if recipe.unit else math.log2(HIGHEST_VALUE) + doublings)
    ratio = 2.0 ** (recipe.power * logarithm)
    # With k1 = 0 the impact is 1 for every latent of a document.
    weights = ratio if formula.formula == "dot" else ratio * (formula.k1 + 1.0) / (ratio + formula.k1)
    return np.maximum(weights, float(np.finfo(np.float32).tiny)).astype(np.float32)


def length_slope(recipe: Recipe) -> float:
    """Strength of length normalisation: b, or 0 in formulas without one."""
    return recipe.weighting.b if recipe.weighting.formula == "bm25" else 0.0


def shifts(
    lengths: NDArray[np.uint16], average: float, recipe: Recipe, *, doublings: NDArray[np.uint8] | None = None
) -> NDArray[np.uint16]:
    """Shifts of documents of these lengths, from BM25's divisor: 1 - b + b * length / average."""
    found = _relative_shifts(lengths, average, recipe.power, length_slope(recipe)) + NEUTRAL_SHIFT
    if doublings is not None:
        found += 2 * CODES_PER_DOUBLING * doublings.astype(np.int64)
    return np.clip(found, 0, CURVE_SIZE - 2 * 256).astype(np.uint16)


def narrow_shifts(
    lengths: NDArray[np.uint16],
    average: float,
    recipe: Recipe,
    *,
    b: float | None = None,
    doublings: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint16]:
    """Shifts on the narrow scale: 8 bits without doublings, saturated at both ends. b: instead of the recipe's."""
    relative = _relative_shifts(lengths, average, recipe.power, length_slope(recipe) if b is None else b)
    found = np.clip(relative + NARROW_NEUTRAL_SHIFT, 0, 255)
    if doublings is not None:
        found += 2 * CODES_PER_DOUBLING * doublings.astype(np.int64)
    return found.astype(np.uint16)


def half_shifts(shifts: NDArray[np.uint16], out: NDArray[np.uint8]) -> None:
    """Half of each narrow shift, rounded up, from 0 to 255: added to a code, the index into a table of upper bounds."""
    narrow = shifts.astype(np.int32) - NARROW_SHIFT_OFFSET
    np.clip((narrow + 1) >> 1, 0, 255, out=narrow)
    out[:] = narrow


def _relative_shifts(lengths: NDArray[np.uint16], average: float, power: float, b: float) -> NDArray[np.int64]:
    if b == 0 or average <= 0:
        return np.zeros(lengths.shape, np.int64)
    # A table of all 16-bit lengths is cheaper than a logarithm a document. With b above 1 the divisors of short
    # documents are negative.
    divisor = 1.0 - b + b * decode_lengths(np.arange(2**16, dtype=np.uint16)) / average
    table = np.rint(-np.log2(np.maximum(divisor, MIN_DIVISOR)) * (2 * CODES_PER_DOUBLING / power)).astype(np.int64)
    return table[lengths]


def encode_lengths(lengths: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Lengths of documents as unsigned 16-bit floats: 6 bits of exponent, 10 of fraction.

    Up to 65,504 the bits are those of a float16. The error is at most 1 / 2048.
    """
    lengths = np.minimum(lengths, MAX_LENGTH)
    fraction, exponent = np.frexp(np.maximum(lengths, 1.0))
    large = ((exponent.astype(np.int64) + 14) << 10) + np.rint((2 * fraction - 1) * 1024).astype(np.int64)
    small = np.minimum(lengths, 1.0).astype(np.float16).view(np.uint16)
    return np.where(lengths >= 1, large, small).astype(np.uint16)


def decode_lengths(codes: NDArray[np.uint16]) -> NDArray[np.float64]:
    """Lengths of their 16-bit codes; MAX_LENGTH for codes that no length has."""
    bits = codes.astype(np.int64)
    large = np.ldexp(1 + (bits & 1023) / 1024, (bits >> 10) - 15)
    small = np.minimum(codes, 0x7BFF).astype(np.uint16).view(np.float16).astype(np.float64)
    return np.minimum(np.where(bits > 0x7BFF, large, small), MAX_LENGTH)


def length_units(lengths: NDArray[np.uint16]) -> int:
    """Sum of lengths in units of 2 ** -24, exact: it does not depend on how documents are spread over segments."""
    units = (decode_lengths(lengths) * 2.0**24).astype(np.int64)  # at most 2 ** 56 each
    return (int((units >> 32).sum()) << 32) + int((units & 0xFFFFFFFF).sum())  # 64 bits would not hold the sum


def average_length(units: int, n_documents: int) -> float:
    """Average length of documents from the sum of their lengths in `length_units`."""
    return units / 2**24 / n_documents if n_documents else 0.0


def query_scale(weights: NDArray[np.float32], highest: float) -> float:
    """Factor of a query's weights, a power of two, so that no sum of its contributions exceeds 2 ** 30.

    highest: the highest impact.
    """
    total = float(np.add.reduce(np.abs(weights), dtype=np.float64)) * highest
    return math.ldexp(MAX_SCALED_SCORE, -math.frexp(total)[1]) if total and math.isfinite(total) else 1.0


def row_scale(weights: NDArray[np.float32], offsets: NDArray[np.int64]) -> float:
    """Factor of the weights of a query's rows for MaxSim, a power of two, so that none exceeds 2 ** 12.

    It is lower where a row's dot product with the codes of a token would not fit 31 bits.
    """
    if not len(weights):
        return 1.0
    sums = np.add.reduceat(np.abs(weights), offsets[:-1][np.diff(offsets) > 0], dtype=np.float64)
    # A weight is rounded up to at least 1, so each may exceed its scaled value by up to 1.
    limit = (2.0**31 - 1) / LINEAR_STEPS - int(np.diff(offsets).max())
    scale = min(2.0**12 / float(np.abs(weights).max()), limit / float(sums.max()))
    return math.ldexp(1.0, math.frexp(scale)[1] - 1)


def quantise_weights(weights: NDArray[np.float32], scale: float) -> NDArray[np.int32]:
    """Weights times a scale, rounded to integers; only 0 becomes 0."""
    rounded = np.rint(weights.astype(np.float64) * scale)
    rounded = np.where(weights > 0, np.maximum(rounded, 1), np.where(weights < 0, np.minimum(rounded, -1), 0))
    return rounded.astype(np.int32)
