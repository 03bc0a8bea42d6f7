"""What a search gives back. Every hit can explain itself, by the explainer of the index that found it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, overload

from lexent import arguments
from lexent.search import notebook
from lexent.search.detached import DetachedIndex
from lexent.types import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lexent.explain.alignment import Alignment
    from lexent.explain.attribution import ConceptTokens
    from lexent.explain.contributions import Explanation
    from lexent.explain.word_pairs import WordExplanation
    from lexent.indexing.passages import PassageText
    from lexent.search.groups import ConceptGroup, Line
    from lexent.search.query import Query
    from lexent.search.searcher import Searcher

T = TypeVar("T")
SHOWN_PASSAGES = 3
"""Passages of a document that a hit has."""
SHOWN_TITLE_CHARS = 60
SHOWN_LINES = 3
"""Groups that the readable form shows of a hit."""
SharedTerm = tuple[int, float, float, float]
"""A term that a query and a document share: its number, both weights, and what it adds to the score."""


@dataclass(frozen=True, slots=True)
class QueryConcept:
    """A concept of a query, with its weight after idf and steering."""

    id: int
    label: str
    weight: float
    word: bool = False
    """Whether it is a word of the index and no concept."""

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AddedConcept:
    """A concept whose weight in a query was changed by feedback."""

    id: int
    label: str
    weight: float
    """What was added; negative where it was taken away, for documents marked as not wanted."""
    own: float
    """What the query gave it before; 0 where it is new."""
    documents: tuple[str, ...]
    """The ids of the documents that it came from, those that have most of it first."""
    word: bool = False
    """Whether it is a word of the index and no concept."""

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return {**asdict(self), "documents": list(self.documents)}

    def __str__(self) -> str:
        done = "added" if self.own == 0 else "raised" if self.weight > 0 else "lowered"
        return f"{done} {self.label} ({abs(self.weight):.2f}) from {', '.join(self.documents)}"


@dataclass(frozen=True, slots=True)
class SteeredConcept:
    """A concept that steering moved."""

    id: int
    label: str
    factor: float
    """What its weight was multiplied by: the product of all factors whose names mean it."""
    before: float
    """Its weight in the query without steering; 0 where the query lacks it."""
    after: float
    """Its weight with it, before feedback; 0 where it is off, or where the recipe prunes it."""
    word: bool = False
    """Whether it is a word of the index and no concept."""

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.label} × {self.factor:g}: {self.before:.2f} to {self.after:.2f}"


class Scored(Protocol):
    """Documents whose scores are sums over a query's terms: the concepts of an index, or its words."""

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """For each of the query's terms the document's weight, and what the term adds to its score: exact."""
        ...

    def named(self, terms: Sequence[int]) -> list[tuple[str, bool]]:
        """The name of each term, and whether it is a word."""
        ...

    def lines(self, query: Query, position: int, terms: Sequence[SharedTerm]) -> Sequence[Line]:
        """The terms that a query and a document share, by groups of one meaning; none where terms have no groups."""
        ...


class Explainer(Protocol):
    """Explains hits. `lexent.explain` implements it, a layer above; whoever makes a searcher passes it in."""

    def contributions(self, index: Scored, query: Query, position: int, *, id: str, score: float) -> Explanation:
        """The score of the document at `position` as named contributions, strongest first."""
        ...

    def tokens(self, hit: Hit, concept: str | int) -> ConceptTokens:
        """The words of the query and of the document that raised a concept."""
        ...

    def words(self, hit: Hit) -> WordExplanation:
        """The score by pairs of words."""
        ...

    def alignment(self, index: Searcher, query: Query, position: int, *, id: str, score: float) -> Alignment:
        """A MaxSim score, token by token."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class RankedDocument:
    """A document with its rank and its score."""

    rank: int
    id: str
    score: float
    title: str
    text: str
    metadata: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        found = {"rank": self.rank, "id": self.id, "score": self.score, "title": self.title, "text": self.text}
        return {**found, "metadata": dict(self.metadata)}

    @property
    def text_start(self) -> int:
        """Where the text begins in what words of the document count their places from: its `content`."""
        return Document(self.id, self.text, self.title).text_start

    def __repr__(self) -> str:
        title = self.title or notebook.start(self.text)[:SHOWN_TITLE_CHARS]
        return f"{type(self).__name__}({self.rank}, {self.id!r}, {self.score:.3f}, {title!r})"

    def __str__(self) -> str:
        return f"{self.rank:3}  {self.score:8.3f}  {self.id}  {self.title}".rstrip()

    def table_row(self) -> dict[str, object]:
        """What a table of results shows of it, by column."""
        found: dict[str, object] = {"rank": self.rank, "score": f"{self.score:.3f}", "id": self.id}
        return {**found, "title": self.title, "text": notebook.start(self.text)}


@dataclass(frozen=True, slots=True, repr=False)
class DenseHit(RankedDocument):
    """A document that the encoder's own vectors found: its score is their cosine, and has no parts."""


