"""A table of values: what every analysis can be shown as, on a terminal or on a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from lexent import nan_safe

Cell: TypeAlias = str | int | float | None
Column: TypeAlias = tuple[str, str | Callable[[Any], Cell]]
"""A heading, and what stands below it: a key of the row, a format of its keys ("{ms:.2f}"), or a function of it."""


@dataclass(frozen=True, slots=True)
class Table:
    """Values in rows, not yet formatted."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @staticmethod
    def of(title: str, rows: Iterable[Any], columns: Iterable[Column], note: str = "") -> Table:
        """A table with a row for each mapping in `rows`."""
        chosen = list(columns)
        cells = tuple(tuple(_cell(row, what) for _, what in chosen) for row in rows)
        return Table(title, tuple(head for head, _ in chosen), cells, note)

    @staticmethod
    def from_json(values: dict[str, Any]) -> Table:
        """A table from the values that `asdict` gave of it."""
        return Table(values["title"], tuple(values["head"]), tuple(map(tuple, values["rows"])), values.get("note", ""))

    def text(self) -> list[list[str]]:
        """The rows as text."""
        return [[shown(cell) for cell in row] for row in self.rows]


class Analysis(Protocol):
    """The result of an analysis."""

    def tables(self) -> list[Table]:
        """The results as tables."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for json.dumps."""
        ...


def at(*keys: Any, then: Callable[[Any], Cell] = lambda value: value) -> Callable[[Any], Cell]:
    """A function of a row: what stands under these keys, each within the one before. then: how it is shown."""

    def found(row: Any) -> Cell:
        for key in keys:
            row = row[key]
        return then(row)

    return found


def measured(measures: Iterable[str], values: str = "values") -> list[Column]:
    """A column for each measure, from the row's mapping of that name."""
    return [(measure, at(values, measure)) for measure in measures]


def shown(cell: Cell) -> str:
    """Measures with four places, counts with commas; nothing where there is no value."""
    if cell is None or isinstance(cell, float):
        return nan_safe.shown(cell, ".4f")
    return f"{cell:,}" if isinstance(cell, int) else cell


def _cell(row: Any, what: str | Callable[[Any], Cell]) -> Cell:
    if callable(what):
        return what(row)
    return what.format_map(row) if "{" in what else row[what]
