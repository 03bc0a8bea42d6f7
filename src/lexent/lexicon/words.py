"""Words of a text, and the word that each token of an encoder stands in."""

from __future__ import annotations

import re

import numpy as np

from lexent.types import Tokens

WORD = re.compile(r"\d+(?:\.\d+)+|[^\W_]+(?:['’-][^\W_]+)*")
"""Words with their hyphens; of names with dots and underscores, such as os.path, each part is a word."""


def words_of(text: str, tokens: Tokens) -> list[str]:
    """The whole word that each token stands in, in lower case; punctuation and special tokens stand for themselves."""
    words = list(tokens.strings)  # special tokens, and those of a prompt, which have no place in the text
    spans = [match.span() for match in WORD.finditer(text)]
    starts, stops = np.array([(-1, -1), *spans], np.int64).T
    first, last = tokens.spans.T
    place = np.searchsorted(starts, first, side="right") - 1
    stands = ~tokens.special & (first != last)
    in_word = stands & (first < stops[place])
    for token, at in zip(np.flatnonzero(in_word).tolist(), (place[in_word] - 1).tolist(), strict=True):
        words[token] = text[slice(*spans[at])].lower()
    for token in np.flatnonzero(stands & ~in_word).tolist():
        # Not the token: tokenizers mark spaces, write bytes in letters of their own, or know no such sign.
        words[token] = text[slice(*tokens.spans[token].tolist())].strip().lower() or "space"
    return words
