"""Results go to stdout, messages to stderr. Colours on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from lexent.terminal import console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    Line = Text | str
_ESCAPED = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Control characters that JSON allows as they are, and that would command a terminal."""
SILENT = ("0", "no", "off", "false")


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints: its data with --json, else lines for people."""

    data: Any
    """A value for JSON, an object with `to_json`, or a function that makes the value."""
    lines: Iterable[Line]
    """Made only where they are printed."""
    next: Iterable[str] = ()
    """Commands to type next."""
    notes: Iterable[Line] = ()
    """Messages between the lines and the next commands."""
    failed: bool = False
    """Whether the exit code is 1."""

    def print(self, *, json: bool) -> None:
        """Print it."""
        if json:
            make = getattr(self.data, "to_json", self.data)
            show_json(make() if callable(make) else make)
        else:
            show_each(self.lines)
            for note in self.notes:
                say(note)
            say_next(*self.next)
        if self.failed:
            raise typer.Exit(1)


def is_verbose() -> bool:
    """Whether to show progress and hints: LEXENT_PROGRESS=0 turns them off."""
    return os.environ.get("LEXENT_PROGRESS", "1").strip().lower() not in SILENT


def stdout() -> Console:
    """The console of results."""
    return console(stderr=False)


def stderr() -> Console:
    """The console of messages."""
    return console(stderr=True)


def show(*lines: Line) -> None:
    """Lines of data, for people."""
    show_each(lines)


def show_each(lines: Iterable[Line]) -> None:
    """Lines of data, each as soon as it is made."""
    place = stdout()
    for line in lines:
        place.print(line)


def show_json(value: Any) -> None:
    """One JSON value and nothing else. Numbers that are not defined are null."""
    import json

    from lexent.nan_safe import plain

    ascii_only = "utf" not in (sys.stdout.encoding or "").lower()
    text = json.dumps(plain(value), ensure_ascii=ascii_only, indent=1, allow_nan=False)
    sys.stdout.write(text.translate(_ESCAPED) + "\n")


def say(text: Line) -> None:
    """A message."""
    if is_verbose():
        stderr().print(text)


def say_next(*commands: str) -> None:
    """What to type next, as the last lines of a command."""
    from rich.text import Text

    if not is_verbose() or not commands:
        return
    stderr().print()
    for place, command in enumerate(commands):
        stderr().print(Text.assemble(("next  " if place == 0 else "      ", "dim"), (command, "bold")))


def command(*words: object) -> str:
    """A command line that can be pasted; words that hold blanks are quoted."""
    return " ".join(_quoted(str(word)) for word in words)


def _quoted(word: str) -> str:
    if word == shlex.quote(word):
        return word
    return f'"{word}"' if not set(word) & set('"$`\\!') else shlex.quote(word)


def width() -> int:
    """Characters a line may have: the terminal's, or enough for reading where there is none."""
    place = stdout()
    return max(40, min(place.width, 120)) if place.is_terminal else 120
