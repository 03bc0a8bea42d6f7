"""Numbered rows of one source, before anyone has decided what their columns mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lexent.types import Document

Row = Mapping[str, Any] | Document
"""A row with named columns; sources that know what they hold give Documents."""


@dataclass(frozen=True, slots=True)
class Table:
    """A source of rows. `rows` starts again from the first one each time it is called."""

    name: str
    """What messages call it: mostly a path."""
    unit: str
    """What a row is there: line, row, item or file."""
    rows: Callable[[], Iterator[tuple[int, Row]]]
    """The rows, each with its number in the source."""
    count: Callable[[], int | None]
    """How many rows there are; None where only a full pass over something large would tell."""
    cells_are_text: bool = False
    """Whether the source has no types of its own (CSV, TSV): they are inferred from all values of a column."""

    def where(self, number: int) -> str:
        """How a message names one row."""
        return f"{self.name}, {self.unit} {number}"
