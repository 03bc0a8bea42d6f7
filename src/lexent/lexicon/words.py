"""Words of a text, and the word that each token of an encoder stands in."""

from __future__ import annotations

import re

import numpy as np

from lexent.types import Tokens

WORD = re.compile(r"\d+(?:\.\d+)+|[^\W_]+(?:['’-][^\W_]+)*")
"""Words with their hyphens; of names with dots and underscores, such as os.path, each part is a word."""


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
