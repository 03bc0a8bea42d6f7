"""What a concept is active on, for whoever must name it or judge its name.

Texts are parted once: one part is for naming, the other is held out for scoring. The part is a hash of the text itself,
so that it stays the same whatever texts are given beside it. Examples are drawn over the whole range of activation: the
strongest texts alone promise more than a concept keeps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lexent.encoders import Encoder
from lexent.errors import InputError
from lexent.lexicon.activations import Activations
from lexent.lexicon.words import WORD
from lexent.types import Level, Tokens

QUANTILES = 10
CONTEXT_WORDS = 16
"""Words on each side of the word that fired, in an example of a token lexicon."""
MAX_EXAMPLE_WORDS = 150
"""Words of an example of a pooled lexicon: about as many as its encoder reads."""

Spread = Literal["quantiles", "top"]
"""Where examples are drawn: evenly over the range of activation, or from its top."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text, or the part of it around the word that fired; silent where the activation is 0."""

    place: int
    """Which of the texts it is from."""
    text: str
    activation: float = 0.0
    quantile: int = -1
    """0 for the strongest tenth of the concept's texts; -1 where it is silent."""
    start: int = 0
    """Where the word that fired begins in `text`; start = stop where the whole text did."""
    stop: int = 0

    @property
    def marked(self) -> str:
        """The text with the word that fired in [[brackets]]."""
        if self.start == self.stop:
            return self.text
        return f"{self.text[: self.start]}[[{self.text[self.start : self.stop]}]]{self.text[self.stop :]}"


