"""Concepts, words and dense vectors together: hits of an index whose scores are the fused parts of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from lexent import arguments
from lexent.errors import InputError, NotFoundError
from lexent.search.fusion import WEIGHTS, Fused, Fusion, Method, Part, fuse
from lexent.search.results import AddedConcept, Ranked, RankedDocument, SteeredConcept

if TYPE_CHECKING:
    from lexent.explain.contributions import Explanation
    from lexent.search.query import Query
    from lexent.search.results import Scored
    from lexent.search.searcher import Prepared, Searcher

SIDES = ("bm25", "dense")
"""What an index's concepts can be fused with."""
FUSED_DOCUMENTS = 1000
"""Documents of each ranking that are fused; scores are calibrated over them."""


@dataclass(frozen=True, slots=True, repr=False)
class FusedHit(RankedDocument):
    """A document that was found by concepts, words or dense vectors. The values of its parts sum to its score."""

    parts: tuple[Part, ...]
    """What each ranking that found it gave; a ranking that did not find it gives nothing."""
    reasons: Mapping[str, Explanation] = field(repr=False, compare=False)
    """Each part's own score as contributions: of concepts, of words, or the one cosine."""

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
    steered: tuple[SteeredConcept, ...] = ()
    """The concepts that steering moved, the most moved first; empty without steering."""

    def to_dict(self, *, contributions: int | None = None) -> dict[str, Any]:
        """As JSON has it. contributions: at most this many of each part; the others are summed in its "rest"."""
        arguments.whole_or_none("contributions", contributions, least=0)
        return {
            "query": self.query,
            "method": self.method,
            "added": [concept.to_dict() for concept in self.added],
            "steered": [concept.to_dict() for concept in self.steered],
            "hits": [hit.to_dict(contributions=contributions) for hit in self.hits],
        }


@dataclass(frozen=True, slots=True)
class _Side:
    """One ranking of an index for a query."""

    index: Scored
    query: Query
    passages: dict[int, tuple[int, float]]
    """For each document, best first, the position of its best passage and the score."""


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
    query, owners, allowed = prepared.queries[0], searcher.reader.owners, prepared.allowed
    found: dict[str, _Side] = {}
    top = searcher.top([query], FUSED_DOCUMENTS, allowed=allowed)
    found[searcher.recipe.name] = _Side(searcher, query, _passages(top.positions[0], top.scores[0], owners))
    if "bm25" in sides:
        lexical = searcher.lexical()
        words = lexical.query(query.text)
        top = lexical.top(words, FUSED_DOCUMENTS, allowed=allowed)
        found["bm25"] = _Side(lexical, words, _passages(top.positions[0], top.scores[0], owners))
    if "dense" in sides:
        dense = searcher.dense(query.text, allowed=allowed)
        kept = np.arange(len(dense.positions)) < FUSED_DOCUMENTS
        others = [document for side in found.values() for document in side.passages]
        kept |= np.isin(owners[dense.positions], others)  # the cosine of a hit of another side is known
        found["dense"] = _Side(dense, dense.query, _passages(dense.positions[kept], dense.scores[kept], owners))
    rankings = {
        name: [(document, score) for document, (_, score) in side.passages.items()] for name, side in found.items()
    }
    weights = {name: WEIGHTS[method].get(name, 1.0) if weight is None else weight for name, weight in sides.items()}
    best = fuse(rankings, Fusion(method, weights), depth=k)

    def reasons(one: Fused[int], id: str) -> dict[str, Explanation]:
        made = {}
        for part in one.parts:
            side = found[part.name]
            position = side.passages[one.key][0]
            made[part.name] = searcher.explainer.contributions(
                side.index, side.query, position, id=id, score=part.score
            )
        return made

    documents = searcher.reader.at([found[one.parts[0].name].passages[one.key][0] for one in best])
    hits = [
        FusedHit(
            *(rank, document.id, one.score, document.title, document.text, document.metadata),
            parts=one.parts,
            reasons=reasons(one, document.id),
        )
        for rank, (one, document) in enumerate(zip(best, documents, strict=True), start=1)
    ]
    return FusedResults(query.text, method, tuple(hits), added=prepared.added[0], steered=prepared.steered)


def _passages(
    positions: NDArray[np.int64], scores: NDArray[Any], owners: NDArray[np.int64]
) -> dict[int, tuple[int, float]]:
    """For each document, best first, the position of its best passage and the score."""
    places = np.flatnonzero(positions >= 0)
    pairs = zip(positions[places].tolist(), scores[places].tolist(), strict=True)
    return dict(zip(owners[positions[places]].tolist(), pairs, strict=True))
