"""How an encoder makes one vector of a text's token states: found by looking, since encoders do not say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lexent.encoders import Encoder
from lexent.encoders.encoder import encode
from lexent.errors import InputError
from lexent.types import Kind

Pooling = Literal["mean", "first", "last"]

SAME_VECTOR_COSINE = 0.999
"""Cosine above which two vectors are the same but for precision."""
PROBE_TEXTS = 8
"""Texts that are encoded to see how."""


def pooling_of(encoder: Encoder, texts: Sequence[str], *, kind: Kind) -> Pooling | None:
    """How the encoder pools, tried on the first of these texts; None where it is none of the ways that are known.

    A model with a projection, one that leaves its prompt out of the mean, and one without token states give None.
    """
    tried = list(texts[:PROBE_TEXTS])
    try:
        tokens = encode(encoder, tried, kind=kind, level="tokens")
        whole = encode(encoder, tried, kind=kind, level="pooled").numpy()
    except InputError:  # states of one of the two levels only
        return None
    if not tried or tokens.values.shape[1] != whole.shape[1]:
        return None
    ways: tuple[Pooling, ...] = ("mean", "first", "last")
    for way in ways:
        made = np.stack([weights(len(rows), way) @ rows for rows in map(tokens.of, range(len(tried)))])
        if bool((cosines(made, whole) > SAME_VECTOR_COSINE).all()):
            return way
    return None


def weights(n_tokens: int, way: Pooling) -> NDArray[np.float32]:
    """float32[n_tokens]: what each state counts in the pooled one, before it is brought to length 1."""
    if way == "mean":
        return np.full(n_tokens, 1 / max(n_tokens, 1), np.float32)
    found = np.zeros(n_tokens, np.float32)
    if n_tokens:
        found[0 if way == "first" else -1] = 1
    return found


def cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    """float64[n]: the cosine of each pair of rows; 0 where one of them is nothing."""
    products: NDArray[np.float64] = np.einsum("nd,nd->n", left, right, dtype=np.float64)
    lengths = np.linalg.norm(left, axis=1).astype(np.float64) * np.linalg.norm(right, axis=1)
    return products / np.where(lengths > 0, lengths, 1)
