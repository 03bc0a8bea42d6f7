"""The values that requests are answered with. They are written to JSON as they are, and give the OpenAPI document.

Values of the library (contributions, groups, aligned tokens, comparisons) are its own dataclasses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, dataclass_transform

from pydantic import ConfigDict

from lexent.explain.alignment import AlignedToken
from lexent.explain.ranking import Comparison
from lexent.explain.word_pairs import WordMatch
from lexent.search.groups import ConceptGroup, Line
from lexent.search.results import AddedConcept, QueryConcept, SteeredConcept
from lexent.types import Contribution, TokenShare


@dataclass_transform(frozen_default=True)
class Reply:
    """A reply, or a part of one: a frozen dataclass whose doc lines describe its fields in the OpenAPI document."""

    __pydantic_config__ = ConfigDict(use_attribute_docstrings=True)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Problem(Reply):
    """Every error, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
    """What was given, what is allowed and what to do."""
    errors: list[dict[str, str]] | None = None
    """422 only: each place of the request that cannot be used."""


# --- search --------------------------------------------------------------------------------------------------------


class WeighedConcept(QueryConcept, Reply):
    """A concept of a query and its weight."""


class RankedDocument(Reply):
    """A document that a system found."""

    rank: int
    id: str
    score: float
    title: str
    """The first characters of its text where it has none."""
    text: str
    metadata: Mapping[str, Any]


class Passage(Reply):
    """A passage of a document."""

    number: int
    """Among the passages of its document, from 0."""
    count: int
    """Passages of its document."""
    start: int
    """Where it begins in the text of the document, in characters."""
    stop: int
    headings: list[str]
    """The headings above it, outermost first."""
    score: float


class Hit(RankedDocument):
    """A document that was found."""

    strength: float
    """From 0 to 1, the same for every query: 0 is what words thrown together get, 1 what a passage of it would."""
    text: str
    """Of the document; with unit passage, of the passage."""
    passages: list[Passage]
    """The best passages of the document, at most three; the score and the explanation are of the first."""
    groups: list[Line] | None = None
    """By concepts that say the same, strongest first, those of form last; the values sum to the score."""
    contributions: list[Contribution] | None = None
    """Strongest first; with the rest they sum to the score."""
    rest: float | None = None
    """The sum of the contributions that were left out."""
    alignment: list[AlignedToken] | None = None
    """For recipes that match tokens; the values sum to the score too."""
    words: list[WordMatch] | None = None
    """What each word of the query got from which words of the document, strongest first; the values sum to the score.
    Where they were asked for; null where the recipe encodes a text as one vector."""


class SearchReply(Reply):
    """The reply to a search."""

    query: str
    approximate: bool
    """Whether a document that scores higher may have been missed; the scores themselves are exact."""
    groups: list[ConceptGroup]
    """The concepts by groups of those that say the same, strongest first, those of form last; none without hits."""
    concepts: list[WeighedConcept]
    """What the query was searched by, strongest first, after idf and steering."""
    added: list[AddedConcept]
    """Concepts whose weights relevance feedback changed, strongest first."""
    steered: list[SteeredConcept]
    """Concepts that steering moved, the most moved first, with their weights before and after."""
    hits: list[Hit]
    read: int
    """Characters of the query that the encoder read: all of them, unless it has too many tokens."""
    generation: int
    """Of the index; it counts the changes."""
    took_ms: float


class Shares(Reply):
    """The tokens of a text that raised a concept."""

    pooled: float
    """The value of the concept after pooling: the sum of the shares."""
    tokens: Sequence[TokenShare]


class ConceptShares(Shares):
    """A concept and the tokens that raised it."""

    concept: int
    label: str


class ConceptTokens(Reply):
    """The words behind a concept, on both sides of a hit; places count from the start of title, a space, text."""

    concept: int
    label: str
    query: Shares
    document: Shares


class DocumentWords(Reply):
    """The words behind the concepts of a document."""

    id: str
    concepts: list[ConceptShares]
    words: list[WordMatch]
    """The score by pairs of words, as in a hit."""


class WordsReply(Reply):
    """The words behind the concepts of a query and of documents."""

    query: list[ConceptShares]
    documents: list[DocumentWords]


