"""Coding of states that are NumPy arrays by the full product in float32, without torch.

For autoencoders of few latents, for those in jumprelu form, which read one state a text, and for a query and a few
documents while the kernels of the first pass are not ready.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from lexent import cpu

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.sae.autoencoder import SparseAutoencoder

    Coded = tuple[NDArray[np.int32], NDArray[np.float32]]

ROWS_PER_STEP = 128
"""States whose pre-activations are held at a time: 16 MB for 32,768 latents."""
BLOCK_LATENTS = 64
"""Latents of a block: of m blocks, block b holds the latents b, m + b, 2 m + b and so on."""


def strongest_in_array(sae: SparseAutoencoder, states: NDArray[np.float32], k: int) -> Coded:
    """ids int32[n, k] and activations float32[n, k], strongest first; of equal ones the lower number comes first."""
    ids, values = np.empty((len(states), k), np.int32), np.empty((len(states), k), np.float32)
    _ = sae.encoder_rows  # once, before there are threads

    def code(start: int) -> None:
        part = slice(start, start + ROWS_PER_STEP)
        ids[part], values[part] = _strongest(_pre_activations(sae, states[part]), k)

    starts = range(0, len(states), ROWS_PER_STEP)
    threads = min(len(starts), cpu.threads())
    with cpu.one_blas_thread():
        if threads <= 1:  # a query
            for start in starts:
                code(start)
            return ids, values
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(code, starts))
    return ids, values


def _strongest(pre: NDArray[np.float32], k: int) -> Coded:
    """The k best columns of each row: those of at least the k-th best maximum of a block are all that there can be."""
    n, m = pre.shape
    blocks = m // BLOCK_LATENTS
    if blocks < k:
        order = np.argsort(-pre, axis=1, kind="stable")[:, :k]
        return order.astype(np.int32), np.maximum(np.take_along_axis(pre, order, axis=1), 0)
    tops = pre[:, : blocks * BLOCK_LATENTS].reshape(n, BLOCK_LATENTS, blocks).max(axis=1)
    least = np.partition(tops, blocks - k, axis=1)[:, blocks - k]
    rows, columns = np.divmod(np.flatnonzero(pre >= least[:, None]), m)
    order = np.lexsort((-pre[rows, columns], rows))  # which is stable: of equal ones the lower number comes first
    starts = np.searchsorted(rows, np.arange(n))
    best = order[starts[:, None] + np.arange(k)]
    return columns[best].astype(np.int32), np.maximum(pre[rows[best], columns[best]], 0)


def above_in_array(sae: SparseAutoencoder, states: NDArray[np.float32], threshold: float) -> Coded:
    """ids int32[n, most] and activations float32[n, most] of all latents above the threshold, strongest first.

    most: how many the richest state has, at least 1. Places without an active latent hold 0.
    """
    parts: list[list[NDArray[np.int64]]] = []
    found: list[list[NDArray[np.float32]]] = []
    for start in range(0, len(states), ROWS_PER_STEP):
        pre = _pre_activations(sae, states[start : start + ROWS_PER_STEP])
        active = [np.flatnonzero(row > np.float32(max(threshold, 0.0))) for row in pre]
        active = [own[np.argsort(-row[own], kind="stable")] for row, own in zip(pre, active, strict=True)]
        parts.append(active)
        found.append([row[own] for row, own in zip(pre, active, strict=True)])
    most = max([1, *(len(own) for part in parts for own in part)])
    ids, values = np.zeros((len(states), most), np.int32), np.zeros((len(states), most), np.float32)
    for row, (own, strengths) in enumerate(
        pair for part, held in zip(parts, found, strict=True) for pair in zip(part, held, strict=True)
    ):
        ids[row, : len(own)], values[row, : len(own)] = own, strengths
    return ids, values


def _pre_activations(sae: SparseAutoencoder, states: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32[n, d_sae]: W_enc (x - b_dec) + b_enc."""
    centred = (states - sae.b_dec).astype(np.float32, copy=False)
    pre: NDArray[np.float32] = centred @ sae.encoder_rows.T
    pre += sae.b_enc
    return pre
