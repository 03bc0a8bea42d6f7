"""Train an adapter on the queries of a train split."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lexent.adapters.adapter import Adapter, AdapterInfo
from lexent.adapters.config import AdapterConfig, TrainSettings
from lexent.adapters.examples import Examples
from lexent.adapters.modulation import Rows
from lexent.adapters.network import Network
from lexent.adapters.schedule import Progress, Schedule, follow


@dataclass(frozen=True, slots=True)
class Trained:
    """An adapter, and what was measured on the way."""

    adapter: Adapter
    schedule: Schedule[Network]


def train(
    examples: Examples,
    config: AdapterConfig,
    settings: TrainSettings,
    *,
    info: AdapterInfo,
    progress: Progress | None = None,
) -> Trained:
    """Learn from train queries. Where held-out ones do not gain for certain, the adapter is the identity: the base."""
    projector = first_projector(config, examples.documents)
    found = follow(lambda: Network(config, settings, projector), examples, settings, progress=progress)
    if found.kept_base:  # also where the start is narrower than the encoder: the base is the base
        config = AdapterConfig(config.dim, config.dim, feedback="none", hidden=1)
        network = Network(config, settings, np.eye(config.dim, dtype=np.float32))
    else:
        network = found.learner
    info = replace(info, kept_base=found.kept_base)
    return Trained(Adapter(config, network.tensors(examples.documents), info), found)


def first_projector(config: AdapterConfig, documents: Rows) -> Rows:
    """float32[width, dim]: the identity, or the directions along which the documents spread most."""
    if config.start == "identity":
        return np.eye(config.dim, dtype=np.float32)
    _, vectors = np.linalg.eigh(documents.T.astype(np.float64) @ documents)  # not centred: rows stay on the sphere
    return np.ascontiguousarray(vectors[:, ::-1][:, : config.width].T, np.float32)
