"""What an evaluation found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
    """System to measure to the paired t-test against `compared_with`."""
    compared_with: str | None
    seconds: dict[str, float]
    """System to the time it took, encoding included where nothing was cached."""
    setting: dict[str, Any] = field(default_factory=dict)
    """The encoder, lexicon and recipe that were used."""
    missing: int = 0
    """Judged documents that the collection does not hold."""

    def to_json(self, *, per_query: bool = False) -> dict[str, Any]:
        """Plain values for json.dumps; those of single queries on demand, since they are many."""
        found: dict[str, Any] = {
            "collection": self.collection,
            "split": self.split,
            "documents": self.documents,
            "queries": self.queries,
            "systems": self.systems,
            "p_values": self.p_values,
            "compared_with": self.compared_with,
            "seconds": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
            "missing_documents": self.missing,
            **self.setting,
        }
        return {**found, "per_query": self.per_query} if per_query else found
