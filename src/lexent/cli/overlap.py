"""Tables of trained systems: new queries first, then the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from lexent.cli import studies
from lexent.cli.views import table

if TYPE_CHECKING:
    from lexent.evaluation.overlap import Part


def of_part(name: str, part: Part, *, p: bool = True) -> list[str | Text]:
    """All systems and measures over the queries of one part."""
    measures = list(next(iter(part.values.values())))
    head = [f"{name} queries, {part.queries:,}"]
    for measure in measures:
        head += [measure, "p"] if p else [measure]
    rows = []
    for system, values in part.values.items():
        row = [system]
        for measure in measures:
            row.append(f"{values[measure]:.4f}")
            if p:
                row.append(studies.p_value(part.p_values.get(system, {}).get(measure)))
        rows.append(row)
    return list(table(head, rows))


def by_parts(parts: Mapping[str, Part], *, p: bool = True) -> list[str | Text]:
    """All systems by part: the first measure, and the rule that tells the parts apart."""
    from lexent.evaluation.overlap import RULE

    first = next(iter(parts.values()))
    measure = next(iter(next(iter(first.values.values()))))
    head = [measure]
    for name, part in parts.items():
        head += [f"{name}, {part.queries:,}", "p"] if p else [f"{name}, {part.queries:,}"]
    rows = []
    for system in first.values:
        row = [system]
        for part in parts.values():
            row.append(f"{part.values[system][measure]:.4f}")
            if p:
                row.append(studies.p_value(part.p_values.get(system, {}).get(measure)))
        rows.append(row)
    return [*table(head, rows), "", RULE]
