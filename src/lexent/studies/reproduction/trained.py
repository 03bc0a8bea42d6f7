"""What sections about trained systems share: the figures of new queries first, the other parts beside them."""

from __future__ import annotations

from typing import Any

from lexent.evaluation.overlap import RULE
from lexent.studies.analyses.table import Table, chance
from lexent.studies.reproduction.section import Result


def headline(result: Result) -> tuple[str, dict[str, dict[str, float]]]:
    """The name of the first part and its values by system and measure; without parts, no name and all queries."""
    if not result.get("parts"):
        return "", result["values"]
    name, part = next(iter(result["parts"].items()))
    return name, part["values"]


def part_table(parts: dict[str, Any], note: str = "") -> Table:
    """All systems by what training has seen of a query: the first measure."""
    first = next(iter(parts.values()))
    measure = next(iter(next(iter(first["values"].values()))))
    head = (measure, *(cell for name, part in parts.items() for cell in (f"{name}, {part['queries']:,}", "p")))
    rows = []
    for system in first["values"]:
        row: list[Any] = [system]
        for part in parts.values():
            row += [part["values"][system][measure], chance(part["p_values"].get(system, {}).get(measure))]
        rows.append(tuple(row))
    said = f"{RULE}; p: paired t-test, over the queries of the column"
    return Table("queries by what training has seen", head, tuple(rows), f"{note}; {said}" if note else said)
