"""The reference of the command line, read from the commands themselves."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import typer

from lexent.cli import app

HEAD = """# Command line

Every command of `lexent`, with its arguments, options and defaults. This page is generated from the program, and says
what `lexent COMMAND --help` says. `--help` is an option of every command. Results go to stdout, messages to stderr.

"""
_FACTS = re.compile(r"\s*\[([^\[\]]*(?:\[[^\]]*\])?[^\[\]]*)\]$")
"""What the help of an option ends with: its default, its range, or that it is required."""


def page() -> str:
    """The page: a section for each command, in the order of `lexent --help`."""
    root = typer.main.get_command(app)
    context = type(root).context_class(root, info_name="lexent")
    return HEAD + "\n".join(_sections(root, context, level=2))


def _sections(command: Any, context: Any, *, level: int) -> Iterator[str]:
    yield f"{'#' * level} `{context.command_path}`\n"
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n"
    if command.help:
        yield f"{command.help.strip()}\n"
    arguments: list[str] = []
    panels: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or "--help" in parameter.opts:
            continue
        if parameter.param_type_name == "argument":
            name, (text, facts) = parameter.metavar or parameter.name.upper(), _parted(record[1])
            arguments.append(f"| {_code(name)} | {_cell(text)} | {_cell(facts)} |")
        else:
            text, facts = _parted(record[1])
            panel = getattr(parameter, "rich_help_panel", None) or "Options"
            panels.setdefault(panel, []).append(f"| {_code(record[0])} | {_cell(text)} | {_cell(facts)} |")
    if arguments:
        yield _table("Argument", arguments)
    for panel, rows in panels.items():
        if panel != "Options":
            yield f"{panel}:\n"
        yield _table("Option", rows)
    for name in command.list_commands(context) if hasattr(command, "commands") else ():
        child = command.commands[name]
        if not child.hidden:
            below = type(child).context_class(child, info_name=name, parent=context)
            yield from _sections(child, below, level=min(level + 1, 4) if context.parent else 2)


def _parted(text: str) -> tuple[str, str]:
    """The help of a parameter, and apart from it the facts in brackets at its end, such as its default and range."""
    found: list[str] = []
    while facts := _FACTS.search(text):
        found.insert(0, facts.group(1).strip())
        text = text[: facts.start()]
    return text.strip(), "; ".join(found)


def _table(first: str, rows: list[str]) -> str:
    return "\n".join([f"| {first} | Effect | Default or range |", "|---|---|---|", *rows]) + "\n"


def _code(text: str) -> str:
    return f"<code>{html.escape(text, quote=False).replace('|', '&#124;')}</code>"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
