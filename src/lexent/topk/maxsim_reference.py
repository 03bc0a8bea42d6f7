"""Slow twin of the MaxSim kernels, in plain NumPy. Tests compare the two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lexent.indexing.forward.tokens import TokenStore

Ints = NDArray[np.int64]


def similarities(
    store: TokenStore, document: int, ids: NDArray[np.int32], values: NDArray[np.int32], offsets: NDArray[np.int64]
) -> Ints:
    """int64[n_query_rows, n_document_rows]: weight times code, summed over the latents that two rows share.

    ids, values: of the query's row i from offsets[i] to offsets[i + 1].
    """
    found = store.document(document)
    sums = np.zeros((len(offsets) - 1, found.n_rows), np.int64)
    for row in range(len(offsets) - 1):
        for entry in range(int(offsets[row]), int(offsets[row + 1])):
            shared = found.latents == ids[entry]
            np.add.at(sums[row], found.rows[shared], int(values[entry]) * found.values[shared])
    return sums


def score(similar: Ints) -> int:
    """MaxSim: the sum over the query's rows of the highest similarity to a row of the document."""
    return int(similar.max(axis=1).sum()) if similar.shape[1] else 0


def scores(store: TokenStore, ids: NDArray[np.int32], values: NDArray[np.int32], offsets: NDArray[np.int64]) -> Ints:
    """int64[n_documents]: the score of every document."""
    return np.array([score(similarities(store, one, ids, values, offsets)) for one in range(len(store))], np.int64)
