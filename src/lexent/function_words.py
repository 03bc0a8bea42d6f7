"""English words that hold a sentence together and say little of what it is about."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lexent.types import Tokens

_WORDS = """
a about above after again all also am an and any are as at be because been before being below between both but by can
could did do does doing down during each few for from further had has have having he her here hers him his how i if in
into is it its itself just may me might more most must my no nor not of off on once only or other our out over own same
she should so some such than that the their them then there these they this those through to too under until up upon us
very was we were what when where which while who whom why will with within without would you your i.e e.g et al however
using used use based show shows shown two one first new well many much thus
"""
FUNCTION_WORDS = frozenset(_WORDS.split())


@lru_cache(65_536)
def is_punctuation(token: str) -> bool:
    """Whether a token has nothing but punctuation marks; other symbols, such as + and €, say something."""
    return bool(token) and all(unicodedata.category(letter)[0] == "P" for letter in token.removeprefix("##"))


def token_weights(tokens: Tokens, weight: float) -> NDArray[np.float32]:
    """float32[n_tokens]: `weight` for function words and punctuation, 1 for other tokens and for special ones."""
    light = [
        not special and (token.lower() in FUNCTION_WORDS or not any(letter.isalnum() for letter in token))
        for token, special in zip(tokens.strings, tokens.special, strict=True)
    ]
    return np.where(light, np.float32(weight), np.float32(1)).astype(np.float32)
