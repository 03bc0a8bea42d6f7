"""How much each bucket of a lexicon should count for a query, from what the query is about."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.errors import ArtifactError
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.types import SparseVectors

FILE = "bucket_weights.safetensors"
MAX_WEIGHT_RATIO = 20.0
"""A bucket counts for at most so many times another, whatever the query."""


@dataclass(frozen=True, slots=True)
class BucketWeights:
    """weights = exp(bias + features @ rows), the largest of a query 1."""

    rows: NDArray[np.float32]  # [n_features, buckets]
    bias: NDArray[np.float32]  # [buckets]: what a query without features gets
    facts: dict[str, Any] = field(default_factory=dict)
    """How it was learned, and what was measured."""

    def of(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32[n, buckets]: the weights of queries."""
        logs = self.bias + features @ self.rows
        logs -= logs.max(axis=1, keepdims=True)
        found: NDArray[np.float32] = np.exp(np.maximum(logs, -np.log(MAX_WEIGHT_RATIO))).astype(np.float32)
        return found

    def save(self, folder: Path) -> None:
        """Write the weights into a lexicon's folder."""
        from safetensors.numpy import save

        data = save({"rows": self.rows, "bias": self.bias}, {"facts": json.dumps(self.facts)})
        (folder / FILE).write_bytes(data)

    @staticmethod
    def load(folder: Path, *, width: int, buckets: int) -> BucketWeights:
        """Read what `save` wrote; refused where it does not fit the lexicon."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(folder / FILE, "np") as file:
                rows, bias = file.get_tensor("rows"), file.get_tensor("bias")
                facts = json.loads((file.metadata() or {}).get("facts", "{}"))
        except (SafetensorError, OSError, ValueError) as error:
            raise ArtifactError(f"{folder / FILE} is damaged: {error}") from error
        if rows.shape != (buckets * (width + 1), buckets) or bias.shape != (buckets,):
            raise ArtifactError(f"{folder / FILE} has weights {rows.shape} for {buckets} buckets of width {width}")
        return BucketWeights(rows, bias, facts)


def features(vectors: SparseVectors, sae: SparseAutoencoder) -> NDArray[np.float32]:
    """float32[n, buckets * (width + 1)]: of each bucket where its active latents point to, and how many there are.

    vectors: queries, pooled and not yet transformed. The direction is the sum of the latents' own, by their values.
    """
    size, width = sae.config.d_sae // sae.config.buckets, sae.config.width
    sparse = vectors.to_scipy()
    parts: list[NDArray[np.float32]] = []
    for place in range(sae.config.buckets):
        own = sparse[:, place * size : (place + 1) * size]
        pointed = np.asarray(own @ sae.encoder_rows[place * size : (place + 1) * size], np.float32)
        pointed /= np.maximum(np.linalg.norm(pointed, axis=1, keepdims=True), 1e-12)
        counts = np.log1p(np.diff(own.indptr)).astype(np.float32)[:, None] / 10
        parts += [pointed.reshape(len(vectors), width), counts]
    return np.concatenate(parts, axis=1)
