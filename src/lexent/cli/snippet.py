"""A piece of a document around the words that its score came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from lexent.search.results import Hit
    from lexent.types import TokenShare

SNIPPET_LINES = 2
"""Lines of text a piece may fill."""
MARKED_SHARE = 0.25
"""A word is marked when it has this share of what the strongest one has."""


def snippet(hit: Hit, words: tuple[TokenShare, ...], width: int) -> Text:
    """About two lines of the document's text, with the strongest words marked; its beginning where none are known."""
    start_of_text = hit.text_start
    inside = [word for word in words if word.start >= start_of_text and word.stop > word.start and word.share > 0]
    size = SNIPPET_LINES * width
    start = _best_start(inside, start_of_text, len(hit.text), size)
    piece = hit.text[start : start + size]
    if start and " " in piece:
        skipped = piece.index(" ") + 1
        start, piece = start + skipped, piece[skipped:]
    if start + len(piece) < len(hit.text):
        piece = piece.rsplit(" ", 1)[0]
    marked = Text(("… " if start else "") + piece + (" …" if start + len(piece) < len(hit.text) else ""))
    shift = len("… ") if start else 0
    strongest = max((word.share for word in inside), default=0.0)
    for word in inside:
        at = word.start - start_of_text - start
        if word.share >= MARKED_SHARE * strongest and at >= 0 and at + word.stop - word.start <= len(piece):
            marked.stylize("bold yellow", at + shift, at + shift + word.stop - word.start)
    return _one_line(marked)


def _best_start(words: list[TokenShare], offset: int, length: int, size: int) -> int:
    """Where the window of `size` characters with the largest sum of shares begins; the text's beginning if it fits."""
    if length <= size or not words:
        return 0
    starts = sorted({max(0, word.start - offset - size // 8) for word in words} | {0})

    def sum_of_shares(start: int) -> float:
        return sum(word.share for word in words if start <= word.start - offset and word.stop - offset <= start + size)

    return min(max(starts, key=lambda start: (sum_of_shares(start), -start)), length - size)


def _one_line(text: Text) -> Text:
    """Line breaks and tabs as single spaces; places of the marks stay right because no character is added or lost."""
    flat = Text("".join(" " if character.isspace() else character for character in text.plain))
    flat.spans = text.spans
    return flat
