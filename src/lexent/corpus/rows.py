"""A table: a source of rows, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lexent.corpus.problems import RowError
from lexent.types import Document

Row = Mapping[str, Any] | Document | RowError
"""A row with named columns; sources that know what they hold give Documents. A RowError stands for a row that cannot be
read."""
Place = int | tuple[Any, ...]
"""The number of a row in its source; in a folder or a list of files, the number of the file comes before it."""
Rows = Callable[[], Iterator[tuple[Any, Row]]]


@dataclass(frozen=True, slots=True)
class Table:
    """A source of rows. `rows` starts again from the first one each time it is called.

    A RowError that is raised, not given, ends the source: nothing after it can be read.
    """

    name: str
    """What messages call it: mostly a path."""
    unit: str
    """What a row is there: line, row, item or file."""
    rows: Rows
    """The rows, each with its place."""
    count: Callable[[], int | None]
    """How many rows there are; None where only a full pass over something large would tell."""
    cells_are_text: bool = False
    """Whether the source has no types of its own (CSV, TSV): they are inferred from all values of a column."""
    named: Callable[[Any], str] | None = None
    """How a message names a row, for sources that are made of several."""

    def where(self, place: Place) -> str:
        """How a message names one row."""
        return self.named(place) if self.named else f"{self.name}, {self.unit} {place}"

    def at(self, place: Place) -> str:
        """How a message that has named the source names another row of it."""
        return self.named(place) if self.named else f"{self.unit} {place}"
