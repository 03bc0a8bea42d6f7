"""Tables of studies on a test collection: systems by measures, with p-values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from lexent.cli.views import table
from lexent.nan_safe import p_text

if TYPE_CHECKING:
    from lexent.evaluation.overlap import Part


def system_table(
    title: str, part: Part, *, p: bool = True, seconds: Mapping[str, float] | None = None
) -> Iterator[Text]:
    """All systems by measures, and by the seconds that they took where those are given."""
    measures = list(next(iter(part.values.values())))
    return _table(title, [(measure, part, measure) for measure in measures], p=p, seconds=seconds)


def part_tables(parts: Mapping[str, Part], *, p: bool = True) -> Iterator[Text | str]:
    """Trained systems: on new queries first, then the first measure by part and the rule that tells the parts apart."""
    from lexent.evaluation.overlap import RULE

    name, first = next(iter(parts.items()))
    yield from system_table(f"{name} queries, {first.queries:,}", first, p=p)
    yield ""
    measure = next(iter(next(iter(first.values.values()))))
    yield from _table(measure, [(f"{name}, {part.queries:,}", part, measure) for name, part in parts.items()], p=p)
    yield from ("", RULE)


def _table(
    title: str, columns: Sequence[tuple[str, Part, str]], *, p: bool, seconds: Mapping[str, float] | None = None
) -> Iterator[Text]:
    """A row a system; each column is a name, the queries that are measured and the measure."""
    head = [title, *(cell for name, _, _ in columns for cell in ([name, "p"] if p else [name]))]
    rows = []
    for system in columns[0][1].values:
        row = [system]
        for _, part, measure in columns:
            row.append(f"{part.values[system][measure]:.4f}")
            if p:
                row.append(p_text(part.p_values.get(system, {}).get(measure)))
        if seconds is not None:
            row.append(f"{seconds[system]:.1f}" if system in seconds else "")
        rows.append(row)
    return table(head if seconds is None else [*head, "seconds"], rows)
