"""Results as a table of HTML, for notebooks: plain markup without scripts, styles of a page or files from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

TEXT_CHARS = 240
"""Characters of a text that are shown."""
_CELL = ' style="text-align: left; vertical-align: top"'


def table(caption: str, rows: Iterable[Mapping[str, object]]) -> str:
    """A table; its columns are the keys of the rows. All values are escaped."""
    held = list(rows)
    names = list(dict.fromkeys(name for row in held for name in row))
    head = "".join(f"<th{_CELL}>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(row.get(name, '')) for name in names)}</tr>" for row in held)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if held else ""
    return f"<div><p>{escape(caption)}</p>{table}</div>"


def start(text: str) -> str:
    """The start of a text, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= TEXT_CHARS else line[: TEXT_CHARS - 1].rstrip() + "…"


def _cell(value: object) -> str:
    lines = [escape(str(one)) for one in value] if isinstance(value, list | tuple) else [escape(str(value))]
    return f"<td{_CELL}>{'<br>'.join(lines)}</td>"
