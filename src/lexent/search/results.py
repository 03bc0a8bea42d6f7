"""What a search gives back. Every hit can explain itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from lexent.explain.alignment import Alignment
    from lexent.explain.attribution import ConceptTokens
    from lexent.explain.contributions import Explanation
    from lexent.search.query import Query
    from lexent.search.view import View

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueryConcept:
    """A concept of a query, with its weight after idf and steering."""

    id: int
    label: str
    weight: float

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "label": self.label, "weight": self.weight}


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

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "documents": list(self.documents)}

    def __str__(self) -> str:
        done = "added" if self.own == 0 else "raised" if self.weight > 0 else "lowered"
        return f"{done} {self.label} ({abs(self.weight):.2f}) from {', '.join(self.documents)}"


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found."""

    rank: int
    id: str
    score: float
    title: str
    text: str
    metadata: Mapping[str, Any]
    position: int = field(repr=False)
    """Where the document stands in its index."""
    query: Query = field(repr=False, compare=False)
    index: View = field(repr=False, compare=False)

    def explain(self, top: int | None = None) -> Explanation:
        """The score as named contributions, strongest first; with `top`, the others are summed in its rest."""
        from lexent.explain.contributions import explain

        explanation = explain(self.index, self.query, self.position, id=self.id, score=self.score)
        return explanation if top is None else explanation.top(top)

    def tokens(self, concept: str | int) -> ConceptTokens:
        """Which words of the query and of this document raised a concept. Encodes both again."""
        from lexent.explain.attribution import tokens

        return tokens(self, concept)

    def align(self) -> Alignment:
        """The score token by token, for recipes that match tokens: what each token of the query found, and where."""
        from lexent.explain.alignment import align

        return align(self.index, self.query, self.position, id=self.id, score=self.score)

    def to_dict(self, *, contributions: int | None = None) -> dict[str, Any]:
        explanation = self.explain(contributions)
        found: dict[str, Any] = {
            "rank": self.rank,
            "id": self.id,
            "score": self.score,
            "title": self.title,
            "text": self.text,
            "contributions": [asdict(part) for part in explanation.contributions],
            "rest": explanation.rest,
        }
        if self.query.rows is not None:
            alignment = self.align() if contributions is None else self.align().top(contributions)
            found["alignment"] = alignment.to_dict()["tokens"]
        return found


@dataclass(frozen=True, slots=True)
class DenseHit:
    """A document that the encoder's own vectors found: its score is their cosine, and has no parts."""

    rank: int
    id: str
    score: float
    title: str
    text: str
    metadata: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"rank": self.rank, "id": self.id, "score": self.score, "title": self.title, "text": self.text}


class Ranked(Sequence[T]):
    """Hits, best first: their sequence is that of `hits`."""

    __slots__ = ()
    hits: tuple[T, ...]

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


@dataclass(frozen=True, slots=True)
class Results(Ranked[Hit]):
    """The hits of one query, best first, and the concepts that it was searched by, strongest first."""

    query: str
    concepts: tuple[QueryConcept, ...]
    hits: tuple[Hit, ...]
    added: tuple[AddedConcept, ...] = ()
    """What feedback changed of the concepts, strongest first; empty without feedback."""
    approximate: bool = False
    """Whether a document that scores higher may have been missed: in the fast mode. The scores themselves are exact."""

    def to_dict(self, *, contributions: int | None = None) -> dict[str, Any]:
        """As JSON has it. contributions: at most this many a hit; the others are summed in its "rest"."""
        return {
            "query": self.query,
            "approximate": self.approximate,
            "concepts": [concept.to_dict() for concept in self.concepts],
            "added": [concept.to_dict() for concept in self.added],
            "hits": [hit.to_dict(contributions=contributions) for hit in self.hits],
        }
