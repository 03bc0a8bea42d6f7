"""A score by pairs of words: how much each word of the query got from which words of the document.

A concept's part of the score is shared out in proportion to what the words of the query and of the document raised of
it, so the values sum to the score. Where a recipe matches tokens, a word of the query has what its tokens found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lexent import arguments
from lexent.errors import InputError
from lexent.explain.alignment import AlignedText
from lexent.explain.contributions import BAR_CHARS, bar, shared_terms
from lexent.search.coded_text import WHOLE_TEXT, CodedText
from lexent.search.query import ADDED_CONCEPT_ROW

if TYPE_CHECKING:
    from lexent.search.results import Hit

OTHER_WORDS = "other words"
"""What stands in the place of a document's words where those that raised a concept cannot be told."""
SHOWN_LINES = 8
"""Words of the query that the readable form shows."""
SHOWN_WORDS = 4
"""Words of the document that it shows with each."""
LEAST_REST = 0.05
"""A smaller sum of the words that are not shown is not shown either."""
MatchKind = Literal["word", "whole", "concept"]
Typed = tuple[str, MatchKind]
"""What a part of a query is called, and what it is."""


@dataclass(frozen=True, slots=True)
class FoundWord:
    """A word of a document, in lower case, and what a word of the query got from it."""

    word: str
    value: float


@dataclass(frozen=True, slots=True)
class WordMatch:
    """A word of the query and the words of the document that it met. Their values and the rest sum to its value."""

    word: str
    """In lower case; the name of a concept that steering or feedback added."""
    value: float
    found: tuple[FoundWord, ...]
    """Strongest first."""
    rest: float = 0.0
    """The sum of the words that were left out."""
    kind: MatchKind = "word"
    """A word; the query as a whole; or a concept that was added to the query."""

    def shown(self, n: int) -> str:
        """The n strongest words with their values, and the sum of the others, where it shows."""
        parts = [f"{found.word} {found.value:.2f}" for found in self.found[:n]]
        rest = self.rest + sum(found.value for found in self.found[n:])
        return " · ".join([*parts, *([f"… {rest:.2f}"] if abs(rest) >= LEAST_REST else [])])

    def __str__(self) -> str:
        words = ", ".join(found.word for found in self.found[:SHOWN_WORDS])
        return f"{self.word} ↔ {words} {self.value:.1f}"


@dataclass(frozen=True, slots=True)
class WordExplanation:
    """Why a document has its score, by pairs of words: the values of the matches and the rest sum to it."""

    id: str
    score: float
    matches: tuple[WordMatch, ...]
    """Strongest first."""
    rest: float = 0.0
    """The sum of the matches that were left out."""

    def top(self, n: int, *, words: int | None = None) -> WordExplanation:
        """The n strongest words of the query; with `words`, each with at most so many of the document."""
        n = arguments.whole("n", n, least=0)
        arguments.whole_or_none("words", words, least=0)
        kept, others = self.matches[:n], self.matches[n:]
        if words is not None:
            kept = tuple(
                replace(one, found=one.found[:words], rest=one.rest + sum(each.value for each in one.found[words:]))
                for one in kept
            )
        return replace(self, matches=kept, rest=self.rest + sum(one.value for one in others))

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        longest = max((abs(match.value) for match in self.matches), default=0.0)
        left = max((len(match.word) for match in self.matches[:SHOWN_LINES]), default=0)
        lines = [f"{self.id}  {self.score:.3f}"]
        for match in self.matches[:SHOWN_LINES]:
            lines.append(
                f"  {bar(match.value, longest)} {match.value:8.3f}  {match.word:{left}} ↔ {match.shown(SHOWN_WORDS)}"
            )
        more = self.matches[SHOWN_LINES:]
        if more or self.rest:
            rest = self.rest + sum(match.value for match in more)
            lines.append(f"  {'':{BAR_CHARS}} {rest:8.3f}  other words of the query")
        return "\n".join(lines)


