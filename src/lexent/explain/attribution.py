"""Which words of a text raised a concept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexent import arguments
from lexent.errors import InputError
from lexent.pipeline import Pipeline
from lexent.search.steering import targets
from lexent.search.token_rows import of_text
from lexent.types import Kind, Tokens, TokenShare

if TYPE_CHECKING:
    from lexent.search.results import Hit

WHOLE_TEXT = "whole text"
"""What stands in a word's place where the text as a whole was coded."""
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Attribution:
    """What each word of a text gave to a concept, strongest first; words that gave nothing are left out.

    The shares sum exactly to `pooled`, the concept's value after pooling and before the transform: with sum pooling a
    word's share is the sum of its tokens' activations, with max pooling the strongest token's word has all of it.
    The transform and BM25 work on the pooled value as a whole, so no exact split exists after them; `scaled` shares a
    weight or a contribution out in proportion.
    """

    concept: int
    label: str
    pooled: float
    shares: tuple[TokenShare, ...]

    def scaled(self, total: float) -> tuple[TokenShare, ...]:
        """The shares in proportion, so that they sum to `total`."""
        total = arguments.number("total", total)
        return tuple(replace(share, share=share.share / self.pooled * total) for share in self.shares)

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        tokens = [asdict(share) for share in self.shares]
        return {"concept": self.concept, "label": self.label, "pooled": self.pooled, "tokens": tokens}

    def __str__(self) -> str:
        words = ", ".join(f"{share.token} {share.share:.3f}" for share in self.shares)
        return f"#{self.concept} {self.label}: {words or 'no token'}"


@dataclass(frozen=True, slots=True)
class ConceptTokens:
    """The words behind a concept on both sides of a hit; places in a document count from the start of its `content`."""

    query: Attribution
    document: Attribution

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return {"query": self.query.to_dict(), "document": self.document.to_dict()}

    def __str__(self) -> str:
        return f"query     {self.query}\ndocument  {self.document}"


@dataclass(frozen=True, slots=True)
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

    def activations(self, concept: int) -> NDArray[np.float64]:
        """float64[n_rows]: how much each row raised a concept."""
        found: NDArray[np.float64] = np.where(self.ids == concept, self.values, 0).sum(axis=1, dtype=np.float64)
        if not self.summed and len(found):
            found = np.where(np.arange(len(found)) == found.argmax(), found, 0.0)
        return found

    def words(self, activations: NDArray[np.float64]) -> tuple[TokenShare, ...]:
        """The activations of rows, by words."""
        return words(self.text, self.tokens, activations, whole=self.whole)

    def shares(self, concept: int) -> tuple[TokenShare, ...]:
        """How much each word raised a concept, strongest first."""
        return self.words(self.activations(concept))

    def attribution(self, concept: int, label: str) -> Attribution:
        """The words that raised a concept of that label."""
        activations = self.activations(concept)
        return Attribution(concept, label, float(activations.sum()), self.words(activations))


def code_texts(pipeline: Pipeline, texts: Sequence[str], *, kind: Kind) -> list[CodedText]:
    """The texts, encoded and coded token by token, as an index codes them."""
    if not texts:
        return []
    recipe = pipeline.recipe
    tokens = pipeline.encoder.tokenize(texts, kind=kind, specials=recipe.specials)
    # By MaxSim a query's concept counts as often as its tokens have it; a document's, in one token at a time.
    summed = recipe.pool == "sum" or (recipe.match == "maxsim" and kind == "query")
    parts, order = pipeline.collect(texts, lambda batch: batch.codes, kind=kind)
    rows = [of_text(codes, place) for codes in parts for place in range(len(codes.offsets) - 1)]
    return [
        CodedText(text, own, rows[place].ids, rows[place].values, summed, recipe.whole > 0)
        for text, own, place in zip(texts, tokens, order.tolist(), strict=True)
    ]


def attribute(text: str, concept: int, *, kind: Kind, pipeline: Pipeline) -> Attribution:
    """Which words of `text` raised a concept. The text is encoded again, alone.

    Where the encoder works in half precision, a text encoded alone may differ from the same text encoded among others
    in the third digit.
    """
    arguments.text("text", text)
    lexicon, recipe = pipeline.lexicon, pipeline.recipe
    concept = lexicon.concept(concept).id
    if recipe.level != "tokens":
        raise InputError(
            f'the recipe "{recipe.name}" encodes a text as one {recipe.level} vector, so no token stands for a '
            "concept; words can be shown for recipes that encode tokens"
        )
    return code_texts(pipeline, [text], kind=kind)[0].attribution(concept, lexicon.label(concept))


def tokens(hit: Hit, concept: str | int) -> ConceptTokens:
    """The words behind a concept of a hit; of several that a name may mean, the one that gave most to the score."""
    index = hit.index
    meant = targets(concept, hit.query.ids.tolist(), lexicon=index.lexicon)
    chosen = next((part.concept for part in hit.explain().contributions if part.concept in meant), meant[0])

    def side(text: str, kind: Kind) -> Attribution:
        return attribute(text, chosen, kind=kind, pipeline=index.pipeline)

    return ConceptTokens(
        query=side(hit.query.text, "query"), document=side(index.reader.at([hit.position])[0].content, "document")
    )


def words(
    text: str, tokens: Tokens, activations: NDArray[np.float64], *, whole: bool = False
) -> tuple[TokenShare, ...]:
    """The activations of tokens, summed over the whole words that they are pieces of, with the words' places.

    whole: the last activation is of the text as a whole, which has no place.
    """
    spans, starts = _spans(text, tokens)
    found: dict[tuple[str, int, int], float] = {}
    for place in np.flatnonzero(activations):
        last = whole and place == len(activations) - 1
        key = (WHOLE_TEXT, 0, 0) if last else _word_of(text, tokens, int(place), spans, starts)
        found[key] = found.get(key, 0.0) + float(activations[place])
    shares = [TokenShare(token, start, stop, share) for (token, start, stop), share in found.items()]
    return tuple(sorted(shares, key=lambda share: (-share.share, share.start)))


def word_at(text: str, tokens: Tokens, place: int) -> str:
    """The word that a token is a piece of; the token itself where it is special."""
    return _word_of(text, tokens, place, *_spans(text, tokens))[0]


def _spans(text: str, tokens: Tokens) -> tuple[list[tuple[int, int]], NDArray[np.int64]]:
    """Where the words of a text stand, as far as its tokens go; and where they begin."""
    spans = [match.span() for match in _WORD.finditer(text, 0, int(tokens.spans[:, 1].max(initial=0)))]
    return spans, np.array([start for start, _ in spans], dtype=np.int64)


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