@dataclass(frozen=True, slots=True, repr=False)
class Hit(RankedDocument):
    """A document that was found.

    It explains itself by the index that found it, which must be open. A pickled hit keeps its values and its strength,
    and no more.
    """

    position: int = field(repr=False)
    """Where the document's best passage stands in its index; the score and the explanations are of this passage."""
    query: Query = field(repr=False, compare=False)
    index: Searcher = field(repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, one.name) for one in fields(self)]
        if not self.is_detached:
            detached = DetachedIndex(self.index.path, self.query.text, self.strength)
            values = [detached if value is self.index else value for value in values]
        return type(self), tuple(values)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    @property
    def is_detached(self) -> bool:
        """Whether it was pickled, so that nothing can be explained."""
        return isinstance(self.index, DetachedIndex)

    @property
    def strength(self) -> float:
        """From 0 to 1, the same for every query: 0 is what words thrown together get, 1 what a passage of it would."""
        return self.index.strength(self.query, self.score)

    @property
    def passages(self) -> tuple[PassageHit, ...]:
        """The best passages of the document, at most three: where they stand in its text, and why they were found."""
        return tuple(self.index.passage_hits(self.query, self._best_passages()))

    def places(self) -> list[dict[str, Any]]:
        """Where the best passages stand in the text of the document, and their scores; without texts, for JSON."""
        if len(self.index.reader.run(self.position)) > 1:
            return [place for passage in self.passages for place in passage.places()]
        return [{"number": 0, "count": 1, "start": 0, "stop": len(self.text), "headings": [], "score": self.score}]

    def _best_passages(self) -> list[tuple[int, float]]:
        own = [(self.position, self.score)]
        if len(self.index.reader.run(self.position)) == 1:
            return own
        best = self.index.best_passages(self.query, self.position, SHOWN_PASSAGES)
        return own + [one for one in best if one[0] != self.position][: SHOWN_PASSAGES - 1]

    def explain(self, top: int | None = None) -> Explanation:
        """The score as named contributions, strongest first; with `top`, the others are summed in its rest."""
        arguments.whole_or_none("top", top, least=0)
        explainer = self.index.explainer
        explanation = explainer.contributions(self.index, self.query, self.position, id=self.id, score=self.score)
        return explanation if top is None else explanation.top(top)

    def words(self) -> WordExplanation:
        """The score by pairs of words: how much each word of the query got from which words of this document.

        For recipes that code tokens. Encodes the document again.
        """
        return self.index.explainer.words(self)

    def tokens(self, concept: str | int) -> ConceptTokens:
        """Which words of the query and of this document raised a concept. Encodes both again."""
        return self.index.explainer.tokens(self, concept)

    def align(self) -> Alignment:
        """The score token by token, for recipes that match tokens: what each token of the query found, and where."""
        explainer = self.index.explainer
        return explainer.alignment(self.index, self.query, self.position, id=self.id, score=self.score)

    def __str__(self) -> str:
        if self.is_detached:
            return RankedDocument.__str__(self)
        return f"{RankedDocument.__str__(self)}\n{'':15}{', '.join(self._strongest_lines())}"

    def table_row(self) -> dict[str, object]:
        """What a table of results shows of it, by column: with its strength, and its strongest lines."""
        found: dict[str, object] = {"rank": self.rank, "strength": f"{self.strength:.2f}"}
        found |= RankedDocument.table_row(self)
        return found if self.is_detached else {**found, "why": self._strongest_lines()}

    def _strongest_lines(self) -> list[str]:
        return [f"{group.label} {group.value:.2f}" for group in self.explain().groups[:SHOWN_LINES]]

    def to_dict(self, *, contributions: int | None = None) -> dict[str, Any]:
        """As JSON has it. contributions: at most this many; the others are summed in "rest".

        A pickled hit has its values and its strength alone.
        """
        if self.is_detached:
            return {**RankedDocument.to_dict(self), "strength": self.strength}
        explanation = self.explain(arguments.whole_or_none("contributions", contributions, least=0))
        parts = [asdict(part) for part in explanation.contributions]
        groups = [group.to_dict() for group in explanation.groups]
        found = {
            **RankedDocument.to_dict(self),
            "strength": self.strength,
            "passages": self.places(),
            "groups": groups,
            "contributions": parts,
            "rest": explanation.rest,
        }
        if self.query.rows is not None:
            alignment = self.align() if contributions is None else self.align().top(contributions)
            found["alignment"] = alignment.to_dict()["tokens"]
        return found


