"""Texts to shuffled batches of states, block by block: drawn evenly or by weights, encoded each time or once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lexent import arguments
from lexent.bounded_cache import BoundedCache
from lexent.encoders.encoder import finite_batches
from lexent.types import Batches, Level

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from lexent.encoders import Encoder


BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+")
MAX_DOMAIN_SHARE = 0.2
"""No domain has more than this share of the states of a balanced pass."""
ROWS_PER_TENSOR = 4_000_000
"""States that are kept in one tensor, about."""
CHARS_PER_TOKEN = 4.0
"""About as many in English, or more; used to guess how much memory states take."""
KEPT_MEMORY_SHARE = 0.65
"""States are kept where they are expected to take at most this share of the GPU's free memory."""


@dataclass(frozen=True)
class StateStream:
    """Passes over texts in blocks: the texts of a pass are shuffled, a block of them is encoded, its rows are shuffled.

    A block depends on nothing but the seed and its number, so a run can go on from any block exactly as it would have.
    """

    texts: Sequence[str]
    encoder: Encoder
    level: Level = "tokens"
    passes: int = 3
    block_texts: int = 4096
    seed: int = 0
    weights: NDArray[np.float64] | None = None
    """float64[n_texts]: how often a pass has each text, on average; once each where not given."""
    keep: bool = False
    """Encode every text once and keep its states on the encoder's device for all passes."""

    @property
    def blocks(self) -> int:
        """How many blocks all passes have."""
        return self.passes * -(-self._texts_per_pass // self.block_texts)

    @property
    def _texts_per_pass(self) -> int:
        return len(self.texts) if self.weights is None else max(1, round(float(self.weights.sum())))

    @cached_property
    def width(self) -> int:
        """How wide the states are: models that project their pooled vectors have token states of another width."""
        _, states = next(iter(self.encoder.batches(self.texts[:1], kind="document", level=self.level)))
        return int(states.values.shape[1])

    @cached_property
    def digest(self) -> str:
        """Changes when any text does."""
        return text_digest(self.texts)

    def block(self, number: int) -> torch.Tensor:
        """float[n_rows, d_in]: the states of one block, shuffled."""
        import torch

        per_pass = self.blocks // self.passes
        start = number % per_pass * self.block_texts
        of_pass = number // per_pass
        order = self._orders.get_or_make(of_pass, lambda: self._order(of_pass))
        chosen = order[start : start + self.block_texts]
        rows = self._kept.of(chosen) if self.keep else self.states([self.texts[place] for place in chosen])
        generator = torch.Generator().manual_seed(int(np.random.default_rng([self.seed, 1, number]).integers(2**31)))
        return rows[torch.randperm(len(rows), generator=generator).to(rows.device)]

    @cached_property
    def _orders(self) -> BoundedCache[int, NDArray[np.int64]]:
        """The order of the pass that is read: it has all texts, and its blocks have a few each."""
        return BoundedCache(1)

    def _order(self, number: int) -> NDArray[np.int64]:
        """The texts of a pass, shuffled; by weights, some several times and some not at all."""
        draw = np.random.default_rng([self.seed, number])
        if self.weights is None:
            return draw.permutation(len(self.texts))
        # Systematic sampling: a text has its weight, rounded down or up.
        n = self._texts_per_pass
        ends = np.cumsum(self.weights) * (n / self.weights.sum())
        places = np.searchsorted(ends, draw.random() + np.arange(n), side="right")
        return draw.permutation(np.minimum(places, len(self.texts) - 1))

    @cached_property
    def _kept(self) -> KeptStates:
        batches = finite_batches(self.encoder, self.texts, kind="document", level=self.level)
        return KeptStates.of_batches(batches, len(self.texts))

    def states(self, texts: Sequence[str]) -> torch.Tensor:
        """float[n_rows, d_in]: the states of some texts, in the order in which they were encoded."""
        import torch

        batches = finite_batches(self.encoder, texts, kind="document", level=self.level)
        return torch.cat([states.tensor() for _, states in batches])

    def from_block(self, first: int) -> Iterator[tuple[int, torch.Tensor]]:
        """The blocks from a number on; the next one is encoded while the caller works on this one."""
        with ThreadPoolExecutor(1) as pool:
            ahead = [pool.submit(self.block, first)] if first < self.blocks else []
            for number in range(first, self.blocks):
                rows = ahead.pop().result()
                ahead += [pool.submit(self.block, number + 1)] if number + 1 < self.blocks else []
                yield number, rows


@dataclass(frozen=True, slots=True)
class KeptStates:
    """The states of all texts, in a few large tensors."""

    parts: list[torch.Tensor]
    places: NDArray[np.int64]
    """int64[n_texts, 3]: the tensor of each text, and its first and last row there."""

    @staticmethod
    def of_batches(batches: Batches, n: int) -> KeptStates:
        """From the batches of an encoder; n: the number of texts."""
        import torch

        parts: list[torch.Tensor] = []
        waiting: list[torch.Tensor] = []
        places = np.zeros((n, 3), np.int64)
        held = 0
        for rows, states in batches:
            offsets = states.offsets + held
            places[rows] = np.stack([np.full(len(rows), len(parts)), offsets[:-1], offsets[1:]], axis=1)
            waiting.append(states.tensor())
            held += len(waiting[-1])
            if held >= ROWS_PER_TENSOR:
                parts.append(torch.cat(waiting))
                waiting, held = [], 0
        return KeptStates([*parts, torch.cat(waiting)] if waiting else parts, places)

    def of(self, texts: NDArray[np.int64]) -> torch.Tensor:
        """float[n_rows, d_in]: the states of some texts, in their order."""
        import torch

        of, first, last = self.places[texts].T
        lengths = last - first
        ends = np.cumsum(lengths)
        rows = np.repeat(first - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0)
        of_rows = np.repeat(of, lengths)
        found = self.parts[0].new_empty((len(rows), self.parts[0].shape[1]))
        for number, part in enumerate(self.parts):
            own = torch.from_numpy(np.flatnonzero(of_rows == number)).to(part.device)
            found[own] = part[torch.from_numpy(rows[of_rows == number]).to(part.device)]
        return found


def check_balance(balance: float) -> None:
    """Refuse a power outside of 0 to 1."""
    if not 0 <= arguments.number("balance", balance) <= 1:
        raise arguments.refused("balance", balance, "from 0 (domains alike) to 1 (as they are)")


def balanced(texts: Sequence[str], domains: Sequence[int], *, power: float) -> NDArray[np.float64]:
    """float64[n_texts]: how often a pass has each text, so that a domain's share follows a power of its size.

    1 takes domains as they are, 0 alike. No domain gets more than MAX_DOMAIN_SHARE; five or fewer are drawn alike. A
    domain's size is in characters, and a pass has as many characters as the texts.
    """
    chars, of = np.array([len(text) for text in texts], np.float64), np.asarray(domains)
    sizes = np.bincount(of, weights=chars)
    shares = np.where(sizes > 0, sizes**power, 0.0)
    shares /= shares.sum()
    limit = max(MAX_DOMAIN_SHARE, 1 / np.count_nonzero(shares))
    while (above := shares > limit + 1e-12).any():  # what is cut goes to those below, which may then be above
        shares[above] = limit
        below = shares < limit - 1e-12
        if not below.any():
            break
        shares[below] *= (1 - shares[~below].sum()) / shares[below].sum()
    weights: NDArray[np.float64] = (shares / np.maximum(sizes, 1))[of]
    weights *= chars.sum() / max(float((weights * chars).sum()), 1e-12)
    return weights


def fits_on_gpu(texts: Sequence[str], encoder: Encoder, *, level: Level) -> bool:
    """Whether the encoder is on a GPU whose free memory can hold the states of all texts."""
    import torch

    from lexent.encoders.sentence import half_precision

    device = getattr(encoder, "device", None)
    if not isinstance(device, torch.device) or device.type != "cuda":
        return False
    rows = sum(len(text) for text in texts) / CHARS_PER_TOKEN if level == "tokens" else len(texts)
    half = half_precision(device) is not None  # how the encoder works there, and its states are kept
    return rows * encoder.dim * (2 if half else 4) < KEPT_MEMORY_SHARE * torch.cuda.mem_get_info(device)[0]


def text_digest(texts: Sequence[str]) -> str:
    """Changes when any text does."""
    found = hashlib.sha256()
    for text in texts:
        encoded = text.encode(errors="surrogatepass")
        found.update(len(encoded).to_bytes(8, "little") + encoded)
    return found.hexdigest()[:16]
