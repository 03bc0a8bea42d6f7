"""Pool: the codes of a text's rows become one sparse vector, which is then transformed and capped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.compiled import KernelGroup
from lexent.errors import InputError, MismatchError
from lexent.types import RowCodes, SparseVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.recipes import Pool, Recipe


NUMPY_SECONDS_PER_ENTRY = 1.5e-7
"""What NumPy takes for a code, roughly."""


def pool(codes: RowCodes, *, size: int, how: Pool) -> SparseVectors:
    """One vector a text: each latent's sum, or its maximum, over the text's rows. Sums are made in float64."""
    # The kernel indexes an array of `size` places by these ids, unchecked.
    if codes.ids.size and (int(codes.ids.min()) < 0 or int(codes.ids.max()) >= size):
        raise InputError(f"codes hold latents from {codes.ids.min()} to {codes.ids.max()}; allowed: 0 to {size - 1}")
    ids, values, counts = _ways(codes.ids.size).pool(codes.ids, codes.values, codes.offsets, size, how == "max")
    return SparseVectors(ids=ids, values=values, offsets=_offsets(counts), size=size)


def transform(vectors: SparseVectors, *, power: float, cap: int | None = None) -> SparseVectors:
    """Each value to the given power, then at most the `cap` strongest of each vector; ties go to the lower id."""
    values = _powered(vectors.values, power)
    counts = np.diff(vectors.offsets)
    if cap is None or not len(counts) or int(counts.max()) <= cap:
        return replace(vectors, values=values)
    kept = strongest(values, vectors.offsets, cap)
    offsets = _offsets(np.minimum(counts, cap))
    return SparseVectors(vectors.ids[kept], values[kept], offsets, vectors.size)


def strongest(values: NDArray[np.float32], offsets: NDArray[np.int64], cap: int) -> NDArray[np.int64]:
    """The entries to keep, ascending: of each vector the `cap` of largest value, earlier entries first among equals."""
    kept: NDArray[np.int64] = _ways(len(values)).strongest(values, offsets, cap)
    return kept


def as_query(
    vectors: SparseVectors, recipe: Recipe, *, buckets: int = 1, weights: NDArray[np.float32] | None = None
) -> SparseVectors:
    """Pooled queries as a recipe weighs them, before idf and steering: transformed and capped; all 1 where binary.

    buckets: equal parts of the latents. Each is capped by itself, and weighed as the recipe says, or by
    weights float32[n_vectors, buckets].
    """
    if recipe.buckets and len(recipe.buckets) != buckets:
        raise MismatchError(
            f"{len(recipe.buckets)} weights of buckets were given, {list(recipe.buckets)}; the lexicon has {buckets}"
        )
    parts = _by_bucket(vectors, buckets)
    found = transform(parts, power=recipe.power_for("query"), cap=recipe.query_cap)
    values = np.ones_like(found.values) if recipe.binary else found.values
    if recipe.buckets:
        values = values * np.array(recipe.buckets, np.float32)[found.ids // (vectors.size // buckets)]
    if weights is not None:
        values = values * np.repeat(weights.ravel(), np.diff(found.offsets))
    made = SparseVectors(found.ids, values, found.offsets[::buckets], vectors.size)
    return made if 0 not in recipe.buckets else _positive(made)


def unit(vectors: SparseVectors, *, buckets: int = 1) -> SparseVectors:
    """Every vector at length 1, or its part in each of several buckets."""
    parts = _by_bucket(vectors, buckets)
    counts = np.diff(parts.offsets)
    squares = np.concatenate([[0.0], np.cumsum(np.square(vectors.values, dtype=np.float64))])
    lengths = np.sqrt(squares[parts.offsets[1:]] - squares[parts.offsets[:-1]])
    lengths[lengths <= 0] = 1
    values = (vectors.values / np.repeat(lengths, counts)).astype(np.float32)
    return replace(vectors, values=values)


def _by_bucket(vectors: SparseVectors, buckets: int) -> SparseVectors:
    """Each vector as several, one after the other: what it has in each bucket. Ids stay as they are."""
    if buckets == 1:
        return vectors
    owner = np.repeat(np.arange(len(vectors)), np.diff(vectors.offsets))
    part = owner * buckets + vectors.ids // (vectors.size // buckets)
    counts = np.bincount(part, minlength=len(vectors) * buckets)
    return replace(vectors, offsets=_offsets(counts))


def _positive(vectors: SparseVectors) -> SparseVectors:
    """Without entries of weight 0."""
    kept = vectors.values > 0
    owner = np.repeat(np.arange(len(vectors)), np.diff(vectors.offsets))
    counts = np.bincount(owner[kept], minlength=len(vectors))
    return SparseVectors(vectors.ids[kept], vectors.values[kept], _offsets(counts), vectors.size)


def _ways(entries: int) -> Any:
    """The kernels, or their twins in NumPy."""
    if KERNELS.use(entries * NUMPY_SECONDS_PER_ENTRY):
        from lexent.weighting import kernels

        return kernels
    from lexent.weighting import numpy_pooling

    return numpy_pooling


def _exercise() -> None:
    from lexent.weighting import kernels

    ids, values = np.array([[1, 2], [1, 0]], np.int32), np.ones((2, 2), np.float32)
    offsets = np.array([0, 2], np.int64)
    kernels.pool(ids, values, offsets, 3, False)
    kernels.strongest(values.ravel(), np.array([0, 4], np.int64), 2)


def _entries() -> Sequence[Any]:
    from lexent.weighting import kernels

    return kernels.pool, kernels.strongest


KERNELS = KernelGroup("pooling", __name__, compile_s=5, exercise=_exercise, entries=_entries)


def _powered(values: NDArray[np.float32], power: float) -> NDArray[np.float32]:
    if power == 1:
        return values
    return np.sqrt(values) if power == 0.5 else np.power(values, np.float32(power))


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
