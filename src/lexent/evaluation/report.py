"""What an evaluation found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from lexent import arguments
from lexent.evaluation.overlap import Part, to_json
from lexent.undefined import plain


@dataclass(frozen=True, slots=True)
class Gain:
    """What a system that is made of others gains over the best of them."""

    against: str
    """The best of them, by this measure."""
    difference: float
    p: float
    """Of the paired t-test between the two; NaN where it is not defined."""


@dataclass(frozen=True, slots=True)
class Report:
    """The values of every system on one collection."""

    collection: str
    split: str
    documents: int
    queries: int
    """How many were run: those with judgements."""
    systems: dict[str, dict[str, float]]
    """System to measure to value; the recipe first, then baselines, then run files."""
    per_query: dict[str, dict[str, dict[str, float]]]
    """System to measure to query id to value."""
    p_values: dict[str, dict[str, float]]
    """System to measure to the paired t-test against `compared_with`; NaN where it is not defined."""
    compared_with: str | None
    seconds: dict[str, float]
    """System to the time it took, encoding included where nothing was cached."""
    gains: dict[str, dict[str, Gain]] = field(default_factory=dict)
    """System to measure to its gain: of fused systems over their parts, of feedback over the same without."""
    setting: dict[str, Any] = field(default_factory=dict)
    """The encoder, lexicon and recipe that were used."""
    missing: int = 0
    """Judged documents that the collection does not hold."""
    trained: tuple[str, ...] = ()
    """Systems that learned from judged queries."""
    parts: dict[str, Part] = field(default_factory=dict)
    """Where a system learned from judged queries and the collection has a train split: the values by what that split
    has seen of a query. New queries come first, and their figures are the headline; all of them come last."""

    def to_json(self, *, per_query: bool = False) -> dict[str, Any]:
        """Plain values for json.dumps, None where a p-value is not defined. Single queries on demand: they are many."""
        arguments.flag("per_query", per_query)
        found: dict[str, Any] = {
            "collection": self.collection,
            "split": self.split,
            "documents": self.documents,
            "queries": self.queries,
            "systems": self.systems,
            "p_values": self.p_values,
            "compared_with": self.compared_with,
            "gains": {
                name: {measure: asdict(gain) for measure, gain in gains.items()} for name, gains in self.gains.items()
            },
            "seconds": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
            "missing_documents": self.missing,
            "trained": list(self.trained),
            "parts": to_json(self.parts),
            **self.setting,
        }
        whole: dict[str, Any] = plain({**found, "per_query": self.per_query} if per_query else found)
        return whole
