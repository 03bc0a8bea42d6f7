"""A text with the latents of each of its tokens, and the words that those tokens stand in."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lexent.pipeline import Pipeline
from lexent.search.token_rows import of_text
from lexent.types import Kind, RowCodes, Tokens, TokenShare
from lexent.vocabulary import Occurrence

WHOLE_TEXT = "whole text"
"""What stands in a word's place where the text as a whole was coded."""
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class CodedText:
    """A text with the latents of each of its tokens."""

    text: str
    tokens: Tokens
    ids: NDArray[np.int32]  # [n_rows, k]: a row for each token, and one more where the text as a whole is coded
    values: NDArray[np.float32]  # [n_rows, k]
    summed: bool
    """Whether the activations of tokens add up, or only the strongest counts."""
    whole: bool
    """Whether the last row is that of the text as a whole."""
    written: Mapping[int, Sequence[Occurrence]] = field(default_factory=dict)
    """Where the text has words of the index, by their ids."""

    def activations(self, concept: int) -> NDArray[np.float64]:
        """float64[n_rows]: how much each row raised a concept."""
        found: NDArray[np.float64] = np.where(self.ids == concept, self.values, 0).sum(axis=1, dtype=np.float64)
        if not self.summed and len(found):
            found = np.where(np.arange(len(found)) == found.argmax(), found, 0.0)
        return found

    def words(self, activations: NDArray[np.float64]) -> tuple[TokenShare, ...]:
        """The activations of rows, by words."""
        return words(self.places, activations)

    def shared_out(self, values: Mapping[int, float]) -> tuple[TokenShare, ...]:
        """The values of concepts and of words of the index, shared out among the words that raised them."""
        heat = np.zeros(len(self.ids))
        found: list[TokenShare] = []
        for concept, value in values.items():
            if concept in self.written:
                shares = self.shares(concept)
                found += (replace(share, share=value / len(shares)) for share in shares)
            else:
                activations = self.activations(concept)
                heat += activations / (activations.sum() or 1.0) * value
        return summed((*self.words(heat), *found))

    def shares(self, concept: int) -> tuple[TokenShare, ...]:
        """How much each word raised a concept, strongest first; for a word of the index, each place where it stands."""
        if concept in self.written:
            return tuple(TokenShare(one.written, one.start, one.stop, 1.0) for one in self.written[concept])
        return self.words(self.activations(concept))

    @cached_property
    def places(self) -> list[tuple[str, int, int]]:
        """The word that each row stands in, with its place in the text."""
        return places(self.text, self.tokens, len(self.ids), whole=self.whole)

    def shares_by_word(self, concepts: NDArray[np.int32]) -> tuple[list[str], NDArray[np.float64]]:
        """The distinct words, in lower case, and float64[n_words, n_concepts]: which share of each concept they raised.

        The column of a concept that no word raised is 0.
        """
        numbers: dict[str, int] = {}
        of_row = [
            numbers.setdefault(word.lower() if stop else WHOLE_TEXT, len(numbers)) for word, _, stop in self.places
        ]
        found = np.zeros((len(numbers), len(concepts)))
        order = np.argsort(concepts)
        at = np.searchsorted(concepts[order], self.ids) if len(concepts) else np.zeros(self.ids.shape, np.int64)
        column = order[np.minimum(at, len(concepts) - 1)] if len(concepts) else at
        kept = (self.values > 0) & (concepts[column] == self.ids) if len(concepts) else np.zeros(at.shape, np.bool_)
        rows, values = np.nonzero(kept)[0], self.values[kept].astype(np.float64)
        if not self.summed:  # the strongest row of each concept, the first of several
            best = np.lexsort((rows, -values, column[kept]))
            first = np.diff(column[kept][best], prepend=-1) != 0
            chosen = np.zeros(len(rows), np.bool_)
            chosen[best[first]] = True
            values = np.where(chosen, values, 0.0)
        np.add.at(found, (np.array(of_row, np.int64)[rows], column[kept]), values)
        own = [(numbers.setdefault(word, len(numbers)), place) for word, place in self._words_of_index(concepts)]
        found = np.concatenate([found, np.zeros((len(numbers) - len(found), len(concepts)))])
        for row, place in own:
            found[row, place] += 1.0
        return list(numbers), found / np.where(found.sum(axis=0) > 0, found.sum(axis=0), 1.0)

    def _words_of_index(self, concepts: NDArray[np.int32]) -> Iterator[tuple[str, int]]:
        """Words of the text that are words of the index, and the places of those among the concepts.

        A part of an identifier stands in the word that its letters are of.
        """
        places = {concept: place for place, concept in enumerate(concepts.tolist()) if concept in self.written}
        if not places:
            return
        spans = [match.span() for match in _WORD.finditer(self.text)]
        starts = [start for start, _ in spans]
        for concept, place in places.items():
            for one in self.written[concept]:
                start, stop = spans[max(bisect_right(starts, one.start) - 1, 0)]
                within = start <= one.start and one.stop <= stop
                yield (self.text[start:stop] if within else one.written).lower(), place


