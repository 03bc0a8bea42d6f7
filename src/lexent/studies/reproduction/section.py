"""A section of the report: one question, how it is measured, and how the answer is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from lexent.studies.analyses.table import Analysis, Table
from lexent.studies.reproduction.study import Study

Result = dict[str, Any]
"""What a section measured, as plain values; its tables and plots are made of nothing else."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot, drawn when the page is."""

    draw: Callable[[], str]
    """Gives SVG."""
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """How one question is answered. What `measure` gives is kept on disk."""

    name: str
    title: str
    asks: str
    """One sentence: what it asks."""
    measure: Callable[[Study], Result]
    tables: Callable[[Result], list[Table]] = lambda result: [table_of(table) for table in result["tables"]]
    figures: Callable[[Result], list[Figure]] = lambda result: []
    reading: str = ""
    """How to read it, and what it cannot show."""
    papers: tuple[str, ...] = ("clsr", "latent-terms")
    every: bool = False
    """Whether it measures the other recipes too, beside the paper's."""
    trains: bool = False
    """Whether it trains the lexicons that it measures, and needs no other."""
    sizes: tuple[str, ...] = ()
    """Of `Sizes`, those that its result depends on."""
    version: int = 1
    """Counted up when the meaning of a result changes."""


def analysed(parts: Iterable[Analysis]) -> Result:
    """What analyses found, as a result."""
    found = list(parts)
    return {
        "parts": [part.to_json() for part in found],
        "tables": [asdict(table) for part in found for table in part.tables()],
    }


def table_of(values: dict[str, Any]) -> Table:
    """A table that was kept as plain values."""
    return Table(
        values["title"], tuple(values["head"]), tuple(tuple(row) for row in values["rows"]), values.get("note", "")
    )
