"""Coding of states that are NumPy arrays by the full product in float32, without torch.

For autoencoders of few latents, and for those in jumprelu form, which read one state a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.sae.autoencoder import SparseAutoencoder

    Coded = tuple[NDArray[np.int32], NDArray[np.float32]]

ROWS_PER_STEP = 1024
"""States whose pre-activations are held at a time: 128 MB for 32,768 latents."""


def strongest_in_array(sae: SparseAutoencoder, states: NDArray[np.float32], k: int) -> Coded:
    """ids int32[n, k] and activations float32[n, k], strongest first; of equal ones the lower number comes first."""
    ids, values = np.empty((len(states), k), np.int32), np.empty((len(states), k), np.float32)
    for part, pre in _pre_activations(sae, states):
        ids[part] = np.argsort(-pre, axis=1, kind="stable")[:, :k]
        values[part] = np.maximum(np.take_along_axis(pre, ids[part].astype(np.int64), axis=1), 0)
    return ids, values


def above_in_array(sae: SparseAutoencoder, states: NDArray[np.float32], threshold: float) -> Coded:
    """ids int32[n, most] and activations float32[n, most] of all latents above the threshold, strongest first.

    most: how many the richest state has, at least 1. Places without an active latent hold 0.
    """
    parts: list[list[NDArray[np.int64]]] = []
    found: list[list[NDArray[np.float32]]] = []
    for _, pre in _pre_activations(sae, states):
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


def _pre_activations(
    sae: SparseAutoencoder, states: NDArray[np.float32]
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """float32[n, d_sae]: W_enc (x - b_dec) + b_enc of some states at a time."""
    for start in range(0, len(states), ROWS_PER_STEP):
        part = slice(start, start + ROWS_PER_STEP)
        centred = (states[part] - sae.b_dec).astype(np.float32, copy=False)
        pre: NDArray[np.float32] = centred @ sae.encoder_rows.T
        pre += sae.b_enc
        yield part, pre
