"""The words of a document that raised the concepts of a line, in one hit: attribution, not statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.lexicon.forms import FIRST_WORD, FUNCTION, PUNCTUATION, WHOLE_TEXT, token_form
from lexent.search.coded_text import WHOLE_TEXT as WHOLE_TEXT_WORD
from lexent.search.coded_text import CodedText

RAISING_SHARE = 0.05
"""A word raised a line where it gave at least this share of what its concepts were raised by."""


@dataclass(frozen=True, slots=True)
class RaisingWords:
    """The words of a document, and how much each raised each of some concepts."""

    words: Sequence[str]
    """In lower case, punctuation and the whole text among them."""
    shares: Mapping[int, NDArray[np.float64]]
    """float64[n_words] for each concept: they sum to 1, or are 0 where no word raised it."""
    first: str
    """The first word of the document."""

    @staticmethod
    def of(text: CodedText, concepts: Sequence[int]) -> RaisingWords:
        """Of a document that was coded token by token."""
        words, found = text.shares_by_word(np.array(concepts, np.int32))
        first = next((word for word, _, stop in text.places if stop), "").lower()
        return RaisingWords(words, {concept: found[:, place] for place, concept in enumerate(concepts)}, first)

    def of_line(self, values: Mapping[int, float]) -> dict[str, float]:
        """Words and their shares of what raised some concepts together, strongest first. values: by concept."""
        total = np.zeros(len(self.words))
        for concept, value in values.items():
            total += abs(value) * self.shares[concept]
        order = np.argsort(-total, kind="stable").tolist()
        whole = float(total.sum())
        return {self.words[place]: float(total[place]) / whole for place in order if total[place] > 0}

    def share_of_form(self, values: Mapping[int, float], forms: Mapping[int, str]) -> float:
        """The share of what raised some concepts that is of the form which each of them marks."""
        whole = sum(abs(value) for concept, value in values.items() if self.shares[concept].any())
        own = 0.0
        for concept, value in values.items():
            fits = np.array([is_of_form(word, forms[concept], first=self.first) for word in self.words], np.bool_)
            own += abs(value) * float(self.shares[concept][fits].sum())
        return own / whole if whole else 0.0


def is_of_form(word: str, form: str, *, first: str) -> bool:
    """Whether a word of a text is of the form that a concept marks. first: the first word of the text."""
    if word == WHOLE_TEXT_WORD:
        return form == WHOLE_TEXT
    if form in (WHOLE_TEXT, PUNCTUATION, FUNCTION):
        return token_form(word) == form
    if form == FIRST_WORD:
        return word == first
    if form.startswith("words ending in -"):
        return word.endswith(form.removeprefix("words ending in -"))
    if form.startswith("words beginning with "):
        return word.startswith(form.removeprefix("words beginning with ").removesuffix("-"))
    return form.startswith("words with -") and form.removeprefix("words with -").removesuffix("-") in word
