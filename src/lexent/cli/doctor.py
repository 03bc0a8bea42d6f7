"""lexent doctor: is everything in place?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from lexent.cli import options
from lexent.cli.console import say_next, show, show_json

if TYPE_CHECKING:
    from rich.text import Text

    from lexent.cli.checks import Check


def doctor(
    encoder: options.EncoderName = None, lexicon: options.LexiconName = None, json: options.Json = False
) -> None:
    """Check this machine: versions, encoder, lexicon, kernels, cache and permissions.

    A line a check, each with a remedy where there is a problem; the exit code is 1 if there is any.
    """
    from lexent.cli.checks import checks

    found = []
    for check in checks(encoder=encoder, lexicon=lexicon):
        found.append(check)
        if not json:
            show(*_lines(check))
    good = all(check.ok for check in found)
    if json:
        show_json({"ok": good, "checks": [asdict(check) for check in found]})
    elif good:
        say_next("lexent demo")
    if not good:
        raise typer.Exit(1)


def _lines(check: Check) -> list[Text]:
    from rich.text import Text

    mark = ("ok       ", "green") if check.ok else ("problem  ", "bold red")
    lines = [Text.assemble(mark, (f"{check.name:<18}", "bold"), check.detail)]
    if check.remedy:
        lines.append(Text.assemble(" " * 27, ("remedy: ", "dim"), check.remedy))
    return lines
