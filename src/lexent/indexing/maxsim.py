"""The Numba kernels of MaxSim over stores of tokens. Their slow twin is `lexent.indexing.maxsim_reference`.

A query is a list of rows: its tokens, each a few latents with whole-number weights. What a row gives to a document is
the most that it has in common with one of the document's rows, the sum of the products of weights and codes over the
latents that the two share. All of it is whole numbers, so a score is the same whatever is pruned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing.token_kernels import DAMAGED, PART, Tokens


class Asked(NamedTuple):
    """A query's rows, by latent: entries firsts[p] to firsts[p + 1] are of the latent with table[latent] == p."""

    table: NDArray[np.int32]  # [size], -1 for latents that the query lacks
    firsts: NDArray[np.int32]  # [n_latents + 1]
    rows: NDArray[np.int32]  # [n_entries]
    values: NDArray[np.int32]  # [n_entries]
    sims: NDArray[np.int32]  # [n_rows, PART]: working memory, zero between documents
    best: NDArray[np.int32]  # [n_rows]: working memory


def ask(ids: NDArray[np.int32], values: NDArray[np.int32], offsets: NDArray[np.int64], *, size: int) -> Asked:
    """A query as the kernels read it. ids, values: of row i from offsets[i] to offsets[i + 1]."""
    known = (ids >= 0) & (ids < size) & (values != 0)
    rows = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))[known]
    order = np.argsort(ids[known], kind="stable")
    latents, firsts = np.unique(ids[known][order], return_index=True)
    table = np.full(size, -1, np.int32)
    table[latents] = np.arange(len(latents), dtype=np.int32)
    n_rows = len(offsets) - 1
    return Asked(
        table=table,
        firsts=np.append(firsts, len(order)).astype(np.int32),
        rows=rows[order],
        values=values[known][order].astype(np.int32),
        sims=np.zeros((n_rows, PART), np.int32),
        best=np.zeros(n_rows, np.int32),
    )


@njit(cache=True, nogil=True)
def refine(asked: Asked, store: Tokens, documents: NDArray[np.int64], scores: NDArray[np.int64]) -> int:
    """The scores of some documents of a segment, by position in it; DAMAGED, or 0."""
    table, sims, best = asked.table, asked.sims, asked.best
    n_rows, size = len(best), len(table)
    lowest = np.int32(-(2**31 - 1))
    for place in range(len(documents)):
        document = documents[place]
        first, last = store.parts[document], store.parts[document + 1]
        best[:] = lowest if last > first else 0
        for part in range(first, last):
            n = np.int64(store.rows[part])
            if n > PART:
                return DAMAGED
            sims[:, :n] = 0
            entry, end = store.starts[part, 1], store.starts[part + 1, 1]
            for row in range(store.starts[part, 0], store.starts[part + 1, 0]):
                latent, count = np.int64(store.latents[row]), np.int64(store.counts[row]) + 1
                if latent >= size or entry + count > end:
                    return DAMAGED
                found = table[latent]
                if found >= 0:
                    for asking in range(asked.firsts[found], asked.firsts[found + 1]):
                        weight, mine = asked.values[asking], sims[asked.rows[asking]]
                        for other in range(entry, entry + count):
                            mine[store.tokens[other]] += weight * np.int32(store.values[other])
                entry += count
            for row in range(n_rows):
                for token in range(n):
                    best[row] = max(best[row], sims[row, token])
        total = np.int64(0)
        for row in range(n_rows):
            total += best[row]
        scores[place] = total
    return 0
