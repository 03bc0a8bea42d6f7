"""A MaxSim score as an alignment: each token of the query, the document's token most like it, what the two share."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lexent import arguments
from lexent.errors import InputError
from lexent.explain.contributions import bar
from lexent.indexing.postings.quantisation import LINEAR_STEPS
from lexent.search.coded_text import WHOLE_TEXT, places, word_at, words
from lexent.search.maxsim_scorer import Aligned
from lexent.search.query import ADDED_CONCEPT_ROW, WHOLE_TEXT_ROW, Query, QueryRows
from lexent.types import Contribution, Tokens, TokenShare

if TYPE_CHECKING:
    from lexent.indexing.passages import PassageText
    from lexent.search.searcher import Searcher

SHOWN_CONCEPTS = 3
"""Concepts that the readable form shows of each pair."""
RowKind = Literal["token", "whole", "added"]
_KINDS: dict[int, RowKind] = {WHOLE_TEXT_ROW: "whole", ADDED_CONCEPT_ROW: "added"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A token of a text: as its encoder has it, the word that it is a piece of, and where the token stands.

    Places in a document count from the start of its `content`; special tokens and whole texts have none (0 to 0).
    """

    token: str
    word: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class AlignedToken:
    """One token of a query and what it found. The concepts' values and the rest sum to the value."""

    kind: RowKind
    """A token; the text as a whole, which only meets a document as a whole; or a concept that steering added."""
    query: Piece
    weight: float
    """How much the token counts, before idf and steering of its concepts."""
    document: Piece | None
    """The document's token that is most like it; None where it shares nothing with any."""
    value: float
    concepts: tuple[Contribution, ...]
    """What the two share, strongest first."""
    rest: float
    """The sum of the concepts that were left out."""
    left_out: int

    def top(self, n: int) -> AlignedToken:
        """The n strongest concepts; the others are summed in the rest."""
        n = arguments.whole("n", n, least=0)
        kept, others = self.concepts[:n], self.concepts[n:]
        rest = self.rest + sum(part.value for part in others)
        return replace(self, concepts=kept, rest=rest, left_out=self.left_out + len(others))

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Why a document has its score: the values of the query's tokens, in their order, sum to it."""

    id: str
    score: float
    tokens: tuple[AlignedToken, ...]

    def top(self, n: int) -> Alignment:
        """The n strongest concepts of each pair; the others go into its rest."""
        arguments.whole("n", n, least=0)
        return replace(self, tokens=tuple(token.top(n) for token in self.tokens))

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        longest = max((abs(token.value) for token in self.tokens), default=0.0)
        left = max((len(token.query.token) for token in self.tokens), default=0)
        right = max((len(token.document.token) for token in self.tokens if token.document), default=0)
        lines = [f"{self.id}  {self.score:.3f}"]
        for token in self.tokens:
            found = token.document.token if token.document else ""
            shared = [f"#{part.concept} {part.label} {part.value:.3f}" for part in token.concepts]
            more = [f"{len(shared) - SHOWN_CONCEPTS} more"] if len(shared) > SHOWN_CONCEPTS else []
            line = f"  {token.query.token:>{left}} > {found:{right}}  {bar(token.value, longest)} {token.value:8.3f}"
            lines.append(f"{line}  {', '.join(shared[:SHOWN_CONCEPTS] + more)}".rstrip())
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class AlignedText:
    """A passage with what the tokens of a query found in each of its own."""

    passage: PassageText
    text: str
    """What was encoded of it."""
    tokens: Tokens
    rows: QueryRows
    found: Aligned
    whole: bool
    """Whether the text as a whole is matched too, after its tokens."""

    @staticmethod
    def of(index: Searcher, query: Query, position: int) -> AlignedText:
        """Aligns a query with the document at `position`."""
        if index.maxsim is None or query.rows is None:
            raise InputError(
                f'the recipe "{index.recipe.name}" compares whole documents, not tokens, so there is nothing to align; '
                "recipes that match tokens: ssr, ssr-cls"
            )
        passage = index.reader.passages([position])[0]
        text = passage.content
        tokens = index.encoder.tokenize([text], kind="document", specials=index.recipe.specials)[0]
        found = index.maxsim.align(query, position)
        return AlignedText(passage, text, tokens, query.rows, found, index.recipe.whole > 0)

    @property
    def places(self) -> list[tuple[str, int, int]]:
        """The word that each row of the document stands in, with its place in the text."""
        return places(self.text, self.tokens, len(self.tokens) + self.whole, whole=self.whole)

    def piece(self, row: int) -> Piece:
        """A token, with its place in the content of the document."""
        found = _piece(self.text, self.tokens, row)
        start, stop = self.passage.place_in_content(found.start, found.stop)
        return replace(found, start=start, stop=stop)

    def shares(self, concept: int | None = None) -> tuple[TokenShare, ...]:
        """What the query found in each word, strongest first; of one concept, or of all."""
        heat: NDArray[np.float64] = np.zeros(len(self.tokens) + self.whole)
        owners = np.repeat(self.found.best, np.diff(self.rows.offsets))
        kept = (owners >= 0) & (owners < len(heat))  # a damaged store may hold rows that the text has not
        if concept is not None:
            kept &= self.rows.ids == concept
        np.add.at(heat, owners[kept], self.found.contributions[kept] / self.found.divisor)
        return words(self.places, heat)


def align(index: Searcher, query: Query, position: int, *, id: str, score: float) -> Alignment:
    """The alignment of a query with the document at `position`, whose score for it is known."""
    aligned = AlignedText.of(index, query, position)
    found, rows = aligned.found, aligned.rows
    query_tokens = index.encoder.tokenize([query.text], kind="query", specials=index.recipe.specials)[0]
    made = []
    for row, token in enumerate(rows.tokens.tolist()):
        part = slice(rows.offsets[row], rows.offsets[row + 1])
        concepts = _concepts(index, rows, found, part)
        kind = _KINDS.get(token, "token")
        if kind == "added":
            own = rows.ids[part].tolist()  # none where the recipe prunes it
            label = index.lexicon.label(own[0]) if own else ""
            ours = Piece(label, label, 0, 0)
        else:
            ours = _piece(query.text, query_tokens, len(query_tokens) if kind == "whole" else token)
        made.append(
            AlignedToken(
                kind=kind,
                query=ours,
                weight=float(rows.strengths[row]),
                document=aligned.piece(int(found.best[row])) if concepts else None,
                value=int(found.contributions[part].sum()) / found.divisor,
                concepts=concepts,
                rest=0.0,
                left_out=0,
            )
        )
    return Alignment(id, score, tuple(made))


def _concepts(index: Searcher, rows: QueryRows, found: Aligned, part: slice) -> tuple[Contribution, ...]:
    """The concepts of a row of the query, which are at `part`, and of the document's row that it found."""
    sides = (rows.ids, rows.weights, found.codes, found.contributions)
    shared = [
        Contribution(concept, index.lexicon.label(concept), weight, code / LINEAR_STEPS, value / found.divisor)
        for concept, weight, code, value in zip(*(side[part].tolist() for side in sides), strict=True)
        if code
    ]
    return tuple(sorted(shared, key=lambda one: (-abs(one.value), one.concept)))


def _piece(text: str, tokens: Tokens, place: int) -> Piece:
    if place >= len(tokens):  # a row after the last token is the text as a whole
        return Piece(WHOLE_TEXT, WHOLE_TEXT, 0, 0)
    start, stop = (int(edge) for edge in tokens.spans[place])
    return Piece(tokens.strings[place], word_at(text, tokens, place), start, stop)
