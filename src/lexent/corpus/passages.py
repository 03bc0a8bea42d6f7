"""Documents to passages: pieces that an encoder reads whole, cut at the borders of sections and sentences.

A passage is a list of spans of its document's content: the title and the headings above it as context, and last its own
text. So nothing is copied, and a place in a passage is a place in the document.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from lexent.types import Document

Span = tuple[int, int]
"""First and last character but one, in the content of a document."""
Pieces = tuple[Span, ...]
"""The spans of a passage: its context, and last its own text."""

CONTEXT_SHARE = 0.25
"""The title, and the headings together, have at most this share of a passage's tokens each."""
SPARE_TOKENS = 2
"""Tokens that are left free: a text that is cut may have more than its tokens counted before."""
LEAST_SHARE = 0.25
"""A passage that is not its document's last has at least this share of the tokens that fit, where borders allow."""
SECTION, PARAGRAPH, SENTENCE = 3, 2, 1
_BONUS = {SENTENCE: 0.0, PARAGRAPH: 0.1, SECTION: 0.25}
"""How far from the middle a better border may be, as a share of the tokens that fit."""
_HEADING = re.compile(r"^(#{1,6})[ \t]+(\S[^\n]*)$|^(\w[^\n]*)\n(=+|-{3,})[ \t]*$", re.MULTILINE)
"""A heading of Markdown: `## Name`, or a line underlined by = or -."""
_FENCE = re.compile(r"^(```|~~~)[^\n]*$", re.MULTILINE)
_BORDER = re.compile(r"\n[ \t]*\n\s*|[.!?…][\"'”’)\]]*\s+(?=[^a-z\s])|[。！？]+[」』”]*")

_ENDS: tuple[Callable[[str], bool], ...] = (str.isspace, ",;|)]}>".__contains__, lambda char: char in "\"'=&<([{")
"""Characters after which a long sentence may be cut, the best first: between words, else between parts of a record, so
that no identifier is cut in two."""


@dataclass(frozen=True, slots=True)
class PassageSize:
    """How long passages are, in tokens of the encoder."""

    tokens: int
    """Tokens of a passage at most, its title and headings among them."""
    overlap: int
    """Tokens at the end of a passage that may stand again at the beginning of the next one: whole sentences."""


@dataclass(frozen=True, slots=True)
class _Heading:
    start: int
    stop: int
    """End of its line."""
    name: Span
    level: int
    parents: tuple[int, ...]
    """Numbers of the headings above it, outermost first."""


WHOLE: Pieces = ((0, 2**32 - 1),)
"""A document as one passage: a span that ends where the content does."""


def cut(document: Document, token_starts: NDArray[np.int64], size: PassageSize) -> list[Pieces]:
    """The passages of a document, which has more tokens than fit into one; they cover all of its text.

    token_starts: int64[n_tokens], the first character of each token of its content.
    """
    return _Cutter(document, token_starts, size).passages()


def text_of(content: str, pieces: Sequence[Span]) -> str:
    """What is encoded of a passage: its pieces with spaces between."""
    return " ".join(content[start:stop] for start, stop in pieces)


def place_in_content(pieces: Sequence[Span], place: int) -> int:
    """Where a character of a passage's text stands in the content of the document."""
    for start, stop in pieces:
        if place <= stop - start:
            return start + place
        place -= stop - start + 1  # and the space
    return pieces[-1][1]


