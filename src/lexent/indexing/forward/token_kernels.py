"""Numba kernels that pack and read token stores (see `tokens`). Imported on first use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexent.jit import njit

PART_ROWS = 256
"""Rows of a part, at most. Also in `tokens`."""
DAMAGED = -1
"""Returned by kernels instead of a result: the store is damaged."""


class TokenArrays(NamedTuple):
    """Arrays of a token store."""

    parts: NDArray[np.int64]  # [n_documents + 1]
    starts: NDArray[np.int64]  # [n_parts + 1, 2]
    rows: NDArray[np.uint16]  # [n_parts]
    latents: NDArray[Any]  # [n_directory], uint16 or uint32
    counts: NDArray[np.uint8]  # [n_directory]
    tokens: NDArray[np.uint8]  # [n_entries]
    values: NDArray[np.uint8]  # [n_entries]


@njit(cache=True, nogil=True)
def pack(ids: NDArray[np.int32], codes: NDArray[np.uint8], offsets: NDArray[np.int64], size: int) -> TokenArrays:
    """Packs rows of latents into parts: the arrays of a store, with 32-bit latents. Codes of 0 are left out."""
    n_documents = len(offsets) - 1
    parts = np.zeros(n_documents + 1, np.int64)
    for document in range(n_documents):
        n_rows = offsets[document + 1] - offsets[document]
        parts[document + 1] = parts[document] + (n_rows + PART_ROWS - 1) // PART_ROWS
    n_parts = parts[n_documents]
    starts = np.zeros((n_parts + 1, 2), np.int64)
    rows = np.zeros(n_parts, np.uint16)
    latents, counts = np.empty(ids.size, np.uint32), np.empty(ids.size, np.uint8)
    tokens, values = np.empty(ids.size, np.uint8), np.empty(ids.size, np.uint8)
    # Number of entries of each latent in this part, and then the place of its next entry.
    places = np.zeros(size, np.int64)
    part, n_directory, n_entries = 0, 0, 0
    for document in range(n_documents):
        for first in range(offsets[document], offsets[document + 1], PART_ROWS):
            last = min(first + PART_ROWS, offsets[document + 1])
            for row in range(first, last):
                for place in range(ids.shape[1]):
                    if codes[row, place] > 0:
                        places[ids[row, place]] += 1
            end, directory_start = n_entries, n_directory
            for latent in range(size):
                if places[latent] > 0:
                    latents[n_directory] = latent
                    counts[n_directory] = places[latent] - 1
                    n_directory += 1
                    end += places[latent]
                    places[latent] = end - places[latent]
            for row in range(first, last):
                for place in range(ids.shape[1]):
                    if codes[row, place] > 0:
                        entry = places[ids[row, place]]
                        tokens[entry] = row - first
                        values[entry] = codes[row, place]
                        places[ids[row, place]] = entry + 1
            for place in range(directory_start, n_directory):
                places[latents[place]] = 0
            n_entries = end
            rows[part] = last - first
            part += 1
            starts[part, 0], starts[part, 1] = n_directory, n_entries
    latents, counts = latents[:n_directory].copy(), counts[:n_directory].copy()
    return TokenArrays(parts, starts, rows, latents, counts, tokens[:n_entries].copy(), values[:n_entries].copy())


@njit(cache=True, nogil=True)
def gather(
    array: NDArray[Any], starts: NDArray[np.int64], column: int, which: NDArray[np.int64], out: NDArray[Any]
) -> None:
    """Copies an array's ranges of some parts, one after the other. column: of `starts`, where they begin."""
    end = 0
    for part in which:
        start, stop = starts[part, column], starts[part + 1, column]
        out[end : end + stop - start] = array[start:stop]
        end += stop - start


@njit(cache=True, nogil=True)
def maxima(store: TokenArrays, size: int) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64], int]:
    """Highest code of each latent of each document, latents ascending; and DAMAGED, or 0."""
    n_documents = len(store.parts) - 1
    ids, codes = np.empty(len(store.latents), np.int32), np.empty(len(store.latents), np.uint8)
    offsets = np.zeros(n_documents + 1, np.int64)
    highest = np.zeros(size, np.uint8)
    n = 0
    for document in range(n_documents):
        start = n
        for part in range(store.parts[document], store.parts[document + 1]):
            entry, end = store.starts[part, 1], store.starts[part + 1, 1]
            for place in range(store.starts[part, 0], store.starts[part + 1, 0]):
                latent, count = store.latents[place], np.int64(store.counts[place]) + 1
                if latent >= size or entry + count > end:
                    return ids[:0], codes[:0], offsets, DAMAGED
                high = store.values[entry : entry + count].max()
                entry += count
                if high == 0:
                    return ids[:0], codes[:0], offsets, DAMAGED
                if highest[latent] == 0:
                    ids[n] = latent
                    n += 1
                highest[latent] = max(highest[latent], high)
        if store.parts[document + 1] - store.parts[document] > 1:
            ids[start:n].sort()
        for place in range(start, n):
            codes[place] = highest[ids[place]]
            highest[ids[place]] = 0
        offsets[document + 1] = n
    return ids[:n].copy(), codes[:n].copy(), offsets, 0
