"""How far long work has come: bars on a terminal and in a notebook, a line every ten seconds elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Self

from lexent import terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, Task, TaskID

Count = Callable[[int], None]
"""Called with the number of things that were just done."""
Report = Count | bool | None
"""Who hears of progress: a function, a bar where it is True, or nobody."""
LINE_INTERVAL_SECONDS = 10.0
"""Seconds between lines where there is no terminal."""


class Meter:
    """Shows one or several steps; use as a context, so that the bars end before anything else is printed."""

    def __init__(
        self, unit: str = "texts", *, console: Callable[[], Console] | None = None, shown: bool = True
    ) -> None:
        """unit: what is counted. console: where to print, stderr if not given. shown: whether to print at all."""
        self._unit = unit
        self._console = console or partial(terminal.console, stderr=True)
        self._shown = shown
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._started: dict[str, float] = {}
        self._said = monotonic()

    def __enter__(self) -> Self:
        if self._shown and (self._console().is_terminal or self._console().is_jupyter):
            self._bars = _bars(self._unit, self._console())
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
        elif self._shown:
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
        self._console().print(f"{what}: {', '.join(parts)}")


@contextmanager
def counting(progress: Report, what: str, total: float | None, unit: str = "documents") -> Iterator[Count | None]:
    """What is called with numbers of things done: what the caller gave, or for True a bar of its own."""
    if progress is True:
        with Meter(unit) as meter:
            yield meter.counter(what, total)
    else:
        yield progress or None


def _bars(unit: str, console: Console) -> Progress:
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
        console=console,
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
