"""Concepts of form: latents of punctuation, function words, affixes, a place in the text or the text as a whole.

They match how a text is written and not what it is about, so that they are named for their form and shown last.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, inf, log

from lexent.function_words import FUNCTION_WORDS

WHOLE_TEXT, PUNCTUATION, FUNCTION = "whole text", "punctuation", "function words"
FIRST_WORD = "first word of a text"
LEAST_SHARE = 0.5
"""Share of a concept's activation from which a form names it."""
LEAST_AT_START = 0.8
"""Share of a concept's activation at the first word of a text from which it is one of position."""
MIN_TOPIC_GAIN = 0.05
"""Gain of its content words from which a concept of mostly function words may be about a topic."""
AFFIX_WORDS = 5
"""Different words with an affix from which the affix names a concept."""
AFFIX_CHARS = (3, 2)
"""Letters of an affix, longest first."""
AFFIX_SHARE = 0.7
"""Share of the words, by activation, that must have the affix."""
MOST_OF_ONE_WORD = 0.3
"""A word with more of the activation than this names the concept itself."""


@lru_cache(65_536)
def token_form(token: str) -> str:
    """The form of one token: of a special token, of punctuation or of a function word; "" for others."""
    if len(token) > 2 and token[0] in "[<" and token[-1] in "]>":
        return WHOLE_TEXT
    if not any(letter.isalnum() for letter in token):
        return PUNCTUATION
    return FUNCTION if token in FUNCTION_WORDS else ""


def form_of(words: Sequence[tuple[str, float, float]], *, at_start: float = 0.0) -> str:
    """The form that a concept marks; "" where it is about a topic.

    words: those that raise it, in lower case, with their shares of its activation and their gains: the share times the
    logarithm of how far above chance it is. at_start: the share at the first word of a text.

    Function words stand in every text, also in those about a topic. So they name a concept only where one of them
    raises most of it, or where they are other ones than in any text, more than its content words are.
    """
    total = sum(share for _, share, _ in words)
    if total <= 0:
        return ""
    of_form: dict[str, list[tuple[float, float]]] = {}
    for word, share, gain in words:
        of_form.setdefault(token_form(word), []).append((share, gain))
    content = of_form.pop("", [])
    content_share, content_gain = sum(share for share, _ in content), sum(max(gain, 0.0) for _, gain in content)
    highest = max((share for found in of_form.values() for share, _ in found), default=0.0)
    inner = inf if highest > LEAST_SHARE * total else sum(_inner_gain(found) for found in of_form.values())
    mostly_form = bool(of_form) and total - content_share > LEAST_SHARE * total
    if mostly_form and content_gain < max(MIN_TOPIC_GAIN, inner):
        return max(of_form, key=lambda form: sum(share for share, _ in of_form[form]))
    if max(share for _, share, _ in words) / total > MOST_OF_ONE_WORD:
        return ""
    return FIRST_WORD if at_start >= LEAST_AT_START else affix([(word, share) for word, share, _ in words])


def _inner_gain(words: Sequence[tuple[float, float]]) -> float:
    """How far the shares of some words are from chance among themselves."""
    shares = sum(share for share, _ in words)
    rates = sum(share * exp(-gain / share) for share, gain in words if share > 0)
    return sum(gain for _, gain in words) - shares * log(shares / rates) if shares > 0 and rates > 0 else 0.0


def affix(shares: Sequence[tuple[str, float]]) -> str:
    """What to call a concept of an affix that many different words have; "" where there is none."""
    words = [(word, share) for word, share in shares if word.isalpha() and token_form(word) == ""]
    if len(words) < AFFIX_WORDS:
        return ""
    total = sum(share for _, share in words)
    for length in AFFIX_CHARS:
        for at_end in (True, False):
            found: dict[str, float] = {}
            stems: dict[str, set[str]] = {}
            for word, share in words:
                if len(word) > length + 1:
                    part, stem = (word[-length:], word[:-length]) if at_end else (word[:length], word[length:])
                    found[part] = found.get(part, 0.0) + share
                    stems.setdefault(part, set()).add(stem[:3])
            for part, share in found.items():
                if len(stems[part]) >= AFFIX_WORDS and share >= AFFIX_SHARE * total:
                    return f"words ending in -{part}" if at_end else f"words beginning with {part}-"
    return ""
