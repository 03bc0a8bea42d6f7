"""Is a line supported by the document? Its name has a word, or one close to it, that raised it in this very hit."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lexent.function_words import FUNCTION_WORDS
from lexent.lexicon.concepts import SEPARATOR
from lexent.lexicon.names import same_word
from lexent.nan_safe import ratio
from lexent.studies.naming.grades import Likeness
from lexent.studies.readability.shown_lines import ShownHit, ShownLine, parts

FORM_SHARE = 0.5
"""A line of form is supported where at least this share of what raised it is of that form."""
CLOSE_QUANTILE = 0.99
"""Words are close by a judge where few random pairs of words of the collection are closer: one in a hundred."""
SAMPLED_WORDS = 2_000
"""Words of a collection among which those pairs are."""
SAMPLED_PAIRS = 50_000
LEAST_TEXTS = 2
"""Texts that must have a word of those pairs: what stands in one alone is often no word."""


@dataclass(frozen=True, slots=True)
class Closeness:
    """A judge, and the cosine from which two words are close by it."""

    judge: Likeness
    threshold: float

    @staticmethod
    def of(judge: Likeness, texts: Iterable[str], *, seed: int = 0) -> Closeness:
        """The threshold comes from random pairs of words of these texts that are not forms of one word."""
        counts = Counter(word for text in texts for word in set(filter(says_something, parts(text))))
        known = sorted(word for word, count in counts.items() if count >= LEAST_TEXTS) or sorted(counts)
        draw = np.random.default_rng([seed, 6])
        words = [known[place] for place in np.sort(draw.permutation(len(known))[:SAMPLED_WORDS]).tolist()]
        if len(words) < 2:
            return Closeness(judge, 1.0)
        cosines = judge.alike(words, words)
        left, right = draw.integers(len(words), size=(2, SAMPLED_PAIRS))
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        different = np.array([not same_word(words[one], words[other]) for one, other in pairs], np.bool_)
        found = cosines[left, right][different]
        return Closeness(judge, float(np.quantile(found, CLOSE_QUANTILE)) if len(found) else 1.0)

    def close(self, left: Sequence[str], right: Sequence[str]) -> bool:
        """Whether any word of one list is close to any of the other. Function words are close to none."""
        ours, theirs = ([word for word in side if says_something(word)] for side in (left, right))
        return bool(ours and theirs and (self.judge.alike(ours, theirs) >= self.threshold).any())


def supported(line: ShownLine, closeness: Closeness | None = None) -> bool:
    """Whether its name has a form of a word that raised it; with a judge, also one close to such a word.

    A line of form: whether it was raised by words of that form. No judge is asked about those.
    """
    if line.of_form:
        return line.form_share >= FORM_SHARE
    raised = [part for word in line.raised_by for part in parts(word)]
    if any(same_word(own, word) for own in line.words for word in raised):
        return True
    signs = {sign_name(word) for word in line.raised_by if not parts(word)}
    if signs.intersection(line.name.lower().split(SEPARATOR)):
        return True
    return closeness is not None and closeness.close(line.words, raised)


def supported_share(hit: ShownHit, closeness: Closeness | None = None) -> float:
    """The share of what the first lines of a hit hold that is in supported lines."""
    held = [line.value for line in hit.shown if supported(line, closeness)]
    return ratio(sum(held), sum(line.value for line in hit.shown))


def misnamed(queries: Sequence[Sequence[ShownHit]], *, seed: int = 0) -> list[list[ShownHit]]:
    """The same hits, whose lines have names of lines of another query's hits: what chance supports.

    Lines of form keep theirs.
    """
    draw = np.random.default_rng([seed, 7])
    names = [[line.name for hit in hits for line in hit.shown if not line.of_form] for hits in queries]

    def renamed(line: ShownLine, own: int) -> ShownLine:
        others = [place for place, found in enumerate(names) if place != own and found]
        if line.of_form or not others:
            return line
        return replace(line, name=str(draw.choice(names[int(draw.choice(others))])))

    return [
        [replace(hit, lines=tuple(renamed(line, place) for line in hit.shown)) for hit in hits]
        for place, hits in enumerate(queries)
    ]


def says_something(word: str) -> bool:
    """Whether it is a word of more than one letter, and no function word."""
    return len(word) > 1 and word.isalpha() and word not in FUNCTION_WORDS


def sign_name(word: str) -> str:
    """What a sign is called, as lexicons call it: "full stop"."""
    return " ".join(unicodedata.name(sign, "").lower() for sign in word)
