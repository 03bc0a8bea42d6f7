"""Why a document has its rank: its exact place, its contributions, and what those above it have more of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent import arguments
from lexent.explain.alignment import Alignment, align
from lexent.explain.contributions import Explanation, bar, explain
from lexent.search.feedback import Learning
from lexent.search.results import QueryConcept
from lexent.search.searcher import Searcher

if TYPE_CHECKING:
    from lexent.engine import Index
    from lexent.search.document_scorer import Masks
    from lexent.search.feedback import Feedback
    from lexent.search.query import Query
    from lexent.search.steering import Steer

SHOWN_CONCEPTS = 8
"""Concepts that the readable form shows of each list."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a concept gives to another document beyond what it gives to this one: value = query * (other - document)."""

    concept: int
    label: str
    query: float
    document: float
    other: float
    value: float
    word: bool = False
    """Whether it is a word of the index and no concept."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A document that ranks higher. The differences sum to the gap."""

    rank: int
    id: str
    title: str
    score: float
    gap: float
    differences: tuple[Difference, ...]
    """Strongest first; positive where the other document has more of a concept, or has one that this one lacks."""

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RankExplanation:
    """Where a document stands for a query, and why not higher."""

    query: str
    id: str
    title: str
    rank: int | None
    """From 1; None when the document shares no concept with the query, and so is not found at all."""
    score: float
    found: int
    """How many documents share a concept with the query."""
    explanation: Explanation
    missing: tuple[QueryConcept, ...]
    """Concepts of the query that the document lacks, strongest first."""
    above: Comparison | None
    """The document one rank higher (the last one found, where this one is not found)."""
    best: Comparison | None
    """The top hit; None for the top hit itself."""
    alignment: Alignment | None = None
    """Token by token, where the recipe matches tokens."""

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        values = asdict(self)
        explanation, alignment = values.pop("explanation"), values.pop("alignment")
        parts = {"contributions": explanation["contributions"], "rest": explanation["rest"]}
        return {**values, **parts, **({"alignment": alignment["tokens"]} if alignment else {})}

    def __str__(self) -> str:
        place = f"rank {self.rank} of {self.found}" if self.rank else "not found: no shared concept"
        lines = [f'"{self.query}": {place}', str(self.explanation.top(SHOWN_CONCEPTS))]
        if self.alignment:
            lines += ["token by token:", *str(self.alignment).splitlines()[1:]]
        if self.missing:
            lines.append("concepts of the query that it lacks:")
            shown = self.missing[:SHOWN_CONCEPTS]
            named = ((one.weight, _name(one.id, one.label, word=one.word)) for one in shown)
            lines += [f"  {weight:8.3f}  {name}" for weight, name in named]
        for other in dict.fromkeys([self.above, self.best]):  # the second hit is compared with the first once
            lines += _compared(other) if other else []
        return "\n".join(lines)


def why(
    index: Index,
    query: str,
    doc_id: str,
    *,
    steer: Steer | None = None,
    feedback: Feedback | int | None = None,
    like: str | Sequence[str] = (),
    unlike: str | Sequence[str] = (),
) -> RankExplanation:
    """The rank of a document for a query, exact however far down, and what keeps it from ranking higher.

    steer, feedback, like, unlike: as the search had them.
    """
    searcher = getattr(index, "searcher", None)
    if not isinstance(searcher, Searcher):
        raise arguments.refused("index", index, "an index: lexent.open(DIR)")
    arguments.text("query", query)
    arguments.text("doc_id", doc_id)
    learning = Learning.of(feedback, like=like, unlike=unlike)
    position = searcher.reader.position(doc_id)
    return why_ranked(searcher, searcher.query(query, steer=steer, learning=learning), position, doc_id)


def why_ranked(
    index: Searcher, weighed: Query, position: int, doc_id: str, *, allowed: Masks | None = None
) -> RankExplanation:
    """The same for a searcher and a query with its final weights. position: of any passage of the document.

    allowed: the documents that are ranked; None for all. One that is not among them has no rank.
    """
    scores, matched = index.scores(weighed)
    if allowed is not None:
        matched = matched & np.concatenate(allowed)
    hits = np.flatnonzero(matched)
    order = index.in_documents(hits[np.lexsort((hits, -scores[hits]))])
    position = best_passage(index, weighed, position)
    places = np.flatnonzero(order == position)
    place = int(places[0]) if len(places) else len(order)
    score = float(scores[position])
    own = index.document_scorer.document_weights(position, weighed.ids)

    def compared(other: int) -> Comparison | None:
        return _comparison(index, weighed, position, order, other, scores) if place else None

    return RankExplanation(
        query=weighed.text,
        id=doc_id,
        title=index.reader.at([position])[0].title,
        rank=place + 1 if len(places) else None,
        score=score,
        found=len(order),
        explanation=explain(index, weighed, position, id=doc_id, score=score),
        missing=tuple(concept for concept in index.concepts(weighed) if own[weighed.ids == concept.id] == 0),
        above=compared(place - 1),
        best=compared(0),
        alignment=align(index, weighed, position, id=doc_id, score=score) if weighed.rows else None,
    )


def best_passage(index: Searcher, query: Query, position: int) -> int:
    """The position of the best passage of a document; its first one where none shares a concept with the query."""
    run = index.reader.run(position)
    best = index.best_passages(query, position) if len(run) > 1 else ()
    return best[0][0] if best else run.start


def _comparison(
    index: Searcher, query: Query, position: int, order: np.ndarray, place: int, scores: np.ndarray
) -> Comparison:
    other = int(order[place])
    document = index.reader.at([other])[0]
    mine, my_values = index.contributions(query, position)
    theirs, their_values = index.contributions(query, other)
    sides = (query.ids, query.weights, mine, theirs, their_values - my_values)
    differences = [
        Difference(concept, index.label(concept), weight, ours, other, value, index.is_word(concept))
        for concept, weight, ours, other, value in zip(*(side.tolist() for side in sides), strict=True)
        if ours != other
    ]
    differences.sort(key=lambda difference: (-abs(difference.value), difference.concept))
    return Comparison(
        rank=place + 1,
        id=document.id,
        title=document.title,
        score=float(scores[other]),
        gap=float(scores[other] - scores[position]),
        differences=tuple(differences),
    )


def _name(concept: int, label: str, *, word: bool) -> str:
    """A concept with its number; a word in quotation marks."""
    return f'"{label}"' if word else f"#{concept} {label}"


def _compared(other: Comparison) -> list[str]:
    longest = max((abs(difference.value) for difference in other.differences), default=0.0)
    lines = [f"rank {other.rank}, {other.id}, scores {other.gap:.3f} more ({other.score:.3f}):"]
    for difference in other.differences[:SHOWN_CONCEPTS]:
        name = _name(difference.concept, difference.label, word=difference.word)
        has = f"it has {difference.other:.3f}, this one {difference.document:.3f}"
        lines.append(f"  {bar(difference.value, longest)} {difference.value:+8.3f}  {name}  ({has})")
    left = other.differences[SHOWN_CONCEPTS:]
    if left:
        lines.append(f"  {'':{len(bar(1, 1))}} {sum(difference.value for difference in left):+8.3f}  {len(left)} more")
    return lines
