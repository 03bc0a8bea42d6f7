"""Progress of commands, on stderr; LEXENT_PROGRESS=0 silences it."""

from __future__ import annotations

from lexent import progress
from lexent.cli.console import is_verbose, stderr


class Meter(progress.Meter):
    """Shows one or several steps; use as a context, so that the bars end before anything else is printed."""

    def __init__(self, unit: str = "texts") -> None:
        super().__init__(unit, console=stderr, shown=is_verbose())
