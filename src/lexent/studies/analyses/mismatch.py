"""Mismatch sets: the queries for which lexical search finds nothing, and what every system makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.passages import Runner
from lexent.evaluation.runs import Run, ranked
from lexent.evaluation.systems import Lexical, System
from lexent.studies.analyses.table import Table

DEPTHS = (10, 100, 1000)


@dataclass(frozen=True, slots=True)
class MismatchSet:
    """The queries of which BM25 has no relevant document among its first `depth`."""

    depth: int
    queries: tuple[str, ...]
    values: dict[str, dict[str, float]]
    """System to measure to its mean over these queries; empty where there are none."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Every system on all queries and on each mismatch set."""

    collection: str
    split: str
    queries: int
    values: dict[str, dict[str, float]]
    """System to measure to its mean over all queries."""
    sets: tuple[MismatchSet, ...]

    def drop(self, system: str, measure: str, depth: int) -> tuple[float, float] | None:
        """How much of a measure is lost on a set: absolute, and as a share of the value over all queries."""
        found = next(each for each in self.sets if each.depth == depth)
        if not found.queries:
            return None
        whole = self.values[system][measure]
        lost = whole - found.values[system][measure]
        return lost, lost / whole if whole else 0.0

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        sets = []
        for each in self.sets:
            drops = {
                system: {measure: self.drop(system, measure, each.depth) for measure in values}
                for system, values in self.values.items()
            }
            row = {"depth": each.depth, "size": len(each.queries), "queries": list(each.queries)}
            sets.append({**row, "values": each.values, "drops": drops if each.queries else {}})
        head = {"collection": self.collection, "split": self.split, "queries": self.queries}
        return {**head, "values": self.values, "sets": sets}

    def tables(self) -> list[Table]:
        """The results as tables."""
        measures = list(next(iter(self.values.values()), {}))
        found = []
        for measure in measures:
            rows = []
            for system, values in self.values.items():
                row: list[Any] = [system, values[measure]]
                for each in self.sets:
                    drop = self.drop(system, measure, each.depth)
                    row += [None, None] if drop is None else [each.values[system][measure], f"{-drop[1]:+.0%}"]
                rows.append(tuple(row))
            sizes = [f"missed@{each.depth} ({len(each.queries):,})" for each in self.sets]
            head = ("system", f"all ({self.queries:,})", *(cell for size in sizes for cell in (size, "drop")))
            title = f"{measure} on the queries that BM25 misses"
            note = "missed@k (n): the n queries without a relevant document among BM25's first k"
            found.append(Table(title, head, tuple(rows), note))
        return found


def mismatch(
    collection: Collection,
    systems: Sequence[System],
    *,
    measures: str | Sequence[str] = ("nDCG@10", "R@100"),
    depths: Sequence[int] = DEPTHS,
) -> Mismatch:
    """Every system's measures on all queries, and on those for which BM25 misses every relevant document at a depth."""
    wanted, deepest = scoring.parse(measures), max(*depths, 1000)
    reference = next((system for system in systems if isinstance(system, Lexical)), Lexical())
    found = reference.run(collection, depth=deepest)
    runner = Runner(collection, systems)
    per_system: dict[str, scoring.Scores] = {}
    for system in systems:
        run = found if system is reference else runner.run(system, depth=deepest)
        per_system[system.name] = scoring.score(collection.qrels, run, wanted)
    sets = []
    for depth in depths:
        missed = tuple(missed_queries(collection.qrels, found, depth))
        values = {name: scores.among(missed).means for name, scores in per_system.items()} if missed else {}
        sets.append(MismatchSet(depth, missed, values))
    whole = {name: scores.means for name, scores in per_system.items()}
    return Mismatch(collection.name, collection.split, len(collection.queries), whole, tuple(sets))


def missed_queries(qrels: Mapping[str, Mapping[str, int]], run: Run, depth: int) -> list[str]:
    """Queries that have relevant documents, none of them among the first `depth` of the run."""
    missed = []
    for query, judged in qrels.items():
        relevant = {document for document, grade in judged.items() if grade > 0}
        first = {document for document, _ in ranked(run.get(query, {}))[:depth]}
        if relevant and not relevant & first:
            missed.append(query)
    return missed
