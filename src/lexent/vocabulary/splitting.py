"""Texts to the words that an index keeps: stems of plain words; identifiers and numbers whole and in parts.

- A plain word is kept as its stem: "retries" and "retry" are one word.
- An identifier (letters with digits, dots, underscores or capitals inside) is kept whole, in lower case, and so are its
  parts: ERR_CONN_RESET-42 is also err, conn, reset and 42. Plain words joined by hyphens or slashes are kept apart.
- Text in a script without spaces is kept as pairs of neighbouring signs.

Function words of English are left out, and parts of a single sign.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from lexent import forks
from lexent.function_words import FUNCTION_WORDS

MAX_WORD_CHARS = 96
"""Of longer words the first characters and a hash are kept."""
MAX_REMEMBERED_WORDS = 1 << 18
"""Written words whose terms a splitter remembers."""

_LETTER = r"[\w\u0300-\u036f]"
_WRITTEN = re.compile(rf"{_LETTER}+(?:(?:[.\-_/:@'’]|(?<=\d),(?=\d)){_LETTER}+)*(?:\+\+|#)?")
"""A written word: letters and digits, and the signs inside that join the parts of one name."""
_POSSESSIVE = re.compile(r"['’][sS]$")
_PIECE = re.compile(r"[^\W_][^\W_\u0300-\u036f]*(?:[\u0300-\u036f]+[^\W_\u0300-\u036f]*)*")
_JOINED_PLAIN = re.compile(r"[^\W\d_]+(?:[-'’/][^\W\d_]+)+")
_INNER = re.compile(r"\d+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""Parts of a piece in ASCII: numbers, and words that begin with a capital."""
_ACRONYMS = re.compile(r"[A-Z]{2,}s")
_UNSPACED = "\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese are written without spaces."""
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place of a text where one of its words is written."""

    term: str
    """The word as an index keeps it."""
    written: str
    start: int
    stop: int


class WordSplitter:
    """Splits texts into words. language: of the stems, as Snowball names it; "none" keeps words as they are written."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._remembered: dict[str, tuple[tuple[str, int, int], ...]] = {}
        self._stemming = threading.RLock()  # a stemmer has a state
        forks.renew_lock(self, "_stemming")

    def occurrences(self, text: str) -> Iterator[Occurrence]:
        """The words of a text with their places: an identifier first, and then its parts."""
        for found in _WRITTEN.finditer(text):
            written, at = found.group(), found.start()
            for term, start, stop in self._terms(written):
                yield Occurrence(term, written[start:stop], at + start, at + stop)

    def terms(self, text: str) -> Iterator[tuple[str, str]]:
        """The words of a text as an index keeps them, each with how it is written there."""
        for written in _WRITTEN.findall(text):
            for term, start, stop in self._terms(written):
                yield term, written[start:stop]

    def counted(self, text: str) -> list[tuple[str, str, int]]:
        """The words of a text, each with a way in which it is written there, and how often it is so."""
        return [(term, written, count) for (term, written), count in Counter(self.terms(text)).items()]

    def only_term(self, name: str) -> str | None:
        """The word that a name is, an identifier as a whole; None where it has several words, or none."""
        found = _WRITTEN.findall(name)
        terms = self._terms(found[0]) if len(found) == 1 else ()
        if not terms or (terms[0][1], terms[0][2]) != (0, max(stop for _, _, stop in terms)):
            return None
        return terms[0][0]

    def _terms(self, written: str) -> tuple[tuple[str, int, int], ...]:
        """The terms of a written word, each with the part that it comes from."""
        known = self._remembered.get(written)
        if known is None:
            if len(self._remembered) >= MAX_REMEMBERED_WORDS:
                self._remembered.clear()
            spans = dict.fromkeys(_parts(written))
            found = ((written[start:stop], start, stop) for start, stop in spans)
            kept = ((part, start, stop) for part, start, stop in found if _normal(part) not in FUNCTION_WORDS)
            terms = {self._term(part): (start, stop) for part, start, stop in reversed(list(kept))}
            known = tuple((term, *place) for term, place in reversed(terms.items()))
            self._remembered[written] = known
        return known

    def _term(self, part: str) -> str:
        word = _normal(part)
        if word.isalpha() and self._stemmer is not None:
            with self._stemming:
                word = str(self._stemmer.stemWord(word))
        else:
            word = word.replace(",", "")  # of numbers
        if len(word) <= MAX_WORD_CHARS:
            return word
        return word[:MAX_WORD_CHARS] + hashlib.blake2b(word.encode(), digest_size=8).hexdigest()

    @cached_property
    def _stemmer(self) -> Any:
        """None where words are not stemmed."""
        if self.language == "none":
            return None
        import Stemmer

        return Stemmer.Stemmer(self.language)


@cache
def splitter_of(language: str) -> WordSplitter:
    """The splitter of a language, with what it remembers."""
    return WordSplitter(language)


def _parts(written: str) -> Iterator[Span]:
    """The parts of a written word that are words of their own, the whole first where it is one."""
    possessive = _POSSESSIVE.search(written)
    end = possessive.start() if possessive else len(written)
    pieces = [found.span() for found in _PIECE.finditer(written, 0, end)]
    if _HAS_UNSPACED.search(written):
        for start, stop in pieces:
            yield from _pairs(written, start, stop)
        return
    if not _JOINED_PLAIN.fullmatch(written, 0, end):
        yield 0, end
    for start, stop in pieces:
        if _ACRONYMS.fullmatch(written, start, stop):  # GPUs is GPU too
            inner = [(start, stop - 1)]
        else:
            inner = [found.span() for found in _INNER.finditer(written, start, stop)] if written.isascii() else []
        yield from (part for part in ((start, stop), *inner) if part[1] - part[0] > 1)


def _pairs(written: str, start: int, stop: int) -> Iterator[Span]:
    """Pairs of neighbouring signs of a piece in a script without spaces; what else it holds, whole."""
    for found in _RUN.finditer(written, start, stop):
        first, last = found.span()
        if last - first > 2 and _HAS_UNSPACED.match(written, first):
            yield from ((place, place + 2) for place in range(first, last - 1))
        else:
            yield first, last


def _normal(part: str) -> str:
    return part.casefold() if part.isascii() else unicodedata.normalize("NFKC", part).casefold()
