"""What each latent fires on: counts over a stream of texts, and a sample of contexts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from lexent.types import RowCodes, Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.encoders import Encoder
    from lexent.sae.autoencoder import SparseAutoencoder

WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
TEXTS_PER_CHUNK = 4096
"""Texts between two reductions of the counts."""


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

    texts: int
    frequency: NDArray[np.float32]  # [m], share of the texts in which a latent is active
    words: list[str]
    word_rate: NDArray[np.float64]  # [n_words], share of all tokens
    pieces: list[str]
    latent_words: Shares
    latent_pieces: Shares
    contexts: NDArray[np.int64]  # [m, n, 2], text and token position, -1 where there were fewer
    strengths: NDArray[np.float32]  # [m, n], activation there


class _Vocabulary:
    """Strings to running numbers."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def of(self, strings: Sequence[str]) -> list[int]:
        numbers = self.numbers
        return [numbers.setdefault(string, len(numbers)) for string in strings]


def collect(
    texts: Sequence[str],
    *,
    encoder: Encoder,
    sae: SparseAutoencoder,
    contexts: int = 24,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Statistics:
    """One pass over the texts. Contexts are drawn in proportion to activation, so weak ones are seen too."""
    m = sae.config.d_sae
    words, pieces = _Vocabulary(), _Vocabulary()
    word_sums, piece_sums = _Sums(), _Sums()
    sample = _Sample(m, contexts, seed)
    frequency = np.zeros(m, np.int64)
    word_tokens: list[NDArray[np.int64]] = []
    for start in range(0, len(texts), TEXTS_PER_CHUNK):
        part = texts[start : start + TEXTS_PER_CHUNK]
        tokens = encoder.tokenize(part, kind="document")
        strings = [found.strings for found in tokens]
        whole = [words_of(text, found) for text, found in zip(part, tokens, strict=True)]
        of_word = [np.array(words.of(found), np.int64) for found in whole]
        of_piece = [np.array(pieces.of(found), np.int64) for found in strings]
        word_tokens.append(np.bincount(np.concatenate([*of_word, np.empty(0, np.int64)])))
        for rows, states in encoder.batches(part, kind="document"):
            codes = sae.encode(states)
            text = np.repeat(rows, np.diff(codes.offsets))
            place = np.arange(len(codes.ids)) - np.repeat(codes.offsets[:-1], np.diff(codes.offsets))
            latent, value, row = _active(codes)
            sample.add(latent, value, torch.from_numpy((start + text) * 65_536 + place)[row])
            pairs = torch.unique(latent + m * torch.from_numpy(text)[row])
            frequency += np.bincount((pairs % m).numpy(), minlength=m)
            word_sums.add(latent, torch.from_numpy(np.concatenate([of_word[at] for at in rows]))[row], value)
            piece_sums.add(latent, torch.from_numpy(np.concatenate([of_piece[at] for at in rows]))[row], value)
            if progress is not None:
                progress(len(rows))
    rate = np.zeros(len(words.numbers))
    for counts in word_tokens:
        rate[: len(counts)] += counts
    found, strengths = sample.result()
    return Statistics(
        texts=len(texts),
        frequency=(frequency / max(1, len(texts))).astype(np.float32),
        words=list(words.numbers),
        word_rate=rate / max(1.0, rate.sum()),
        pieces=list(pieces.numbers),
        latent_words=word_sums.result(m, most=64),
        latent_pieces=piece_sums.result(m, most=8),
        contexts=np.where(found[:, :, None] < 0, -1, np.stack([found // 65_536, found % 65_536], axis=2)),
        strengths=strengths,
    )


def _active(codes: RowCodes) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The latent, the value and the row of each activation above 0."""
    active = np.flatnonzero(codes.values.ravel() > 0)
    latent = codes.ids.ravel()[active].astype(np.int64)
    value = codes.values.ravel()[active]
    row = active // codes.ids.shape[1]
    return torch.from_numpy(latent), torch.from_numpy(value), torch.from_numpy(row)


def words_of(text: str, tokens: Tokens) -> list[str]:
    """The whole word that each token stands in, in lower case; punctuation and special tokens stand for themselves."""
    spans = [match.span() for match in WORD.finditer(text)]
    starts = np.array([start for start, _ in spans], dtype=np.int64)
    place = np.searchsorted(starts, tokens.spans[:, 0], side="right") - 1
    words = []
    for token, at, (first, last), special in zip(tokens.strings, place, tokens.spans, tokens.special, strict=True):
        if special or first == last:  # the tokens of a prompt have no place in the text
            words.append(token)
        elif at >= 0 and first < spans[at][1]:
            words.append(text[spans[at][0] : spans[at][1]].lower())
        else:  # not the token: tokenizers mark spaces, write bytes in letters of their own, or know no such sign
            words.append(text[first:last].strip().lower() or "space")
    return words


class _Sums:
    """Summed activation by (latent, item); pairs are merged as they come, so memory follows the distinct ones."""

    def __init__(self) -> None:
        self.keys = torch.empty(0, dtype=torch.long)
        self.sums = torch.empty(0)
        self.waiting: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.size = 0

    def add(self, latent: torch.Tensor, item: torch.Tensor, value: torch.Tensor) -> None:
        keys, sums = _merge(latent << 32 | item, value)
        self.waiting.append((keys, sums))
        self.size += len(keys)
        if self.size > 20_000_000:
            self._reduce()

    def _reduce(self) -> None:
        keys = torch.cat([self.keys, *(keys for keys, _ in self.waiting)])
        sums = torch.cat([self.sums, *(sums for _, sums in self.waiting)])
        self.keys, self.sums = _merge(keys, sums)
        self.waiting, self.size = [], 0

    def result(self, m: int, *, most: int) -> Shares:
        self._reduce()
        latent, item, weights = (self.keys >> 32).numpy(), (self.keys & 0xFFFFFFFF).numpy(), self.sums.numpy()
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

    def result(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return self.where.numpy(), self.values.numpy()
