"""Where words go: data to stdout, talk to stderr. Colours on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

SILENT = ("0", "no", "off", "false")


def talks() -> bool:
    """Whether progress and hints are wanted: LEXENT_PROGRESS=0 silences them."""
    return os.environ.get("LEXENT_PROGRESS", "1").strip().lower() not in SILENT


def stdout() -> Console:
    """The console of results."""
    return _console(stderr=False)


def stderr() -> Console:
    """The console of messages."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def show(*lines: Text | str) -> None:
    """Lines of data, for people."""
    console = stdout()
    for line in lines:
        console.print(line)


def show_json(value: Any) -> None:
    """One JSON value and nothing else. Numbers that are not defined are null."""
    import json

    from lexent.undefined import plain

    ascii_only = "utf" not in (sys.stdout.encoding or "").lower()
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=ascii_only, indent=1, allow_nan=False) + "\n")


def say(text: Text | str) -> None:
    """A line for the person who waits."""
    if talks():
        stderr().print(text)


def say_next(*commands: str) -> None:
    """What to type next, as the last lines of a command."""
    from rich.text import Text

    if not talks():
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
    console = stdout()
    return max(40, min(console.width, 120)) if console.is_terminal else 120
