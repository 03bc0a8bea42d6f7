"""What a sparse autoencoder is, beside its weights, and how cfg.json says it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.errors import InputError

ARCHITECTURES = ("topk", "jumprelu", "winners")


@dataclass(frozen=True, slots=True)
class SAEConfig:
    """What a sparse autoencoder is, beside its weights."""

    d_in: int
    """Width of the states."""
    d_sae: int
    """Number of latents."""
    k: int
    """Latents a state was trained with; more or fewer may be used."""
    activation_scale: float = 1.0
    """Activations times this are what is indexed: it brings them to one scale, so that k1 transfers."""
    unit_states: bool = False
    """States are divided by their length before coding."""
    mean_length: float = 0.0
    """Above 0, activations of unit states are multiplied by the norm of the state over this, the mean norm."""
    tied: bool = False
    """The decoder row of a latent is its encoder row at unit length, and is not stored."""
    bits: int = 32
    """Precision of the stored matrices: 32, or 8 with one scale a latent."""
    architecture: str = "topk"
    """topk: the k strongest latents of a state. jumprelu: all latents above the threshold, k on average. winners: the k
    strongest of each bucket; nothing is rebuilt from them."""
    threshold: float = 0.0
    """jumprelu: the pre-activation above which a latent is active, at the k of the training."""
    ladder: tuple[tuple[int, float], ...] = ()
    """jumprelu: the same for other k, ascending; between two rungs it is interpolated."""
    buckets: int = 1
    """winners: equal parts of the latents, each of which reads its own part of a state."""
    groups: int = 0
    """winners: runs of latents in a bucket that read the same few inputs; 0 where all inputs are read."""

    @property
    def width(self) -> int:
        """Inputs that a bucket has."""
        return self.d_in // self.buckets

    @property
    def n_groups(self) -> int:
        """Of all buckets together."""
        return self.buckets * self.groups

    def threshold_for(self, k: int) -> float:
        """The pre-activation above which latents are active, so that k of them are on average."""
        rungs = dict(self.ladder) | {self.k: self.threshold}
        if k in rungs:
            return rungs[k]
        ks = sorted(rungs)
        if not ks[0] <= k <= ks[-1]:
            raise InputError(f"k is {k}; this lexicon has thresholds for {ks[0]} to {ks[-1]} concepts a state")
        return float(np.interp(np.log(k), np.log(ks), [rungs[rung] for rung in ks]))


def groups_of(config: SAEConfig) -> NDArray[np.int64]:
    """int64[d_sae]: the group of each latent. Groups are runs, all but the last of a bucket of one length."""
    size = config.d_sae // config.buckets
    within = np.arange(size) // -(-size // config.groups)
    return np.concatenate([within + place * config.groups for place in range(config.buckets)])


_OWN_SETTINGS = {"jumprelu": ("threshold", "ladder"), "winners": ("buckets", "groups")}
"""Settings that one architecture alone has."""


_RANGES = {"d_in": (1, 2**20), "d_sae": (1, 2**24), "k": (1, 2**24), "buckets": (1, 2**16), "groups": (0, 2**24)}
"""Sizes that a file may give: more would fill the memory before anything is found wrong."""


def to_json(config: SAEConfig) -> dict[str, Any]:
    """What cfg.json holds: thresholds in jumprelu form alone, buckets and groups for winners alone."""
    others = {name for form, names in _OWN_SETTINGS.items() if form != config.architecture for name in names}
    return {name: value for name, value in asdict(config).items() if name not in others}


def from_json(values: dict[str, Any]) -> SAEConfig:
    """What cfg.json says. The numbers that decide which latents are active must be there."""
    known = {name: values[name] for name in SAEConfig.__dataclass_fields__ if name in values}
    for name, (least, most) in _RANGES.items():
        if name in known and not (type(known[name]) is int and least <= known[name] <= most):
            raise ValueError(f"{name} is {known[name]!r}; allowed: {least} to {most}")
    if known.get("architecture") != "jumprelu":
        return SAEConfig(**{name: known[name] for name in known if name not in _OWN_SETTINGS["jumprelu"]})
    for name in _OWN_SETTINGS["jumprelu"]:
        if name not in known:
            raise ValueError(f"a jumprelu autoencoder needs its {name}")
    known["threshold"] = float(known["threshold"])
    known["ladder"] = tuple((int(k), float(threshold)) for k, threshold in known["ladder"])
    if not np.isfinite([known["threshold"], *(threshold for _, threshold in known["ladder"])]).all():
        raise ValueError("a threshold is not a number")
    return SAEConfig(**known)
