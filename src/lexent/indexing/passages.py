"""Documents to the passages that are encoded, and passages as texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lexent.corpus.passages import WHOLE, PassageSize, Pieces, Span, cut, place_in_content, text_of
from lexent.encoders import Encoder
from lexent.errors import InputError
from lexent.recipes import Recipe
from lexent.types import Document, TokenShare

COUNTED_CHARS = 10_000
"""Documents up to this long are first counted, which is quicker than to find where each token begins."""


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage of a document."""

    document: Document
    number: int
    """Among the passages of its document, from 0."""
    count: int
    """Passages of its document."""
    pieces: Pieces
    """Spans of the document's content: its context, and last its own text."""

    @property
    def content(self) -> str:
        """What is encoded: the title, the headings above it and its own text."""
        return text_of(self.document.content, self.pieces)

    @property
    def span(self) -> Span:
        """Where its own text stands in the text of the document; all of it where there is one passage."""
        if self.count == 1:
            return 0, len(self.document.text)
        start, stop = (place - self.document.text_start for place in self.pieces[-1])
        return max(start, 0), max(stop, 0)  # the passage may be of a long title

    @property
    def start(self) -> int:
        """Where its own text begins in the text of the document."""
        return self.span[0]

    @property
    def stop(self) -> int:
        """Where it ends."""
        return self.span[1]

    @property
    def text(self) -> str:
        """Its own text."""
        return self.document.text[slice(*self.span)]

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings above it, outermost first; without the title."""
        content, start = self.document.content, self.document.text_start
        return tuple(content[first:last] for first, last in self.pieces[:-1] if first >= start)

    def in_content(self, shares: Sequence[TokenShare]) -> tuple[TokenShare, ...]:
        """Words of the passage's content, with their places in the content of the document."""
        if self.pieces == WHOLE:
            return tuple(shares)
        moved = []
        for share in shares:
            start, stop = self.place_in_content(share.start, share.stop)
            moved.append(replace(share, start=start, stop=stop))
        return tuple(moved)

    def place_in_content(self, start: int, stop: int) -> Span:
        """Where a word of the passage's content stands in the content of the document. Special tokens have no place."""
        if stop <= start:
            return start, stop
        first = place_in_content(self.pieces, start)
        return first, first + stop - start


def passages_of(documents: Sequence[Document], encoder: Encoder, recipe: Recipe) -> list[list[Pieces]]:
    """The passages of each document: one where the encoder reads it whole, or where the recipe says so.

    Encoders that give states of their own, without tokens, read every text whole.
    """
    found = [[WHOLE] for _ in documents]
    most: int | None = getattr(encoder, "text_tokens", None)
    if recipe.whole_texts or most is None:
        return found
    if recipe.passage_tokens is not None and recipe.passage_tokens > most:
        raise InputError(
            f"passage_tokens is {recipe.passage_tokens}; allowed: at most {most}, the tokens of a text that the "
            f'encoder "{encoder.id}" reads'
        )
    size = PassageSize(recipe.passage_tokens or most, recipe.passage_overlap)
    tokenizer: Any = encoder
    # A token has at least one character.
    longer = [place for place, document in enumerate(documents) if len(document.content) > size.tokens]
    counted = [place for place in longer if len(documents[place].content) <= COUNTED_CHARS]
    counts = dict(zip(counted, tokenizer.token_counts([documents[place].content for place in counted]), strict=True))
    for place in longer:
        if counts.get(place, size.tokens + 1) > size.tokens:
            starts = tokenizer.token_starts([documents[place].content])[0]
            if len(starts) > size.tokens:
                found[place] = cut(documents[place], starts, size)
    return found
