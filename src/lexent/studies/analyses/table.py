"""A table of values: what every analysis can be shown as, on a terminal or on a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from lexent import undefined

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Values in rows, not yet put into words."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def text(self) -> list[list[str]]:
        """The rows as they are read."""
        return [[shown(cell) for cell in row] for row in self.rows]


class Analysis(Protocol):
    """What an analysis gives."""

    def tables(self) -> list[Table]:
        """The results as tables."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for json.dumps."""
        ...


def shown(cell: Cell) -> str:
    """Measures with four places, counts with commas; nothing where there is no value."""
    if cell is None or isinstance(cell, float):
        return undefined.shown(cell, ".4f")
    return f"{cell:,}" if isinstance(cell, int) else cell


def chance(p_value: float | None) -> str:
    """A p-value as it is read; nothing where there is none."""
    return "<0.001" if p_value is not None and p_value < 0.001 else undefined.shown(p_value, ".3f")