class _Cutter:
    """One document on its way to passages. Borders and limits are counted in tokens."""

    def __init__(self, document: Document, token_starts: NDArray[np.int64], size: PassageSize) -> None:
        self.content, self.size = document.content, size
        self.starts = token_starts
        self.text_start = min(max(document.text_start, 0), len(self.content))
        most = int(size.tokens * CONTEXT_SHARE)
        whole_title = (0, max(self.text_start - 1, 0))
        self.title = self._clipped(whole_title, most)
        self.begin = 0 if self.title != whole_title else self.text_start
        """Where the first passage begins: with the title where that is too long for a context."""
        name = self.content[slice(*self.title)].strip().casefold()
        self.headings = _headings(self.content, self.text_start)
        self.is_title = [self._name(heading).casefold() == name for heading in self.headings]
        self.heading_starts = [heading.start for heading in self.headings]
        self.most_headings = most
        sections = [heading for heading, same in zip(self.headings, self.is_title, strict=True) if not same]
        borders = _borders(self.content, self.text_start, sections)
        self.places = np.searchsorted(self.starts, [place for place, _ in borders]).tolist()
        self.strengths = [strength for _, strength in borders]

    def passages(self) -> list[Pieces]:
        """The passages, in order."""
        found: list[Pieces] = []
        at, done, end = self._token_at(self.begin), 0, len(self.starts)
        while done < end:
            context = self._context(int(self.starts[at]))
            room = self.size.tokens - SPARE_TOKENS - sum(self._count(span) for span in context)
            stop, strength = self._stop(at, max(done, at), max(room, 1), end)
            found.append((*context, self._trimmed(at, stop)))
            done = stop
            at = stop if strength == SECTION else self._overlapping(at, stop)
        return found

    def _stop(self, at: int, done: int, room: int, end: int) -> tuple[int, int]:
        """Where the passage that begins at a token ends, after `done`, and how strong that border is."""
        left = end - at
        if left <= room:
            return end, SECTION
        wanted = left / ceil(left / room)  # passages of about one length
        low, high = bisect_right(self.places, done), bisect_right(self.places, at + room)
        chosen = range(low, high)
        long_enough = [one for one in chosen if self.places[one] - at >= room * LEAST_SHARE]
        best = min(
            long_enough or chosen,
            key=lambda one: abs(self.places[one] - at - wanted) / room - _BONUS[self.strengths[one]],
            default=None,
        )
        if best is not None:
            return self.places[best], self.strengths[best]
        for ends in _ENDS:  # one long sentence
            for token in range(at + room, max(done, at + room // 2), -1):
                if ends(self.content[int(self.starts[token]) - 1]):
                    return token, SENTENCE
        return max(at + room - room // 8, done + 1), SENTENCE  # within a word, whose parts may be more tokens

    def _overlapping(self, at: int, stop: int) -> int:
        """Where the next passage begins: with the last sentences of this one, if they are short and of one section."""
        most = min(self.size.overlap, self.size.tokens // 4)
        place = bisect_left(self.places, stop)
        best = stop
        while place > 0 and stop - self.places[place - 1] <= most and self.places[place - 1] > at:
            place -= 1
            best = self.places[place]
            if self.strengths[place] == SECTION:
                break
        return best

    def _context(self, start: int) -> list[Span]:
        """The title, and the headings above a place, as far as they fit."""
        found = [self.title] if self.title[1] > self.title[0] and start >= self.text_start else []
        number = bisect_right(self.heading_starts, start) - 1
        if number < 0:
            return found
        heading = self.headings[number]
        path = heading.parents if heading.start == start else (*heading.parents, number)
        kept: list[Span] = []
        left = self.most_headings
        for one in reversed([one for one in path if not self.is_title[one]]):  # the innermost first
            span = self._clipped(self.headings[one].name, left)
            if span[1] <= span[0]:
                break
            left -= self._count(span)
            kept.append(span)
        return found + kept[::-1]

    def _name(self, heading: _Heading) -> str:
        return self.content[slice(*heading.name)]

    def _token_at(self, place: int) -> int:
        """The number of the first token that begins at a character or after it."""
        return int(np.searchsorted(self.starts, place))

    def _count(self, span: Span) -> int:
        return self._token_at(span[1]) - self._token_at(span[0])

    def _clipped(self, span: Span, most: int) -> Span:
        """The beginning of a span that has at most so many tokens."""
        first = self._token_at(span[0])
        if self._token_at(span[1]) - first <= most:
            return span
        return span[0], span[0] + len(self.content[span[0] : int(self.starts[first + max(most, 0)])].rstrip())

    def _trimmed(self, first: int, stop: int) -> Span:
        """The characters of some tokens, without spaces around. The first passage begins where the text does."""
        start = int(self.starts[first])
        end = len(self.content) if stop >= len(self.starts) else int(self.starts[stop])
        return start, start + len(self.content[start:end].rstrip())


def _headings(content: str, start: int) -> list[_Heading]:
    """The headings of a text that begins at a character, with those that each stands under."""
    text = content[start:]  # whose first line may be a heading, also behind a title
    fences = [match.start() for match in _FENCE.finditer(text)]
    found: list[_Heading] = []
    path: list[int] = []
    for match in _HEADING.finditer(text):
        if bisect_left(fences, match.start()) % 2:  # a comment in a block of code
            continue
        level = len(match[1]) if match[1] else (1 if match[4][0] == "=" else 2)
        while path and found[path[-1]].level >= level:
            path.pop()
        first, last = match.span(2 if match[1] else 3)
        name = (start + first, start + first + len(without_closing(text[first:last]) if match[1] else text[first:last]))
        found.append(_Heading(start + match.start(), start + match.end(), name, level, tuple(path)))
        path.append(len(found) - 1)
    return found


def without_closing(name: str) -> str:
    """The name of a Markdown heading without the #s that may close its line."""
    bare = name.rstrip()
    opened = bare.rstrip("#")
    return opened.rstrip() if opened[-1:].isspace() else bare


def _borders(content: str, start: int, headings: Sequence[_Heading]) -> list[tuple[int, int]]:
    """Where sentences, paragraphs and sections begin, in order, and which of these it is."""
    strengths = {
        match.end(): PARAGRAPH if match[0].lstrip(" \t")[:1] == "\n" else SENTENCE
        for match in _BORDER.finditer(content, start)
    }
    for heading in headings:  # a heading stays with what follows it
        for place in _within(strengths, heading.start + 1, _next_word(content, heading.stop)):
            del strengths[place]
        strengths[heading.start] = SECTION
    return sorted((place, strength) for place, strength in strengths.items() if start < place < len(content))


def _within(strengths: dict[int, int], first: int, last: int) -> list[int]:
    return [place for place in range(first, last + 1) if place in strengths]


def _next_word(content: str, place: int) -> int:
    while place < len(content) and content[place].isspace():
        place += 1
    return place
