"""The words of an index at query time: their numbers among its concepts, their names, and where a text has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from lexent.types import SparseVectors
from lexent.vocabulary import Occurrence, Vocabulary, splitter_of, word_counts

MAX_CACHED_TERMS = 65_536
"""Words whose numbers are kept."""


class QueryWords:
    """The words of an index, which stand behind its concepts: the id of a word is `first` plus its number."""

    def __init__(self, vocabulary: Vocabulary, *, language: str, first: int) -> None:
        self.vocabulary = vocabulary
        self.first = first
        self._splitter = splitter_of(language)
        self._number = lru_cache(MAX_CACHED_TERMS)(vocabulary.number)

    @property
    def size(self) -> int:
        """Number of concepts and words."""
        return self.first + len(self.vocabulary)

    def label(self, term: int) -> str:
        """How the documents write the word of an id."""
        return self.vocabulary.label(term - self.first)

    def labels(self, ids: Sequence[int]) -> dict[int, str]:
        """The names of those of some ids that are words."""
        return {term: self.label(term) for term in ids if term >= self.first}

    def named(self, name: str) -> list[int]:
        """The word that a name is; none where it has several words, or no document has it."""
        term = self._splitter.only_term(name.strip())
        number = -1 if term is None else self._number(term)
        return [] if number < 0 else [self.first + number]

    def counts(self, texts: Sequence[str]) -> SparseVectors:
        """How often each text has each word of the index, by ids. Words that the index lacks are left out."""
        rows = []
        for text in texts:
            found = Counter(self._number(term) for term, _ in self._splitter.terms(text))
            rows.append({number: count for number, count in found.items() if number >= 0})
        return word_counts(rows, size=len(self.vocabulary)).above(self.first)

    def beside(self, concepts: SparseVectors, texts: Sequence[str], *, power: float) -> SparseVectors:
        """Queries with their words behind their concepts. power: the exponent of how often a query has a word."""
        words = self.counts(texts)
        own, more = np.diff(concepts.offsets), np.diff(words.offsets)
        ids = np.empty(len(concepts.ids) + len(words.ids), np.int32)
        values = np.empty(len(ids), np.float32)
        at = np.arange(len(concepts.ids)) + np.repeat(words.offsets[:-1], own)
        behind = np.arange(len(words.ids)) + np.repeat(concepts.offsets[1:], more)
        ids[at], values[at] = concepts.ids, concepts.values
        ids[behind], values[behind] = words.ids, words.values ** np.float32(power)
        return SparseVectors(ids, values, concepts.offsets + words.offsets, self.size)

    def occurrences(self, text: str) -> Mapping[int, list[Occurrence]]:
        """Where a text has words of the index, by their ids."""
        found: dict[int, list[Occurrence]] = {}
        for one in self._splitter.occurrences(text):
            number = self._number(one.term)
            if number >= 0:
                found.setdefault(self.first + number, []).append(one)
        return found
