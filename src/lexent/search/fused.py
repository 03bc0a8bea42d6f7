"""Concepts and words together: hits of an index whose scores are the fused parts of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from lexent import arguments
from lexent.errors import InputError, NotFoundError
from lexent.search.fusion import WEIGHTS, Fused, Fusion, Method, Part, fuse
from lexent.search.results import AddedConcept, Ranked, RankedDocument

if TYPE_CHECKING:
    from lexent.explain.contributions import Explanation
    from lexent.search.document_scorer import TopDocuments
    from lexent.search.searcher import Prepared, Searcher

SIDES = ("bm25",)
"""What an index's concepts can be fused with."""
FUSED_DOCUMENTS = 1000
"""Documents of each ranking that are fused; scores are calibrated over them."""


@dataclass(frozen=True, slots=True)
class FusedHit(RankedDocument):
    """A document that was found by concepts, by words or by both. The values of its parts sum to its score."""

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
        return {**RankedDocument.to_dict(self), "parts": parts}


@dataclass(frozen=True, slots=True, repr=False)
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
    searcher: Searcher, prepared: Prepared, *, k: int, sides: Mapping[str, float | None], method: Method
) -> FusedResults:
    """The k best documents for the one prepared query, by its concepts and by the other sides that are named."""
    arguments.whole("k", k, least=1)
    arguments.choice("fusion", method, get_args(Method))
    for name in sides:
        if name not in SIDES:
            raise NotFoundError(f'an index cannot be fused with "{name}"; allowed: {", ".join(SIDES)}')
    if not sides:
        raise InputError(f"there is nothing to fuse the concepts with; name one: {', '.join(SIDES)}")
    own, query, lexical = searcher.recipe.name, prepared.queries[0], searcher.lexical()
    words, owners = lexical.query(query.text), searcher.reader.owners
    found = {
        own: searcher.top([query], FUSED_DOCUMENTS, allowed=prepared.allowed),
        "bm25": lexical.top(words, FUSED_DOCUMENTS, allowed=prepared.allowed),
    }
    best_passages = {name: _passages(top, owners) for name, top in found.items()}
    rankings = {
        name: [(document, score) for document, (_, score) in passages.items()]
        for name, passages in best_passages.items()
    }
    weights = {name: WEIGHTS[method].get(name, 1.0) if weight is None else weight for name, weight in sides.items()}
    best = fuse(rankings, Fusion(method, weights), depth=k)

    def reasons(one: Fused[int], id: str) -> dict[str, Explanation]:
        found = {}
        for part in one.parts:
            index, terms = (searcher, query) if part.name == own else (lexical, words)
            position = best_passages[part.name][one.key][0]
            found[part.name] = searcher.explainer.contributions(index, terms, position, id=id, score=part.score)
        return found

    documents = searcher.reader.at([best_passages[one.parts[0].name][one.key][0] for one in best])
    hits = [
        FusedHit(
            *(rank, document.id, one.score, document.title, document.text, document.metadata),
            parts=one.parts,
            reasons=reasons(one, document.id),
        )
        for rank, (one, document) in enumerate(zip(best, documents, strict=True), start=1)
    ]
    return FusedResults(query=query.text, method=method, hits=tuple(hits), added=prepared.added[0])


def _passages(found: TopDocuments, owners: NDArray[np.int64]) -> dict[int, tuple[int, float]]:
    """For each document of the one query, best first, the position of its best passage and the score."""
    places = np.flatnonzero(found.positions[0] >= 0)
    positions, scores = found.positions[0][places], found.scores[0][places]
    pairs = zip(positions.tolist(), scores.tolist(), strict=True)
    return dict(zip(owners[positions].tolist(), pairs, strict=True))
