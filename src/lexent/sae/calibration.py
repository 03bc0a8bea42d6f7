"""What a trained autoencoder is set to on texts it has not seen: its thresholds and the scale of its activations."""

from __future__ import annotations

import numpy as np
import torch

from lexent.errors import InputError
from lexent.sae.autoencoder import SparseAutoencoder, pre_activations
from lexent.types import States

MAX_CALIBRATION_STATES = 16_384
"""Most states that thresholds are set on."""


def calibrated(sae: SparseAutoencoder, states: torch.Tensor) -> SparseAutoencoder:
    """The autoencoder in jumprelu form, set on states [n, d_in] that it was not trained on.

    The threshold lets k latents of a state through on average, and so for other k, from 1 to twice the trained one.
    The mean of all activations at the trained k becomes 1, whatever the encoder's scale, so that k1 and k2 mean the
    same for every lexicon.
    """
    if not len(states):
        raise InputError("there are no held-out states to set the threshold on; give more text")
    rows = states[
        torch.linspace(0, len(states) - 1, min(len(states), MAX_CALIBRATION_STATES)).long().to(states.device)
    ].float()
    if sae.config.unit_states:
        rows = torch.nn.functional.normalize(rows, dim=1)
    k = min(sae.config.k, sae.config.d_sae)
    ks = rungs(k, most=sae.config.d_sae)
    thresholds = _thresholds(sae, rows, [*ks, k])
    ladder = tuple((rung, thresholds[rung]) for rung in ks if rung != k)
    bare = sae.configured(architecture="jumprelu", threshold=thresholds[k], ladder=ladder, activation_scale=1.0)
    codes = bare.encode(States(rows, np.arange(len(rows) + 1)))
    active = codes.values > 0
    mean = float(codes.values[active].mean()) if active.any() else 1.0
    return bare.configured(activation_scale=1.0 / mean)


def rungs(k: int, *, most: int) -> list[int]:
    """Numbers of latents for which a threshold is kept: 1, 2, 3, 4, 6, 8, 12, ... to twice k."""
    top = min(2 * k, most)
    steps = {power * part // 2 for power in (2**place for place in range(top.bit_length() + 1)) for part in (2, 3)}
    return sorted({step for step in steps if step < top} | {top})


def _thresholds(sae: SparseAutoencoder, rows: torch.Tensor, ks: list[int]) -> dict[int, float]:
    """Between the n * k-th largest pre-activation of the n rows and the next: exactly n * k are above it."""
    n, most = len(rows), max(ks)
    best = torch.zeros(1, device=rows.device)
    for _, pre in pre_activations(sae, rows, 1024):
        best = torch.cat([best, pre.clamp_min(0).flatten()])
        best = best.topk(min(n * most + 1, len(best))).values  # from high to low
    pair = {k: best[[min(n * k - 1, len(best) - 1), min(n * k, len(best) - 1)]] for k in ks}
    return {k: float(found.double().mean()) for k, found in pair.items()}
