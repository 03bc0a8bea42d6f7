"""A section of the report: one question, how it is measured, and how the answer is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from lexent.studies.analyses.table import Analysis, Table
from lexent.studies.reproduction.study import Study

Result = dict[str, Any]
"""What a section measured, as plain values; its tables and plots are made of nothing else."""


class Figure(NamedTuple):
    """A plot."""

    svg: str
    caption: str


def kept_tables(result: Result) -> list[Table]:
    """The tables that `analysed` put into a result."""
    return [Table.from_json(table) for table in result["tables"]]


@dataclass(frozen=True, slots=True)
class Section:
    """How one question is answered. What `measure` returns is kept on disk."""

    name: str
    title: str
    asks: str
    """One sentence: what it asks."""
    measure: Callable[[Study], Result]
    show: Callable[[Result], Sequence[Table | Figure]] = kept_tables
    """Tables and plots of a result."""
    reading: str = ""
    """How to read it, and what it cannot show."""
    papers: tuple[str, ...] = ("clsr", "latent-terms")
    every: bool = False
    """Whether it measures the other recipes too, beside the paper's."""
    sizes: tuple[str, ...] = ()
    """Of `Sizes`, those that its result depends on."""
    version: int = 1
    """Counted up when the meaning of a result changes."""


def analysed(parts: Iterable[Analysis]) -> Result:
    """The results of analyses as one result."""
    found = list(parts)
    return {
        "parts": [part.to_json() for part in found],
        "tables": [asdict(table) for part in found for table in part.tables()],
    }


def first_measure(result: Result) -> str:
    """The measure that plots show: the first of the rows' values."""
    return str(next(iter(result["rows"][0]["values"])))