@dataclass(frozen=True, slots=True, repr=False)
class PassageHit(Hit):
    """A passage that was found: `text` is its own, `id`, `title` and `metadata` are those of its document."""

    number: int
    """Among the passages of its document, from 0."""
    count: int
    """Passages of its document."""
    start: int
    """Where it begins in the text of its document, in characters."""
    stop: int
    headings: tuple[str, ...]
    """The headings above it, outermost first."""

    @property
    def text_start(self) -> int:
        """Where the text begins in the `content` of its document."""
        return self.index.reader.at([self.position])[0].text_start + self.start

    @property
    def before(self) -> PassageText | None:
        """The passage before it in its document; None for the first one."""
        return self.index.reader.passages([self.position - 1])[0] if self.number else None

    @property
    def after(self) -> PassageText | None:
        """The passage after it in its document; None for the last one."""
        return self.index.reader.passages([self.position + 1])[0] if self.number + 1 < self.count else None

    def places(self) -> list[dict[str, Any]]:
        """Where the passage stands in the text of its document, and its score."""
        names = ("number", "count", "start", "stop", "headings", "score")
        found = {name: getattr(self, name) for name in names}
        return [{**found, "headings": list(self.headings)}]


class Ranked(Sequence[T]):
    """Hits, best first: their sequence is that of `hits`."""

    __slots__ = ()
    query: str
    hits: tuple[T, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.query!r}, {self._count()})"

    def __str__(self) -> str:
        return "\n".join([f'"{self.query}": {self._count()}', *map(str, self.hits)])

    def _repr_html_(self) -> str:
        rows = (hit.table_row() for hit in self.hits if isinstance(hit, RankedDocument))
        return notebook.table(f'"{self.query}": {self._count()}', rows)

    def _count(self) -> str:
        return "1 hit" if len(self.hits) == 1 else f"{len(self.hits):,} hits"

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[T]:
        return iter(self.hits)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        return self.hits[place]


@dataclass(frozen=True, slots=True, repr=False)
class Results(Ranked[Hit]):
    """The hits of one query, best first, and the concepts that it was searched by, strongest first."""

    query: str
    concepts: tuple[QueryConcept, ...]
    hits: tuple[Hit, ...]
    added: tuple[AddedConcept, ...] = ()
    """What feedback changed of the concepts, strongest first; empty without feedback."""
    approximate: bool = False
    """Whether a document that scores higher may have been missed: in the fast mode. The scores themselves are exact."""
    steered: tuple[SteeredConcept, ...] = ()
    """The concepts that steering moved, the most moved first; empty without steering."""

    @property
    def groups(self) -> tuple[ConceptGroup, ...]:
        """The concepts by groups of those that say the same, strongest first, those of form last.

        None without hits, or where they were pickled.
        """
        first = self.hits[0] if self.hits else None
        return () if first is None or first.is_detached else first.index.groups(first.query).groups

    def to_dict(self, *, contributions: int | None = None) -> dict[str, Any]:
        """As JSON has it. contributions: at most this many a hit; the others are summed in its "rest"."""
        arguments.whole_or_none("contributions", contributions, least=0)
        return {
            "query": self.query,
            "approximate": self.approximate,
            "groups": [group.to_dict() for group in self.groups],
            "concepts": [concept.to_dict() for concept in self.concepts],
            "added": [concept.to_dict() for concept in self.added],
            "steered": [concept.to_dict() for concept in self.steered],
            "hits": [hit.to_dict(contributions=contributions) for hit in self.hits],
        }
