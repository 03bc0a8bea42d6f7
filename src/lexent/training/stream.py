"""Texts to shuffled batches of states, block by block, so that no full set of activations is ever held."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lexent.encoders.encoder import finite_batches
from lexent.types import Level

if TYPE_CHECKING:
    import torch

    from lexent.encoders import Encoder


BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+")


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

    @property
    def blocks(self) -> int:
        """How many blocks all passes have."""
        return self.passes * -(-len(self.texts) // self.block_texts)

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
        order = np.random.default_rng([self.seed, number // per_pass]).permutation(len(self.texts))
        start = number % per_pass * self.block_texts
        texts = [self.texts[place] for place in order[start : start + self.block_texts]]
        rows = self.states(texts)
        generator = torch.Generator().manual_seed(int(np.random.default_rng([self.seed, 1, number]).integers(2**31)))
        return rows[torch.randperm(len(rows), generator=generator).to(rows.device)]

    def states(self, texts: Sequence[str]) -> torch.Tensor:
        """float[n_rows, d_in]: the states of some texts, in the order in which they were encoded."""
        import torch

        batches = finite_batches(self.encoder, texts, kind="document", level=self.level)
        return torch.cat([states.values for _, states in batches])

    def from_block(self, first: int) -> Iterator[tuple[int, torch.Tensor]]:
        """The blocks from a number on; the next one is encoded while the caller works on this one."""
        with ThreadPoolExecutor(1) as pool:
            ahead = [pool.submit(self.block, first)] if first < self.blocks else []
            for number in range(first, self.blocks):
                rows = ahead.pop().result()
                ahead += [pool.submit(self.block, number + 1)] if number + 1 < self.blocks else []
                yield number, rows


def text_digest(texts: Sequence[str]) -> str:
    """Changes when any text does."""
    found = hashlib.sha256()
    for text in texts:
        encoded = text.encode(errors="surrogatepass")
        found.update(len(encoded).to_bytes(8, "little") + encoded)
    return found.hexdigest()[:16]
