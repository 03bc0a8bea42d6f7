"""What is answered, for the OpenAPI document. Answers are written straight to JSON; tests hold them to these shapes."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Problem(BaseModel):
    """Every error, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
    """What was given, what is allowed and what to do."""
    errors: list[dict[str, str]] | None = None
    """422 only: each place of the request that cannot be used."""


class NamedConcept(BaseModel):
    """A concept and its label."""

    id: int
    label: str


class WeighedConcept(NamedConcept):
    """A concept of a query and its weight."""

    weight: float


class AddedConcept(WeighedConcept):
    """A concept that relevance feedback added to a query."""

    own: float
    documents: list[str]


class Contribution(BaseModel):
    """value = query * document."""

    concept: int
    label: str
    query: float
    document: float
    value: float


class Piece(BaseModel):
    """A token, and the word that it is a piece of; places count from the start of title, a space, text."""

    token: str
    word: str
    start: int
    stop: int


class AlignedToken(BaseModel):
    """A token of the query and the document's token that is most like it."""

    kind: str
    query: Piece
    weight: float
    document: Piece | None
    value: float
    concepts: list[Contribution]
    rest: float
    left_out: int


class Hit(BaseModel):
    """A document that was found."""

    rank: int
    id: str
    score: float
    title: str
    text: str
    metadata: dict[str, Any]
    contributions: list[Contribution] | None = None
    """Strongest first; with the rest they sum to the score."""
    rest: float | None = None
    alignment: list[AlignedToken] | None = None
    """For recipes that match tokens; the values sum to the score too."""


class SearchReply(BaseModel):
    """The reply to a search."""

    query: str
    approximate: bool
    """Whether a document that scores higher may have been missed; the scores themselves are exact."""
    concepts: list[WeighedConcept]
    """What the query was searched by, strongest first, after idf and steering."""
    added: list[AddedConcept]
    hits: list[Hit]
    generation: int
    """Of the index; it counts the changes."""
    took_ms: float


class TokenShare(BaseModel):
    """The share of a concept that a token raised."""

    token: str
    start: int
    stop: int
    share: float


class Shares(BaseModel):
    """The tokens of a text that raised a concept."""

    pooled: float
    tokens: list[TokenShare]


class ConceptTokens(BaseModel):
    """The words behind a concept, on both sides of a hit; places count from the start of title, a space, text."""

    concept: int
    label: str
    query: Shares
    document: Shares


class ConceptShares(Shares):
    """A concept and the tokens that raised it."""

    concept: int
    label: str


class DocumentWords(BaseModel):
    """The words behind the concepts of a document."""

    id: str
    concepts: list[ConceptShares]


class Difference(BaseModel):
    """What a concept adds to two documents."""

    concept: int
    label: str
    query: float
    document: float
    other: float
    value: float


class Comparison(BaseModel):
    """A document that ranks higher, and why."""

    rank: int
    id: str
    title: str
    score: float
    gap: float
    differences: list[Difference]


class ExplainReply(BaseModel):
    """The reply to an explanation."""

    query: str
    id: str
    title: str
    rank: int | None
    found: int
    score: float
    contributions: list[Contribution]
    rest: float
    missing: list[WeighedConcept]
    above: Comparison | None
    best: Comparison | None
    tokens: list[ConceptTokens]
    alignment: list[AlignedToken] | None = None


class WordsReply(BaseModel):
    """The words behind the concepts of a query and of documents."""

    query: list[ConceptShares]
    documents: list[DocumentWords]


class RankedDocument(BaseModel):
    """A document that a system found."""

    rank: int
    id: str
    score: float
    title: str
    metadata: dict[str, Any]


class System(BaseModel):
    """A system and its hits."""

    name: str
    kind: str
    about: str
    hits: list[RankedDocument]
    missing: str | None = None
    """Why there are no hits, and what to do; null where the system could be asked."""
    took_ms: float


class CompareReply(BaseModel):
    """The reply to a comparison."""

    query: str
    systems: list[System]


class ConceptRow(NamedConcept):
    """A concept as one row of a list."""

    category: str
    frequency: float
    documents: int
    source: str
    """Who named it: "" for the words that raise it, "user", or a language model."""


class ConceptsReply(BaseModel):
    """A page of concepts."""

    lexicon: str
    total: int
    page: int
    concepts: list[ConceptRow]


class ConceptReply(ConceptRow):
    """The details of a concept."""

    plain: str
    lexicon: str
    examples: list[str]
    neighbours: list[dict[str, Any]]
    together: list[dict[str, Any]]
    histogram: dict[str, Any]
    top_documents: list[dict[str, Any]]


class QuantilesReply(BaseModel):
    """Examples of a concept from its strongest to its weakest documents."""

    concept: int
    examples: list[dict[str, Any]]


class LexiconReply(BaseModel):
    """A lexicon as an index uses it."""

    name: str
    level: str
    encoder: str
    concepts: int
    live: int
    categories: dict[str, int]
    ranks: list[int]
    documents: list[int]


class DocumentReply(BaseModel):
    """A document with its concepts."""

    id: str
    title: str
    text: str
    metadata: dict[str, Any]
    concepts: list[dict[str, Any]]
    tokens: list[dict[str, Any]] | None = None


class IndexReply(BaseModel):
    """An index that is served."""

    name: str
    documents: int
    concepts: int
    recipe: dict[str, Any]
    generation: int


class IndexesReply(BaseModel):
    """All indexes that are served."""

    indexes: list[IndexReply]
    default: str
    writable: bool


class ChangeReply(BaseModel):
    """What a change did."""

    added: int = 0
    replaced: int = 0
    deleted: int = 0
    documents: int
    generation: int


class StateReply(BaseModel):
    """The state of the server."""

    status: str
    version: str
    ready: bool
