"""A deterministic encoder without weights, for fast tests: a word's state is drawn from its hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lexent.encoders.encoder import check
from lexent.types import Batches, Kind, Level, States, Tokens

_WORD = re.compile(r"\w+|[^\w\s]")


class TinyEncoder:
    """Words as tokens; a word's state is a fixed random vector, mixed a little with its neighbours'."""

    id = "tiny"
    fingerprint = "tiny-1"
    dim = 32
    max_tokens = 256

    def batches(self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True) -> Batches:
        """States of texts, a batch at a time; see `Encoder.batches`."""
        check(texts, kind=kind, level=level, specials=specials)
        for start in range(0, len(texts), 64):
            parts = [self._states(text) for text in texts[start : start + 64]]
            if level == "pooled":
                parts = [part.sum(axis=0, keepdims=True) / np.float32(max(1, len(part))) for part in parts]
            offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
            yield start + np.arange(len(parts)), States(np.concatenate(parts), offsets)

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """The tokens of texts with their places; see `Encoder.tokenize`."""
        check(texts, kind=kind, specials=specials)
        return [_split(text) for text in texts]

    @property
    def text_tokens(self) -> int:
        """Words of a document that it reads at most."""
        return self.max_tokens

    def token_starts(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Where each word of texts begins, to their ends."""
        return [np.array([match.start() for match in _WORD.finditer(text)], np.int64) for text in texts]

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many words texts have, to their ends."""
        return [len(starts) for starts in self.token_starts(texts)]

    def _states(self, text: str) -> NDArray[np.float32]:
        words = _split(text).strings
        if not words:
            return np.zeros((0, self.dim), np.float32)
        own = np.stack([_vector(word) for word in words])
        around = np.pad(own, ((1, 1), (0, 0)))
        return (own + 0.2 * (around[:-2] + around[2:])).astype(np.float32)


def _split(text: str) -> Tokens:
    found = list(islice(_WORD.finditer(text), TinyEncoder.max_tokens))
    spans = np.array([match.span() for match in found], dtype=np.int64).reshape(-1, 2)
    return Tokens([match.group().lower() for match in found], spans, np.zeros(len(found), dtype=bool))


@lru_cache(maxsize=100_000)
def _vector(word: str) -> NDArray[np.float32]:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(TinyEncoder.dim).astype(np.float32)
