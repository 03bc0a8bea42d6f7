"""A score as the sum of its concepts' parts: query weight times document weight, each; and as a few named lines."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent import arguments
from lexent.search.groups import SHOWN_GROUPS
from lexent.types import Contribution, GroupContribution

if TYPE_CHECKING:
    from lexent.search.query import Query
    from lexent.search.results import Scored, SharedTerm

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
    groups: tuple[GroupContribution, ...] = ()
    """The score by concepts that say the same, strongest first, those of form last; the values sum to it."""

    def top(self, n: int) -> Explanation:
        """The n strongest contributions; the others go into the rest. All groups stay; as text, n are shown."""
        n = arguments.whole("n", n, least=0)
        kept, others = self.contributions[:n], self.contributions[n:]
        rest = self.rest + sum(part.value for part in others)
        return replace(self, contributions=kept, rest=rest, left_out=self.left_out + len(others))

    def largest_groups(self, n: int) -> tuple[tuple[GroupContribution, ...], tuple[GroupContribution, ...]]:
        """The n groups of the largest values, and the others, both in the order of all."""
        order = sorted(range(len(self.groups)), key=lambda place: -abs(self.groups[place].value))
        chosen = sorted(order[:n]), sorted(order[n:])
        shown, others = (tuple(self.groups[place] for place in places) for places in chosen)
        return shown, others

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        parts = [asdict(part) for part in self.contributions]
        groups = [group.to_dict() for group in self.groups]
        return {"id": self.id, "score": self.score, "groups": groups, "contributions": parts, "rest": self.rest}

    def __str__(self) -> str:
        return f"{self.id}  {self.score:.3f}\n{self._group_lines() if self.groups else self._contribution_lines()}"

    def _group_lines(self) -> str:
        longest = max(abs(group.value) for group in self.groups)
        most = min(SHOWN_GROUPS, len(self.contributions)) if self.left_out else SHOWN_GROUPS
        shown, others = self.largest_groups(most)
        lines = [f"  {bar(group.value, longest)} {group.value:8.3f}  {group.label}" for group in shown]
        if others:
            lines.append(f"  {'':{BAR_CHARS}} {sum(group.value for group in others):8.3f}  {len(others)} more")
        return "\n".join(lines)

    def _contribution_lines(self) -> str:
        longest = max((abs(part.value) for part in self.contributions), default=0.0)
        lines = []
        for part in self.contributions:
            products = f"query {part.query:.3f} x document {part.document:.3f}"
            name = f'"{part.label}"' if part.word else f"#{part.concept} {part.label}"
            lines.append(f"  {bar(part.value, longest)} {part.value:8.3f}  {name}  ({products})")
        if self.left_out:
            lines.append(f"  {'':{BAR_CHARS}} {self.rest:8.3f}  {self.left_out} more")
        return "\n".join(lines)


def explain(index: Scored, query: Query, position: int, *, id: str, score: float) -> Explanation:
    """The explanation of the document at `position`, whose score for the query is known."""
    terms = shared_terms(index, query, position)
    names = index.named([term for term, *_ in terms])
    parts = {
        term: Contribution(term, label, weight, document, value, word)
        for (term, weight, document, value), (label, word) in zip(terms, names, strict=True)
    }
    groups = tuple(
        GroupContribution(line.label, line.value, tuple(parts[one] for one in line.concepts), line.form)
        for line in index.lines(query, position, terms)
    )
    return Explanation(id=id, score=score, contributions=tuple(parts.values()), groups=groups)


def shared_terms(index: Scored, query: Query, position: int) -> list[SharedTerm]:
    """The terms that a query and a document share, strongest first: number, query weight, document weight, value."""
    weights, values = index.contributions(query, position)
    shared = np.flatnonzero(weights)
    order = shared[np.lexsort((query.ids[shared], -np.abs(values[shared])))]
    return list(zip(*(side[order].tolist() for side in (query.ids, query.weights, weights, values)), strict=True))


def bar(value: float, longest: float) -> str:
    """A bar of text, as long as the value's share of the longest; hollow for negative values."""
    length = round(BAR_CHARS * abs(value) / longest) if longest else 0
    return f"{('█' if value >= 0 else '░') * max(length, 1):{BAR_CHARS}}"