def explain_words(hit: Hit) -> WordExplanation:
    """The score of a hit by pairs of words. The document is encoded again."""
    index = hit.index
    if index.recipe.level != "tokens":
        raise InputError(
            f'the recipe "{index.recipe.name}" encodes a text as one {index.recipe.level} vector, so its score has no '
            "words; hit.explain() names the concepts, and recipes that encode tokens have words: latent-terms, ssr, uhd"
        )
    if hit.query.rows is not None:
        return _aligned(hit)
    own = index.coded_query(hit.query.text)
    assert own is not None
    terms = shared_terms(index, hit.query, hit.position)
    ids = np.array([term for term, *_ in terms], np.int32)
    values = np.array([value for *_, value in terms], np.float64)
    labels = {concept: index.label(concept) for concept in ids.tolist()}
    typed, shares = _sides(own, ids, labels=labels)
    words, found = _sides(index.coded_documents([hit.position])[0], ids)
    return _explanation(hit, typed, [word for word, _ in words], (shares * values) @ found.T)


def _sides(
    text: CodedText, ids: NDArray[np.int32], *, labels: Mapping[int, str] | None = None
) -> tuple[list[Typed], NDArray[np.float64]]:
    """The words of a text and their shares of each concept, whose columns sum to 1.

    A concept that no word raised has a row of its own where labels are given, and one row with others elsewhere.
    """
    words, shares = text.shares_by_word(ids)
    bare = np.flatnonzero(shares.sum(axis=0) == 0)
    extra = np.zeros((len(bare) if labels is not None else 1, len(ids)))
    extra[np.arange(len(bare)) if labels is not None else 0, bare] = 1.0
    names = [labels[int(ids[place])] for place in bare] if labels is not None else [OTHER_WORDS]
    kinds: list[MatchKind] = ["whole" if word == WHOLE_TEXT else "word" for word in words]
    return [*zip(words, kinds, strict=True), *((name, "concept") for name in names)], np.concatenate([shares, extra])


def _aligned(hit: Hit) -> WordExplanation:
    """By tokens: the word of each token of the query, and that of the document's token which is most like it."""
    aligned = AlignedText.of(hit.index, hit.query, hit.position)
    rows, found = aligned.rows, aligned.found
    own = hit.index.coded_query(hit.query.text)
    assert own is not None
    query, document = own.places, aligned.places
    typed: dict[Typed, int] = {}
    words: dict[str, int] = {}
    cells: list[tuple[int, int, float]] = []
    for row, token in enumerate(rows.tokens.tolist()):
        part = slice(rows.offsets[row], rows.offsets[row + 1])
        value = int(found.contributions[part].sum()) / found.divisor
        best = int(found.best[row])
        if token == ADDED_CONCEPT_ROW:
            ids = rows.ids[part].tolist()  # none where the recipe prunes it
            key: Typed = (hit.index.label(ids[0]) if ids else OTHER_WORDS, "concept")
        else:
            word = _word(query, token if token >= 0 else len(query) - 1)
            key = (word, "whole" if word == WHOLE_TEXT else "word")
        met = _word(document, best) if 0 <= best < len(document) else OTHER_WORDS
        cells.append((typed.setdefault(key, len(typed)), words.setdefault(met, len(words)), value))
    table = np.zeros((len(typed), len(words)))
    for place, other, value in cells:
        table[place, other] += value
    return _explanation(hit, list(typed), list(words), table)


def _word(places: Sequence[tuple[str, int, int]], row: int) -> str:
    word, _, stop = places[row]
    return word.lower() if stop else WHOLE_TEXT


def _explanation(hit: Hit, typed: Sequence[Typed], words: Sequence[str], table: NDArray[np.float64]) -> WordExplanation:
    """table: float64[n_query_words, n_document_words], what each pair gives."""
    matches = []
    for (word, kind), row in zip(typed, table, strict=True):
        met = sorted(np.flatnonzero(row).tolist(), key=lambda place: (-abs(row[place]), words[place]))
        if met:
            found = tuple(FoundWord(words[place], float(row[place])) for place in met)
            matches.append(WordMatch(word, float(row.sum()), found, kind=kind))
    return WordExplanation(hit.id, hit.score, tuple(sorted(matches, key=lambda match: (-abs(match.value), match.word))))
