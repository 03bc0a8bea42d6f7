"""A score as the sum of its concepts' parts: query weight times document weight, each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent import arguments
from lexent.types import Contribution

if TYPE_CHECKING:
    from lexent.search.query import Query
    from lexent.search.results import Scored

BAR_CHARS = 24
"""Characters of the longest bar."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a document has its score: the contributions and the rest sum to it."""

    id: str
    """The document's."""
    score: float
    contributions: tuple[Contribution, ...]
    """Strongest first, by absolute value."""
    rest: float = 0.0
    """The sum of the contributions that were left out."""
    left_out: int = 0
    """How many were left out."""

    def top(self, n: int) -> Explanation:
        """The n strongest contributions; the others go into the rest."""
        n = arguments.whole("n", n, least=0)
        kept, others = self.contributions[:n], self.contributions[n:]
        rest = self.rest + sum(part.value for part in others)
        return replace(self, contributions=kept, rest=rest, left_out=self.left_out + len(others))

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        parts = [asdict(part) for part in self.contributions]
        return {"id": self.id, "score": self.score, "contributions": parts, "rest": self.rest}

    def __str__(self) -> str:
        longest = max((abs(part.value) for part in self.contributions), default=0.0)
        lines = [f"{self.id}  {self.score:.3f}"]
        for part in self.contributions:
            products = f"query {part.query:.3f} x document {part.document:.3f}"
            lines.append(f"  {bar(part.value, longest)} {part.value:8.3f}  #{part.concept} {part.label}  ({products})")
        if self.left_out:
            lines.append(f"  {'':{BAR_CHARS}} {self.rest:8.3f}  {self.left_out} more")
        return "\n".join(lines)


def explain(index: Scored, query: Query, position: int, *, id: str, score: float) -> Explanation:
    """The explanation of the document at `position`, whose score for the query is known."""
    terms = shared_terms(index, query, position)
    parts = tuple(Contribution(term, index.label(term), *rest) for term, *rest in terms)
    return Explanation(id=id, score=score, contributions=parts)


def shared_terms(index: Scored, query: Query, position: int) -> list[tuple[int, float, float, float]]:
    """The terms that a query and a document share, strongest first: number, query weight, document weight, value."""
    weights, values = index.contributions(query, position)
    shared = np.flatnonzero(weights)
    order = shared[np.lexsort((query.ids[shared], -np.abs(values[shared])))]
    return list(zip(*(side[order].tolist() for side in (query.ids, query.weights, weights, values)), strict=True))


def bar(value: float, longest: float) -> str:
    """A bar of text, as long as the value's share of the longest; hollow for negative values."""
    length = round(BAR_CHARS * abs(value) / longest) if longest else 0
    return f"{('█' if value >= 0 else '░') * max(length, 1):{BAR_CHARS}}"