@dataclass(frozen=True, slots=True)
class Side:
    """Active and silent examples of one part of the texts, active ones strongest first."""

    active: tuple[Example, ...]
    silent: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one concept."""

    concept: int
    active_texts: int
    """In how many of all the texts it is active."""
    naming: Side
    held_out: Side


def is_held_out(text: str, *, seed: int = 0) -> bool:
    """Which part a text belongs to; about half of them are held out."""
    return bool(hashlib.blake2b(f"{seed}:{text}".encode(), digest_size=1).digest()[0] & 1)


def eligible(
    activations: Activations, held_out: NDArray[np.bool_], *, least: int, limit: int | None = None, seed: int = 0
) -> list[int]:
    """Concepts with at least `least` active and silent texts in each part, drawn at random where a limit is given."""
    concept = np.repeat(np.arange(len(activations.counts)), activations.counts)
    held = np.bincount(concept, weights=held_out[activations.texts], minlength=len(activations.counts))
    named = activations.counts - held
    most = np.minimum(held_out.sum() - held, (~held_out).sum() - named)
    found = np.flatnonzero((held >= least) & (named >= least) & (most >= least))
    if limit is not None and len(found) > limit:
        found = np.sort(np.random.default_rng(seed).permutation(found)[:limit])
    return [int(concept) for concept in found]


def gather(
    activations: Activations,
    texts: Sequence[str],
    *,
    concepts: Sequence[int],
    encoder: Encoder,
    level: Level,
    active: int = 20,
    silent: int = 20,
    spread: Spread = "quantiles",
    seed: int = 0,
) -> list[Evidence]:
    """Examples of each concept in both parts, at most `active` and `silent` ones a part; the same ones each time."""
    if active < 1 or silent < 0:
        raise InputError(f"examples: {active} active and {silent} silent; allowed: 1 or more, and 0 or more")
    held_out = np.array([is_held_out(text, seed=seed) for text in texts], dtype=bool)
    drawn = []
    for concept in concepts:
        draw = np.random.default_rng([seed, concept])
        own = activations.of(concept)
        for part in (False, True):
            entries = own.start + np.flatnonzero(held_out[activations.texts[own]] == part)
            chosen = _across(entries, activations.peaks[entries], active, spread, draw)
            others = np.setdiff1d(np.flatnonzero(held_out == part), activations.texts[own], assume_unique=True)
            drawn.append((chosen, np.sort(draw.permutation(others)[:silent]).tolist()))
    wanted = {int(activations.texts[entry]) for chosen, _ in drawn for entry, _ in chosen}
    wanted.update(text for _, others in drawn for text in others)
    tokens: dict[int, Tokens] = {}
    if level == "tokens":
        found = encoder.tokenize([texts[place] for place in sorted(wanted)], kind="document")
        tokens = dict(zip(sorted(wanted), found, strict=True))

    def active_example(entry: int, quantile: int) -> Example:
        place, peak = int(activations.texts[entry]), float(activations.peaks[entry])
        text, start, stop = _cut(texts[place], tokens.get(place), int(activations.places[entry]))
        return Example(place, text, peak, quantile, start, stop)

    def silent_example(place: int) -> Example:  # the same one, whichever concept the text is silent for
        own = tokens.get(place)
        token = np.random.default_rng([seed, place]).integers(0, max(1, len(own))) if own is not None else 0
        return Example(place, _cut(texts[place], own, int(token))[0])

    sides = [
        Side(tuple(active_example(*one) for one in chosen), tuple(map(silent_example, others)))
        for chosen, others in drawn
    ]
    return [
        Evidence(concept, int(activations.counts[concept]), *sides[2 * place : 2 * place + 2])
        for place, concept in enumerate(concepts)
    ]


def _across(
    entries: NDArray[np.int64], peaks: NDArray[np.float32], n: int, spread: Spread, draw: np.random.Generator
) -> list[tuple[int, int]]:
    """Up to n entries with their quantiles, strongest first."""
    order = entries[np.lexsort((entries, -peaks))]
    quantile = np.arange(len(order)) * QUANTILES // max(1, len(order))
    if spread == "top" or len(order) <= n:
        kept = np.arange(min(n, len(order)))
    else:  # the j-th of n equal stretches gives one, so that every quantile is seen as evenly as n allows
        edges = -(-np.arange(n + 1) * len(order) // n)
        kept = draw.integers(edges[:-1], edges[1:])
    return [(int(order[place]), int(quantile[place])) for place in kept]


def _cut(text: str, tokens: Tokens | None, token: int) -> tuple[str, int, int]:
    """The part of a text around a token and where its word stands there; without a token the beginning, and 0, 0."""
    if tokens is None:
        return _beginning(text, MAX_EXAMPLE_WORDS), 0, 0
    start, stop = tokens.spans[token].tolist() if token < len(tokens) else (0, 0)
    if stop == start:  # a special token stands for the whole text
        return _beginning(text, 2 * CONTEXT_WORDS + 1), 0, 0
    return _around(text, start, stop)


def _around(text: str, start: int, stop: int) -> tuple[str, int, int]:
    """2 * CONTEXT_WORDS words around text[start:stop], and where the whole word stands in that."""
    matches = [match.span() for match in WORD.finditer(text)]
    at = next((place for place, (first, last) in enumerate(matches) if first <= start < last), None)
    if at is None:  # punctuation
        at = next((place for place, (first, _) in enumerate(matches) if first >= start), len(matches) - 1)
    else:
        start, stop = matches[at][0], max(stop, matches[at][1])
    # As long at the edges of a text as elsewhere: the length of an example must not tell where it is from.
    left = max(0, min(at - CONTEXT_WORDS, len(matches) - 2 * CONTEXT_WORDS - 1))
    first = matches[left][0] if matches else 0
    last = matches[min(len(matches) - 1, left + 2 * CONTEXT_WORDS)][1] if matches else len(text)
    first, last = min(first, start), max(last, stop)
    before, word, after = (" ".join(part.split()) for part in (text[first:start], text[start:stop], text[stop:last]))
    head = f"{before} " if before and (start == 0 or text[start - 1].isspace()) else before
    tail = f" {after}" if after and text[stop : stop + 1].isspace() else after
    return f"{head}{word}{tail}", len(head), len(head) + len(word)


def _beginning(text: str, words: int) -> str:
    return " ".join(text.split()[:words])
