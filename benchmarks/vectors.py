"""The vectors that the index benchmarks run on: real ones from a folder, and more with the same statistics.

The folder holds `lt120k-docs-*.npz` (counts, gaps between ascending ids, values of 8 bits) and `lt120k-queries.npz`
(counts, ids, values, and the scale of the documents' values). Values stand after the square root.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.recipes import BM25, Recipe
from lexent.types import SparseVectors
from lexent.weighting import idf

SIZE = 32_768
K1, B = 3.0, 0.5
RECIPE = Recipe(name="benchmark", power=0.5, weighting=BM25(k1=K1, b=B))


@dataclass(frozen=True, slots=True)
class Query:
    """One query: ids ascending, weights before idf."""

    ids: NDArray[np.int32]
    values: NDArray[np.float32]

    @property
    def vectors(self) -> SparseVectors:
        return SparseVectors(self.ids, self.values, np.array([0, len(self.ids)], np.int64), SIZE)


@dataclass(frozen=True, slots=True)
class Baked:
    """BM25 weights with idf on the document side, as the peers take them: by document (CSR) and by latent (CSC)."""

    rows: Any
    columns: Any

    @property
    def n_documents(self) -> int:
        return int(self.rows.shape[0])

    @property
    def n_postings(self) -> int:
        return int(self.rows.nnz)


def load(folder: Path) -> tuple[SparseVectors, list[Query]]:
    """The documents and the queries of a folder."""
    parts = [np.load(path) for path in sorted(folder.glob("lt120k-docs-*.npz"))]
    if not parts:
        raise SystemExit(f'no vectors (lt120k-docs-*.npz) in "{folder}"')
    scale = np.load(folder / "lt120k-queries.npz")["scale"]
    counts = np.concatenate([part["counts"] for part in parts]).astype(np.int64)
    gaps = np.concatenate([part["gaps"] for part in parts])
    values = np.concatenate([part["values"] for part in parts]) * np.float32(scale)
    offsets = np.concatenate([[0], counts.cumsum()])
    return SparseVectors(_ascending(gaps, offsets), values, offsets, SIZE), load_queries(folder)


def load_queries(folder: Path) -> list[Query]:
    found = np.load(folder / "lt120k-queries.npz")
    ends = found["counts"].astype(np.int64).cumsum()[:-1]
    pairs = zip(np.split(found["ids"].astype(np.int32), ends), np.split(found["values"], ends), strict=True)
    return [Query(ids, values.astype(np.float32)) for ids, values in pairs]


def synthetic(real: SparseVectors, start: int, stop: int, *, seed: int = 0) -> SparseVectors:
    """Documents start to stop of an endless collection: the real ones, then mixtures of them.

    A mixture has the even latents of one real document and the odd ones of another. Any stretch can be made alone.
    """
    left, right, n = np.arange(start, stop) % len(real), np.empty(stop - start, np.int64), len(real)
    for copy in range(start // n, -(-stop // n)):
        partners = np.random.default_rng([seed, copy]).permutation(n) if copy else np.arange(n)
        first, last = max(start, copy * n), min(stop, (copy + 1) * n)
        right[first - start : last - start] = partners[first - copy * n : last - copy * n]
    ids, values, offsets = _mixed(real.ids, real.values, real.offsets, left, right)
    return SparseVectors(ids, values, offsets, real.size)


def squared(vectors: SparseVectors) -> SparseVectors:
    """Before the square root, as an index takes them."""
    return SparseVectors(vectors.ids, vectors.values**2, vectors.offsets, vectors.size)


def bake(documents: SparseVectors) -> Baked:
    from scipy.sparse import csr_matrix

    n = len(documents)
    factors = idf(np.bincount(documents.ids, minlength=SIZE), n, "lucene")
    weights = _weights(documents.ids, documents.values, documents.offsets, factors, K1, B)
    narrow = np.int32 if len(weights) < 2**31 else np.int64
    rows = csr_matrix((weights, documents.ids, documents.offsets.astype(narrow)), shape=(n, SIZE))
    return Baked(rows, rows.tocsc())


def longer(queries: list[Query], n: int, latents: int) -> list[Query]:
    """Queries of so many latents: each takes those of one query and of the ones after it, until there are enough."""
    found = []
    for start in range(n):
        dense, place = np.zeros(SIZE, np.float32), start
        while np.count_nonzero(dense) < latents:
            query = queries[place % len(queries)]
            new = np.flatnonzero(dense[query.ids] == 0)[: latents - np.count_nonzero(dense)]
            dense[query.ids[new]] = query.values[new]
            place += 1
        ids = np.flatnonzero(dense).astype(np.int32)
        found.append(Query(ids, dense[ids]))
    return found


@njit(cache=True)
def _ascending(gaps: NDArray[np.uint16], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    ids = np.empty(len(gaps), np.int32)
    for document in range(len(offsets) - 1):
        last = 0
        for entry in range(offsets[document], offsets[document + 1]):
            last += gaps[entry]
            ids[entry] = last
    return ids


@njit(cache=True)
def _mixed(
    ids: NDArray[np.int32],
    values: NDArray[np.float32],
    offsets: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]:
    ends = np.zeros(len(left) + 1, np.int64)
    for document in range(len(left)):
        count = 0
        for entry in range(offsets[left[document]], offsets[left[document] + 1]):
            count += ids[entry] % 2 == 0
        for entry in range(offsets[right[document]], offsets[right[document] + 1]):
            count += ids[entry] % 2 == 1
        ends[document + 1] = ends[document] + count
    out_ids, out_values = np.empty(ends[-1], np.int32), np.empty(ends[-1], np.float32)
    for document in range(len(left)):
        place = ends[document]
        one, end = offsets[left[document]], offsets[left[document] + 1]
        other, other_end = offsets[right[document]], offsets[right[document] + 1]
        while True:
            while one < end and ids[one] % 2 == 1:
                one += 1
            while other < other_end and ids[other] % 2 == 0:
                other += 1
            if one == end and other == other_end:
                break
            if other == other_end or (one < end and ids[one] < ids[other]):
                out_ids[place], out_values[place] = ids[one], values[one]
                one += 1
            else:
                out_ids[place], out_values[place] = ids[other], values[other]
                other += 1
            place += 1
    return out_ids, out_values, ends


@njit(cache=True)
def _weights(
    ids: NDArray[np.int32],
    values: NDArray[np.float32],
    offsets: NDArray[np.int64],
    factors: NDArray[np.float64],
    k1: float,
    b: float,
) -> NDArray[np.float32]:
    n, weights = len(offsets) - 1, np.empty(len(ids), np.float32)
    lengths = np.zeros(n, np.float64)
    for document in range(n):
        for entry in range(offsets[document], offsets[document + 1]):
            lengths[document] += values[entry]
    average = lengths.mean()
    for document in range(n):
        held = k1 * (1 - b + b * lengths[document] / average)
        for entry in range(offsets[document], offsets[document + 1]):
            weights[entry] = values[entry] * (k1 + 1) / (values[entry] + held) * factors[ids[entry]]
    return weights
