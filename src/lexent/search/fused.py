"""Concepts and words together: hits of an index whose scores are the fused parts of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from lexent import arguments
from lexent.errors import InputError, NotFoundError
from lexent.search.fusion import WEIGHTS, Fused, Fusion, Method, Part, fuse
from lexent.search.matching import DocumentMatch, Matcher
from lexent.search.results import AddedConcept, Ranked

if TYPE_CHECKING:
    from lexent.explain.contributions import Explanation
    from lexent.search.query import Query
    from lexent.search.searcher import Masks
    from lexent.search.view import Prepared, View

SIDES = ("bm25",)
"""What an index's concepts can be fused with."""
FUSED_DOCUMENTS = 1000
"""Documents of each ranking that are fused; scores are calibrated over them."""


@dataclass(frozen=True, slots=True)
class FusedHit:
    """A document that was found by concepts, by words or by both. The values of its parts sum to its score."""

    rank: int
    id: str
    score: float
    title: str
    text: str
    metadata: Mapping[str, Any]
    parts: tuple[Part, ...]
    """What each ranking that found it gave; a ranking that did not find it gives nothing."""
    reasons: Mapping[str, Explanation] = field(repr=False, compare=False)
    """Each part's own score as contributions: of concepts, or of words."""

    def to_dict(self, *, contributions: int | None = None) -> dict[str, Any]:
        """As JSON has it. contributions: at most this many of each part; the others are summed in its "rest"."""
        arguments.whole_or_none("contributions", contributions, least=0)
        parts = []
        for part in self.parts:
            reason = self.reasons[part.name] if contributions is None else self.reasons[part.name].top(contributions)
            own = [asdict(one) for one in reason.contributions]
            parts.append({**asdict(part), "contributions": own, "rest": reason.rest})
        return {
            "rank": self.rank,
            "id": self.id,
            "score": self.score,
            "title": self.title,
            "text": self.text,
            "metadata": dict(self.metadata),
            "parts": parts,
        }


@dataclass(frozen=True, slots=True)
class FusedResults(Ranked[FusedHit]):
    """The hits of one query, best first."""

    query: str
    method: str
    hits: tuple[FusedHit, ...]
    added: tuple[AddedConcept, ...] = ()
    """What feedback changed of the query's concepts, strongest first; empty without feedback."""

    def to_dict(self, *, contributions: int | None = None) -> dict[str, Any]:
        """As JSON has it. contributions: at most this many of each part; the others are summed in its "rest"."""
        arguments.whole_or_none("contributions", contributions, least=0)
        return {
            "query": self.query,
            "method": self.method,
            "added": [concept.to_dict() for concept in self.added],
            "hits": [hit.to_dict(contributions=contributions) for hit in self.hits],
        }


def search(
    view: View, prepared: Prepared, *, k: int, sides: Mapping[str, float | None], method: Method
) -> FusedResults:
    """The k best documents for the one prepared query, by its concepts and by the other sides that are named."""
    arguments.whole("k", k, least=1)
    arguments.choice("fusion", method, get_args(Method))
    for name in sides:
        if name not in SIDES:
            raise NotFoundError(f'an index cannot be fused with "{name}"; allowed: {", ".join(SIDES)}')
    if not sides:
        raise InputError(f"there is nothing to fuse the concepts with; name one: {', '.join(SIDES)}")
    query, words = prepared.queries[0], view.lexical().query(prepared.queries[0].text)
    own = view.recipe.name
    rankings = {
        own: _ranking(view.matcher, query, prepared.allowed),
        "bm25": _ranking(DocumentMatch(view.lexical().searcher), words, prepared.allowed),
    }
    weights = {name: WEIGHTS[method].get(name, 1.0) if weight is None else weight for name, weight in sides.items()}
    best = fuse(rankings, Fusion(method, weights), depth=k)

    def reasons(one: Fused[int], id: str) -> dict[str, Explanation]:
        found = {}
        for part in one.parts:
            index, asked = (view, query) if part.name == own else (view.lexical(), words)
            found[part.name] = view.explainer.contributions(index, asked, one.key, id=id, score=part.score)
        return found

    documents = view.documents.at([one.key for one in best])
    hits = [
        FusedHit(
            rank=rank,
            id=document.id,
            score=one.score,
            title=document.title,
            text=document.text,
            metadata=document.metadata,
            parts=one.parts,
            reasons=reasons(one, document.id),
        )
        for rank, (one, document) in enumerate(zip(best, documents, strict=True), start=1)
    ]
    return FusedResults(query=query.text, method=method, hits=tuple(hits), added=prepared.added[0])


def _ranking(matcher: Matcher, query: Query, allowed: Masks | None) -> list[tuple[int, float]]:
    found = matcher.top([query], FUSED_DOCUMENTS, allowed=allowed)
    places = np.flatnonzero(found.positions[0] >= 0)
    return list(zip(found.positions[0][places].tolist(), found.scores[0][places].tolist(), strict=True))
