"""How far long work has come: bars on a terminal, a line every ten seconds elsewhere, nothing when silenced."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from lexent.cli.console import is_verbose, say, stderr

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID

LINE_INTERVAL_SECONDS = 10.0
"""Seconds between lines where there is no terminal."""


class Meter:
    """Shows one or several steps; use as a context, so that the bars end before anything else is printed."""

    def __init__(self, unit: str = "texts") -> None:
        self._unit = unit
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._started: dict[str, float] = {}
        self._said = monotonic()

    def __enter__(self) -> Meter:
        if is_verbose() and stderr().is_terminal:
            self._bars = _bars(self._unit)
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, what: str, done: float, total: float | None, detail: str = "") -> None:
        """A step's state. Steps appear in the order of their first update."""
        if self._bars is not None:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, total=total, detail="")
            self._bars.update(self._tasks[what], completed=done, total=total, detail=detail)
        elif is_verbose():
            self._line(what, done, total, detail)

    def counter(self, what: str, total: float | None) -> Callable[[int], None]:
        """Adds up what was done since its last call; the step is shown at once."""
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self.update(what, done, total)

        self.update(what, 0, total)
        return advance

    def _line(self, what: str, done: float, total: float | None, detail: str) -> None:
        now = monotonic()
        began = self._started.setdefault(what, now)
        if now - self._said < LINE_INTERVAL_SECONDS:
            return
        self._said = now
        rate = done / (now - began) if now > began else 0.0
        parts = [f"{done / total:.0%}" if total else f"{done:,.0f} {self._unit}"]
        if detail:
            parts.append(detail)
        elif total and self._unit:
            parts.append(f"{done:,.0f} of {total:,.0f} {self._unit}, {rate:,.0f}/s")
        if total and rate:
            parts.append(f"eta {_clock((total - done) / rate)}")
        say(f"{what}: {', '.join(parts)}")


def _bars(unit: str) -> Progress:
    from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            if task.fields.get("detail"):
                return Text(str(task.fields["detail"]), style="dim")
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f} {unit}/s" if speed and unit else "", style="dim")

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(show_speed=False),
        Rate(),
        TextColumn("eta"),
        TimeRemainingColumn(),
        console=stderr(),
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
