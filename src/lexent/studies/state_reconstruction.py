"""States rebuilt from their codes: how far off they are, and the text vectors that they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import unit
from lexent.encoders import Encoder
from lexent.evaluation.pooling import Pooling, cosines, weights
from lexent.evaluation.progress import counter
from lexent.lexicon import Lexicon
from lexent.nan_safe import UNDEFINED, ratio
from lexent.types import Kind, RowCodes, States

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
EQUAL_STATES_SPREAD = 1e-10
"""States whose spread is at most this share of their squares are equal but for rounding in float32."""


@dataclass(slots=True)
class Tally:
    """Sums over states and what became of them. The states are as the lexicon reads them: of length 1 where it does."""

    size: int
    """How many latents there are."""
    n: int = 0
    error: float = 0.0
    square: float = 0.0
    cosine: float = 0.0
    total: Any = 0.0  # float64[d_in]
    active: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    """How many states have so many latents: its place is the number."""
    live: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.live = np.zeros(self.size, np.bool_)

    def add(self, states: NDArray[np.float32], made: NDArray[np.float32], codes: RowCodes) -> None:
        """Count the states of a batch."""
        self.n += len(states)
        self.error += float(np.square(states - made, dtype=np.float64).sum())
        self.square += float(np.square(states, dtype=np.float64).sum())
        self.total = self.total + states.sum(axis=0, dtype=np.float64)
        self.cosine += float(cosines(states, made).sum())
        on = codes.values > 0
        self.live[codes.ids[on]] = True
        counts = np.bincount(on.sum(axis=1), minlength=len(self.active))
        counts[: len(self.active)] += self.active
        self.active = counts

    @property
    def nmse(self) -> float:
        """The squared error over that of a guess that knows only the mean. Undefined for one state, or equal ones."""
        spread = self.square - float(np.square(self.total).sum()) / max(self.n, 1)
        return self.error / spread if self.n > 1 and spread > EQUAL_STATES_SPREAD * self.square else UNDEFINED

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        reached = np.cumsum(self.active)
        spread = {f"p{round(100 * at)}": int(np.searchsorted(reached, at * self.n)) for at in QUANTILES}
        mean = ratio(float(np.arange(len(self.active)) @ self.active), self.n)
        return {
            "states": self.n,
            "nmse": self.nmse,
            "cosine": ratio(self.cosine, self.n),
            "active": {"mean": mean, **spread},
            "live": int(self.live.sum()),
        }


def pooled_blocks(
    blocks: Iterable[NDArray[np.float32]], lexicon: Lexicon, *, k: int, tally: Tally | None = None
) -> Iterator[NDArray[np.float32]]:
    """Blocks of pooled states rebuilt, at length 1."""
    import torch

    for rows in blocks:
        codes = lexicon.codes(States(torch.from_numpy(rows), np.arange(len(rows) + 1)), k=k)
        yield unit(_decoded(lexicon, rows, codes, tally))


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the token states of some texts became, for one k."""

    tally: Tally
    rows: NDArray[np.float32]
    """float32[n_texts, d_in]: pooled as the encoder pools, at length 1; of nothing where that is not known."""


def token_rebuilt(
    texts: Sequence[str], *, kind: Kind, encoder: Encoder, lexicon: Lexicon, ks: Sequence[int], pooling: Pooling | None
) -> dict[int, Rebuilt]:
    """The token states of texts, encoded once, coded with each k and rebuilt."""
    made = {k: Rebuilt(Tally(lexicon.size), np.zeros((len(texts), encoder.dim), np.float32)) for k in ks}
    advance = counter("token states", kind=kind, total=len(texts))
    for positions, states in encoder.batches(texts, kind=kind, level="tokens"):
        rows = states.numpy()
        for k, codes in _codes(lexicon, states, ks).items():
            rebuilt = _decoded(lexicon, rows, codes, made[k].tally)
            if pooling is None:
                continue
            if lexicon.sae.config.unit_states:
                rebuilt = rebuilt * np.linalg.norm(rows, axis=1, keepdims=True).astype(np.float32)
            for place, position in enumerate(positions):
                part = rebuilt[states.offsets[place] : states.offsets[place + 1]]
                made[k].rows[position] = weights(len(part), pooling) @ part
        advance(len(positions))
    return {k: Rebuilt(found.tally, unit(found.rows)) for k, found in made.items()}


def coefficients(lexicon: Lexicon, codes: RowCodes, lengths: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32[n, k]: what the decoder multiplies the direction of each latent by. lengths: of the states."""
    config = lexicon.sae.config
    values = codes.values / np.float32(config.activation_scale)
    if config.unit_states and config.mean_length > 0:
        values = values / (np.maximum(lengths, 1e-12) / config.mean_length)[:, None]
    return values.astype(np.float32)


def _codes(lexicon: Lexicon, states: States, ks: Sequence[int]) -> dict[int, RowCodes]:
    """For each k; the strongest of a longer list are those of a shorter one where k is a number for each state."""
    if lexicon.sae.config.architecture != "topk":
        return {k: lexicon.codes(states, k=k) for k in ks}
    most = lexicon.codes(states, k=max(ks))
    return {k: RowCodes(most.ids[:, :k], np.ascontiguousarray(most.values[:, :k]), most.offsets) for k in ks}


def _decoded(lexicon: Lexicon, rows: NDArray[np.float32], codes: RowCodes, tally: Tally | None) -> NDArray[np.float32]:
    """What the codes stand for, as the lexicon reads states: of length 1 where it does. Counted in the tally."""
    made = lexicon.sae.decode(codes, lengths=np.linalg.norm(rows, axis=1).astype(np.float32))
    if tally is not None:
        tally.add(unit(rows) if lexicon.sae.config.unit_states else rows, made, codes)
    return made
