"""What each latent fires on: counts over a stream of texts, and a sample of contexts."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from lexent.lexicon.activations import active
from lexent.lexicon.words import words_of
from lexent.types import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.encoders import Encoder
    from lexent.sae.autoencoder import SparseAutoencoder

TEXTS_PER_CHUNK = 4096
"""Texts that are tokenized at a time."""
MAX_WAITING_PAIRS = 20_000_000
"""Pairs of a latent and a word that are held before they are merged."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Which items a latent fires on: the strongest few and their shares of all its activation, strongest first."""

    offsets: NDArray[np.int64]  # [m + 1]
    items: NDArray[np.int64]
    shares: NDArray[np.float32]

    def of(self, latent: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The texts of a latent and their shares."""
        part = slice(self.offsets[latent], self.offsets[latent + 1])
        return self.items[part], self.shares[part]


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a naming pass saw."""

    frequency: NDArray[np.float32]  # [m], share of the texts in which a latent is active
    words: list[str]
    word_rate: NDArray[np.float64]  # [n_words], share of all tokens
    pieces: list[str]
    latent_words: Shares
    latent_pieces: Shares
    contexts: NDArray[np.int64]  # [m, n, 2], text and token position, -1 where there were fewer
    quotes: NDArray[np.int64]  # [m, n', 2], such places in texts that may be quoted, strongest first


def collect(
    texts: Sequence[str],
    *,
    encoder: Encoder,
    sae: SparseAutoencoder,
    contexts: int = 24,
    seed: int = 0,
    quotable: Container[str] | None = None,
    progress: Progress = None,
) -> Statistics:
    """One pass over the texts. Contexts are drawn in proportion to activation, so weak ones are seen too.

    quotable: the texts that may be quoted; all where not given.
    """
    m = sae.config.d_sae
    words, pieces = dict[str, int](), dict[str, int]()
    word_sums, piece_sums = _Sums(), _Sums()
    sample = _Sample(m, contexts, seed)
    quotes = sample if quotable is None else _Sample(m, contexts, seed)
    frequency = np.zeros(m, np.int64)
    word_tokens: list[NDArray[np.int64]] = []
    for start in range(0, len(texts), TEXTS_PER_CHUNK):
        part = texts[start : start + TEXTS_PER_CHUNK]
        tokens = encoder.tokenize(part, kind="document")
        of_word = [_numbered(words_of(text, found), words) for text, found in zip(part, tokens, strict=True)]
        of_piece = [_numbered(found.strings, pieces) for found in tokens]
        quoted = torch.tensor([quotable is None or found in quotable for found in part])
        word_tokens.append(np.bincount(np.concatenate([*of_word, np.empty(0, np.int64)])))
        for rows, states in encoder.batches(part, kind="document"):
            row, text, place, latent, value = map(torch.from_numpy, active(sae.encode(states), rows))
            where = (start + text) * 65_536 + place
            sample.add(latent, value, where)
            if quotes is not sample:
                may = quoted[text]
                quotes.add(latent[may], value[may], where[may])
            frequency += np.bincount((torch.unique(latent + m * text) % m).numpy(), minlength=m)
            for sums, numbers in ((word_sums, of_word), (piece_sums, of_piece)):
                sums.add(latent, torch.from_numpy(np.concatenate([numbers[at] for at in rows]))[row], value)
            if progress is not None:
                progress(len(rows))
    rate = np.zeros(len(words))
    for counts in word_tokens:
        rate[: len(counts)] += counts
    return Statistics(
        frequency=(frequency / max(1, len(texts))).astype(np.float32),
        words=list(words),
        word_rate=rate / max(1.0, rate.sum()),
        pieces=list(pieces),
        latent_words=word_sums.result(m, most=64),
        latent_pieces=piece_sums.result(m, most=8),
        contexts=sample.places(),
        quotes=np.take_along_axis(
            quotes.places(), np.argsort(-quotes.values.numpy(), axis=1, kind="stable")[:, :, None], axis=1
        ),
    )


def _numbered(strings: Sequence[str], numbers: dict[str, int]) -> NDArray[np.int64]:
    """The number of each string; new ones get the next."""
    return np.array([numbers.setdefault(string, len(numbers)) for string in strings], np.int64)


class _Sums:
    """Summed activation by (latent, item); pairs are merged as they come, so memory follows the distinct ones."""

    def __init__(self) -> None:
        self.parts = [(torch.empty(0, dtype=torch.long), torch.empty(0))]
        self.waiting = 0

    def add(self, latent: torch.Tensor, item: torch.Tensor, value: torch.Tensor) -> None:
        self.parts.append(_merge(latent << 32 | item, value))
        self.waiting += len(self.parts[-1][0])
        if self.waiting > MAX_WAITING_PAIRS:
            self._reduce()

    def _reduce(self) -> tuple[torch.Tensor, torch.Tensor]:
        keys, sums = map(torch.cat, zip(*self.parts, strict=True))
        self.parts, self.waiting = [_merge(keys, sums)], 0
        return self.parts[0]

    def result(self, m: int, *, most: int) -> Shares:
        keys, sums = self._reduce()
        latent, item, weights = (keys >> 32).numpy(), (keys & 0xFFFFFFFF).numpy(), sums.numpy()
        order = np.lexsort((item, -weights, latent))
        latent, item, weights = latent[order], item[order], weights[order]
        counts = np.bincount(latent, minlength=m)
        place = np.arange(len(latent)) - np.repeat(np.cumsum(counts) - counts, counts)
        total = np.bincount(latent, weights=weights, minlength=m)
        kept = place < most
        offsets = np.concatenate([[0], np.cumsum(np.minimum(counts, most))]).astype(np.int64)
        return Shares(offsets, item[kept], (weights[kept] / total[latent[kept]]).astype(np.float32))


def _merge(keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    unique, places = torch.unique(keys.to(device), return_inverse=True)
    sums = torch.zeros(len(unique), device=device).index_add_(0, places, values.to(device))
    return unique.cpu(), sums.cpu()


class _Sample:
    """For each latent n places where it fired, drawn in proportion to activation: the largest of u ** (1 / value)."""

    def __init__(self, m: int, n: int, seed: int) -> None:
        self.keys = torch.full((m, n), -torch.inf)
        self.where = torch.full((m, n), -1, dtype=torch.long)
        self.values = torch.zeros(m, n)
        self.generator = torch.Generator().manual_seed(seed)

    def places(self) -> NDArray[np.int64]:
        """int64[m, n, 2]: text and position, -1 where there were fewer."""
        found = self.where.numpy()
        return np.where(found[:, :, None] < 0, -1, np.stack([found // 65_536, found % 65_536], axis=2))

    def add(self, latent: torch.Tensor, value: torch.Tensor, where: torch.Tensor) -> None:
        draw = torch.rand(len(value), generator=self.generator).clamp_min(1e-30)
        key = draw.log() / value
        better = key > self.keys[latent, -1]
        latent, key, value, where = latent[better], key[better], value[better], where[better]
        order = torch.argsort(key, descending=True)
        order = order[torch.argsort(latent[order], stable=True)]
        latent, key, value, where = latent[order], key[order], value[order], where[order]
        touched, counts = torch.unique_consecutive(latent, return_counts=True)
        if not len(touched):
            return
        n = self.keys.shape[1]
        place = torch.arange(len(latent)) - torch.repeat_interleave(torch.cumsum(counts, 0) - counts, counts)
        first = place < n
        row = torch.repeat_interleave(torch.arange(len(touched)), counts)[first]
        merged = []
        for kept, new, empty in ((self.keys, key, -torch.inf), (self.where, where, -1), (self.values, value, 0)):
            fresh = torch.full((len(touched), n), empty, dtype=kept.dtype)
            fresh[row, place[first]] = new[first]
            merged.append(torch.cat([kept[touched], fresh], dim=1))
        best = merged[0].topk(n, dim=1)
        self.keys[touched] = best.values
        self.where[touched] = merged[1].gather(1, best.indices)
        self.values[touched] = merged[2].gather(1, best.indices)
