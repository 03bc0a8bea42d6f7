"""The words of an index: those of its segments, one after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from lexent.vocabulary.word_table import WordTable


class Vocabulary:
    """Words by number. A segment's words come after those of the segments before it, so a number stays as it is."""

    def __init__(self, tables: Sequence[WordTable]) -> None:
        self.tables = tuple(tables)
        self.starts = list(accumulate(map(len, self.tables), initial=0))
        """Number of the first word of each table, and the number of all words."""

    def __len__(self) -> int:
        return self.starts[-1]

    def number(self, term: str) -> int:
        """The number of a word; -1 where the index lacks it."""
        for table, start in zip(self.tables, self.starts, strict=False):
            found = table.number(term)
            if found >= 0:
                return start + found
        return -1

    def label(self, number: int) -> str:
        """How documents write a word."""
        place = bisect_right(self.starts, number) - 1
        return self.tables[place].label(number - self.starts[place])

    def numbers(self) -> dict[str, int]:
        """The numbers of all words."""
        return {term: number for number, term in enumerate(term for table in self.tables for term in table.terms())}