def code_texts(pipeline: Pipeline, texts: Sequence[str], *, kind: Kind) -> list[CodedText]:
    """The texts, encoded and coded token by token, as an index codes them."""
    if not texts:
        return []
    parts, order = pipeline.collect(texts, lambda batch: batch.codes, kind=kind)
    rows = [of_text(codes, place) for codes in parts for place in range(len(codes.offsets) - 1)]
    return coded_texts(pipeline, texts, [rows[place] for place in order.tolist()], kind=kind)


def coded_texts(pipeline: Pipeline, texts: Sequence[str], rows: Sequence[RowCodes], *, kind: Kind) -> list[CodedText]:
    """Texts whose codes are known."""
    recipe = pipeline.recipe
    tokens = pipeline.encoder.tokenize(texts, kind=kind, specials=recipe.specials)
    # By MaxSim a query's concept counts as often as its tokens have it; a document's, in one token at a time.
    summed = recipe.pool == "sum" or (recipe.match == "maxsim" and kind == "query")
    return [
        CodedText(text, own, codes.ids, codes.values, summed, recipe.whole > 0)
        for text, own, codes in zip(texts, tokens, rows, strict=True)
    ]


def words(places: Sequence[tuple[str, int, int]], activations: NDArray[np.float64]) -> tuple[TokenShare, ...]:
    """The activations of rows, summed over the words that they stand in, strongest first."""
    return summed(TokenShare(*places[row], float(activations[row])) for row in np.flatnonzero(activations).tolist())


def summed(shares: Iterable[TokenShare]) -> tuple[TokenShare, ...]:
    """The shares of each place as one, strongest first."""
    found: dict[tuple[str, int, int], float] = {}
    for one in shares:
        place = (one.token, one.start, one.stop)
        found[place] = found.get(place, 0.0) + one.share
    parts = [TokenShare(*place, share) for place, share in found.items()]
    return tuple(sorted(parts, key=lambda part: (-part.share, part.start)))


def places(text: str, tokens: Tokens, n_rows: int, *, whole: bool = False) -> list[tuple[str, int, int]]:
    """The word that each row stands in, with its place; special tokens and the whole text have none (0 to 0).

    whole: the last row is of the text as a whole.
    """
    spans = [match.span() for match in _WORD.finditer(text, 0, int(tokens.spans[:, 1].max(initial=0)))]
    starts = np.array([start for start, _ in spans], dtype=np.int64)
    found = [_word_of(text, tokens, row, spans, starts) for row in range(n_rows - whole)]
    return [*found, (WHOLE_TEXT, 0, 0)] if whole and n_rows else found


def word_at(text: str, tokens: Tokens, place: int) -> str:
    """The word that a token is a piece of; the token itself where it is special."""
    return places(text, tokens, place + 1)[place][0]


def _word_of(
    text: str, tokens: Tokens, place: int, spans: list[tuple[int, int]], starts: NDArray[np.int64]
) -> tuple[str, int, int]:
    """The word that a token is a piece of; the token itself where it is special or its place in the text unknown."""
    if place >= len(tokens):  # an empty text may have a state but no token
        return "", 0, 0
    start, stop = (int(edge) for edge in tokens.spans[place])
    if tokens.special[place] or start >= stop:
        return tokens.strings[place], 0, 0
    piece = text[start:stop]
    start += len(piece) - len(piece.lstrip())  # some tokenizers count the space before a word to it
    word = int(np.searchsorted(starts, start, side="right")) - 1
    if word < 0 or start >= spans[word][1]:
        return tokens.strings[place], start, stop
    return text[slice(*spans[word])], *spans[word]
