"""The words that a segment was the first to bring, on disk: numbered in the order in which they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import array_files
from lexent.errors import ArtifactError
from lexent.types import SparseVectors
from lexent.vocabulary.word_counts import word_counts

STEM = "words"
"""Files of a table begin so."""
_ARRAYS: dict[str, Any] = {
    "terms": np.uint8,
    "term-ends": np.int64,
    "labels": np.uint8,
    "label-ends": np.int64,
    "order": np.int32,
}
MAX_WRITTEN_FORMS = 8
"""Forms of a word that are counted, the first that come."""

WrittenTerm = tuple[str, str, int]
"""A word of a text, one way in which it is written there, and how often it is so."""


@dataclass(frozen=True, slots=True)
class WordTable:
    """Words with their labels, by number, and found by binary search. In memory or mapped."""

    arrays: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.arrays["order"])

    def number(self, term: str) -> int:
        """The number of a word; -1 where the table lacks it."""
        wanted, order = term.encode(), self.arrays["order"]
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if self._bytes("term", int(order[middle])) < wanted:
                low = middle + 1
            else:
                high = middle
        found = int(order[low]) if low < len(order) else -1
        return found if found >= 0 and self._bytes("term", found) == wanted else -1

    def term(self, number: int) -> str:
        """The word of a number."""
        return self._bytes("term", number).decode(errors="replace")

    def label(self, number: int) -> str:
        """How documents write the word."""
        return self._bytes("label", number).decode(errors="replace")

    def terms(self) -> Iterator[str]:
        """All words, by number."""
        return (self.term(number) for number in range(len(self)))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """All words with their labels, by number."""
        return ((self.term(number), self.label(number)) for number in range(len(self)))

    def _bytes(self, what: str, number: int) -> bytes:
        ends = self.arrays[f"{what}-ends"]
        return bytes(self.arrays[f"{what}s"][int(ends[number]) : int(ends[number + 1])])

    @staticmethod
    def of(words: Iterable[tuple[str, str]]) -> WordTable:
        """From words and their labels."""
        pairs = [(term.encode(), label.encode()) for term, label in words]
        arrays: dict[str, NDArray[Any]] = {}
        for name, side in (("term", [term for term, _ in pairs]), ("label", [label for _, label in pairs])):
            arrays[f"{name}s"] = np.frombuffer(b"".join(side), np.uint8)
            arrays[f"{name}-ends"] = np.cumsum([0, *map(len, side)], dtype=np.int64)
        arrays["order"] = np.array(sorted(range(len(pairs)), key=lambda number: pairs[number][0]), np.int32)
        return WordTable(arrays)

    def write(self, folder: Path) -> None:
        """Writes the files of the table."""
        for name, dtype in _ARRAYS.items():
            array_files.write_array(folder / f"{STEM}-{name}.npy", self.arrays[name].astype(dtype, copy=False))

    @staticmethod
    def open(folder: Path, *, n_words: int, remedy: str) -> WordTable:
        """Maps the files of a table, and checks that they fit together."""
        if not n_words:
            return WordTable.of(())
        arrays = {name: array_files.map_array(folder / f"{STEM}-{name}.npy") for name in _ARRAYS}
        good = all(arrays[name].dtype == dtype and arrays[name].ndim == 1 for name, dtype in _ARRAYS.items())
        good = good and len(arrays["order"]) == n_words
        good = good and bool(((arrays["order"] >= 0) & (arrays["order"] < n_words)).all())
        for name in ("term", "label") if good else ():
            ends = arrays[f"{name}-ends"]
            good = good and len(ends) == n_words + 1 and int(ends[0]) == 0 and array_files.ascends(ends)
            good = good and int(ends[-1]) == len(arrays[f"{name}s"])
        if not good:
            raise ArtifactError(f'"{folder}" is damaged: its words do not fit together; {remedy}')
        return WordTable(arrays)


class NewWords:
    """Numbers the words of documents that are added: known ones as they are, new ones after the last."""

    def __init__(self, known: Mapping[str, int], *, first: int | None = None) -> None:
        """known: words that have numbers. first: the number of the first new word, where not all words are known."""
        self._numbers = dict(known)
        self.first = len(known) if first is None else first
        """The number of the first new word."""
        self._forms: list[dict[str, int]] = []
        self._kept: list[tuple[str, str]] = []

    def __len__(self) -> int:
        """Number of new words."""
        return len(self._kept) + len(self._forms)

    @property
    def size(self) -> int:
        """Number of all words, the new ones included."""
        return self.first + len(self)

    def counts(self, texts: Iterable[Iterable[WrittenTerm]]) -> SparseVectors:
        """How often texts have words, which get numbers where they are new."""
        rows = [self.numbered(terms) for terms in texts]
        return word_counts(rows, size=self.size)

    def numbered(self, terms: Iterable[WrittenTerm]) -> dict[int, int]:
        """The numbers of one text's words, and how often it has each."""
        counts: dict[int, int] = {}
        for term, written, count in terms:
            number = self._numbers.setdefault(term, self.first + len(self))
            if number - self.first >= len(self):
                self._forms.append({})
            counts[number] = counts.get(number, 0) + count
            if number >= self.first + len(self._kept):
                forms = self._forms[number - self.first - len(self._kept)]
                if written in forms or len(forms) < MAX_WRITTEN_FORMS:
                    forms[written] = forms.get(written, 0) + count
        return counts

    def keep(self, words: Iterable[tuple[str, str]]) -> None:
        """Takes on words of a segment that is merged, with their labels. None may be new."""
        assert not self._forms
        self._kept += words

    def table(self) -> WordTable:
        """The new words. A word is called as it is most often written; the shortest form of several such."""
        named = {number: term for term, number in self._numbers.items() if number >= self.first}
        labels = [
            (named[self.first + len(self._kept) + place], min(forms, key=lambda one: (-forms[one], len(one), one)))
            for place, forms in enumerate(self._forms)
        ]
        return WordTable.of([*self._kept, *labels])
