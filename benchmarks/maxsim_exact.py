"""Exact MaxSim over dense token states, by brute force: every token of every passage with every token of a query."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.maxsim_data import TokenStates

STRETCH = 128
"""Passages at a time."""
TIMED = 3
"""Queries that are asked one by one, to say how long one takes."""


def best(passages: TokenStates, queries: Sequence[NDArray[np.float16]], *, k: int) -> tuple[NDArray[np.int32], float]:
    """The k best passages of each query, and the milliseconds of a query that is asked alone."""
    found = _scores(passages, queries)
    ids = np.argsort(-found, axis=1, kind="stable")[:, :k].astype(np.int32)
    began = time.perf_counter()
    for query in queries[:TIMED]:
        _scores(passages, [query])
    return ids, (time.perf_counter() - began) * 1e3 / len(queries[:TIMED])


def _scores(passages: TokenStates, queries: Sequence[NDArray[np.float16]]) -> NDArray[np.float32]:
    """float32[n_queries, n_passages]"""
    query_tokens = np.concatenate(queries).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum([len(query) for query in queries])])[:-1]
    scores = np.empty((len(queries), len(passages)), np.float32)
    offsets = passages.offsets
    for first in range(0, len(passages), STRETCH):
        last = min(first + STRETCH, len(passages))
        rows = np.asarray(passages.values[offsets[first] : offsets[last]], np.float32)
        highest = np.maximum.reduceat(query_tokens @ rows.T, offsets[first:last] - offsets[first], axis=1)
        scores[:, first:last] = np.add.reduceat(highest, starts, axis=0)
    return scores
