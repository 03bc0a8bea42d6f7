"""Fused runs, as a system under test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress
from lexent.evaluation.runs import Run, ranked
from lexent.evaluation.systems import System
from lexent.search.fusion import Fusion, scores


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run that is already there: from a file, or from a system that has run."""

    name: str
    found: Run

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The documents that this system finds for each query, with their scores."""
        return {query: dict(ranked(results)[:depth]) for query, results in self.found.items()}


@dataclass(frozen=True, slots=True)
class Fused:
    """Several systems whose rankings are fused."""

    parts: tuple[System, ...]
    fusion: Fusion

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.fusion.method}:{'+'.join(part.name for part in self.parts)}"

    def run(self, collection: Collection, *, depth: int, progress: Progress | None = None) -> Run:
        """The documents that this system finds for each query, with their scores."""
        runs = {part.name: part.run(collection, depth=depth, progress=progress) for part in self.parts}
        return fused(runs, self.fusion, depth=depth)


def fused(runs: Mapping[str, Run], fusion: Fusion, *, depth: int) -> Run:
    """One run from several by name. A query that only some runs have is fused from those."""
    queries = dict.fromkeys(query for run in runs.values() for query in run)
    found: Run = {}
    for query in queries:
        rankings = {name: ranked(run[query]) for name, run in runs.items() if query in run}
        found[query] = scores(rankings, fusion, depth=depth)
    return found