class ExplainReply(Reply):
    """The reply to an explanation."""

    query: str
    id: str
    title: str
    rank: int | None
    """From 1; null where the document shares no concept with the query."""
    found: int
    """How many documents share a concept with the query."""
    score: float
    strength: float
    groups: list[Line]
    """As in a hit, as is the strength."""
    contributions: list[Contribution]
    rest: float
    missing: list[WeighedConcept]
    """Concepts of the query that the document lacks, strongest first."""
    above: Comparison | None
    """The document one rank higher."""
    best: Comparison | None
    """The top hit; null for the top hit itself."""
    tokens: list[ConceptTokens]
    alignment: list[AlignedToken] | None = None
    """For recipes that match tokens."""
    words: list[WordMatch] | None = None
    """As in a hit."""


class System(Reply):
    """A system and its hits."""

    name: str
    kind: str
    about: str
    hits: list[RankedDocument]
    took_ms: float
    missing: str | None = None
    """Why there are no hits, and what to do; null where the system has an answer."""


class CompareReply(Reply):
    """The reply to a comparison."""

    query: str
    systems: list[System]


# --- fields --------------------------------------------------------------------------------------------------------


class FieldValue(Reply):
    """A value of a field."""

    value: bool | int | float | str
    documents: int


class FieldBin(Reply):
    """A part of the range of a field."""

    low: int | float | str
    high: int | float | str
    """The last bin of numbers includes it, others end before it; a bin of dates is one year or one month."""
    documents: int


class FieldReply(Reply):
    """A field of metadata that filters can ask for."""

    name: str
    kind: Literal["number", "text", "boolean", "date", "mixed"]
    distinct: int
    """How many different values it has."""
    values: list[FieldValue]
    """Its commonest values, those of most documents first."""
    histogram: list[FieldBin]
    """Of numbers and dates; a document with several values counts for each."""


class FieldsReply(Reply):
    """The fields of an index."""

    fields: list[FieldReply]


# --- concepts ------------------------------------------------------------------------------------------------------


class ConceptRow(Reply):
    """A concept as one row of a list."""

    id: int
    label: str
    category: str
    frequency: float
    """Share of the texts of the naming pass in which it is active."""
    source: str
    """Who named it: "" for the lexicon's words that raise it, "documents" for those of this index, "user", or a
    language model."""
    form: str
    """The form that it marks, such as punctuation; empty where it is about a topic."""
    documents: int
    """Documents of the index that have it."""


class ConceptsReply(Reply):
    """A page of concepts."""

    lexicon: str
    total: int
    page: int
    concepts: list[ConceptRow]


class RaisingWord(Reply):
    """A word that raises a concept."""

    word: str
    share: float
    """Of all that raises the concept."""
    count: int | None = None
    """How often the word raised it; null where that is not known."""


class ConceptReply(ConceptRow):
    """The details of a concept."""

    plain: str
    """The lexicon's label, made from words, where another was given."""
    former: list[str]
    """Labels that it had before in this index; they still find it."""
    raised_here: list[RaisingWord]
    """Words of this index's documents that raise it, those farthest above chance first."""
    raised_by: list[RaisingWord]
    """Words of the lexicon's own text that raise it, where the lexicon keeps them."""
    lexicon: str
    examples: Sequence[str]
    """Short contexts, the word that raised it in [brackets]."""
    neighbours: list[dict[str, Any]]
    together: list[dict[str, Any]]
    histogram: dict[str, Any]
    top_documents: list[dict[str, Any]]


class QuantilesReply(Reply):
    """Examples of a concept from its strongest to its weakest documents."""

    concept: int
    examples: list[dict[str, Any]]


class LexiconReply(Reply):
    """A lexicon as an index uses it."""

    name: str
    level: str
    encoder: str
    concepts: int
    live: int
    """Concepts that a document has."""
    categories: dict[str, int]
    ranks: list[int]
    documents: list[int]
    """How many documents have the concept of each of the ranks."""


# --- indexes and documents -----------------------------------------------------------------------------------------


class DocumentReply(Reply):
    """A document with its concepts."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any]
    concepts: list[dict[str, Any]]
    tokens: list[dict[str, Any]] | None = None


class IndexReply(Reply):
    """An index that is served."""

    name: str
    documents: int
    concepts: int
    recipe: dict[str, Any]
    generation: int


class IndexesReply(Reply):
    """All indexes that are served."""

    indexes: list[IndexReply]
    default: str
    writable: bool
    max_query: int
    """Characters that a query may have."""


class ChangeReply(Reply):
    """What a change did."""

    documents: int
    generation: int
    added: int = 0
    replaced: int = 0
    deleted: int = 0


class StateReply(Reply):
    """The state of the server."""

    status: str
    version: str
    ready: bool
