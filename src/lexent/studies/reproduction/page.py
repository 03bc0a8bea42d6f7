"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template
from typing import Any

from lexent.studies.analyses.table import Cell, Table, shown
from lexent.studies.reproduction.section import Figure


@dataclass(frozen=True, slots=True)
class Part:
    """A section as it stands on the page."""

    name: str
    title: str
    asks: str
    shown: Sequence[Table | Figure] = ()
    reading: str = ""
    published: Sequence[Table] = ()
    error: str = ""

    @property
    def tables(self) -> list[Table]:
        """What is shown as a table."""
        return [each for each in self.shown if isinstance(each, Table)]


def page(head: dict[str, Any], parts: Sequence[Part], *, command: str, date: str, version: str) -> str:
    """The whole document. head: of a study, or with a "kind" and an "intro" of its own."""
    facts = {
        "collection": f"{head['collection']} ({head['split']})",
        "documents": f"{head['documents']:,}",
        "queries": f"{head['queries']:,}",
        "encoder": head["encoder"],
        "lexicons": ", ".join(dict.fromkeys(each["name"] for each in head["lexicons"].values())),
        "measured": date,
    }
    words = {
        "kind": head.get("kind", "Reproduction report"),
        "title": f"{head['title']}, on {head['collection']}",
        "intro": head.get("intro") or _intro(head),
        "version": version,
        "command": command,
    }
    return Template(_file("page.html")).substitute(
        {name: escape(text) for name, text in words.items()},
        style=_file("page.css"),
        facts="".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items()),
        contents="".join(
            f'<li><a href="#{part.name}"{" class=failed" if part.error else ""}>{escape(part.title)}</a></li>'
            for part in parts
        ),
        sections="\n".join(_section(part) for part in parts),
    )


def _intro(head: dict[str, Any]) -> str:
    return (
        f"{head['source']}. The paper measured {head['setting']}. Here its analyses are made again with the "
        "collection, encoder and lexicons below; what the paper reports stands beside, where it reports it."
    )


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _section(part: Part) -> str:
    body = [f'<section id="{part.name}">', f"<h2>{escape(part.title)}</h2>", f'<p class="asks">{escape(part.asks)}</p>']
    if part.error:
        body.append(f'<p class="error">This section could not be made: {escape(part.error)}</p>')
    for figure in part.shown:
        if isinstance(figure, Figure):
            body.append(f"<figure>{figure.svg}<figcaption>{escape(figure.caption)}</figcaption></figure>")
    body += [f"<h3>{escape(_capital(table.title))}</h3>{_table(table)}" for table in part.tables]
    if part.reading:
        body.append(f'<p class="reading">{escape(part.reading)}</p>')
    if part.published:
        body.append('<div class="paper"><h3>What the paper reports</h3>')
        body += [f"<h4>{escape(_capital(table.title))}</h4>{_table(table, printed=True)}" for table in part.published]
        body.append("</div>")
    return "\n".join([*body, "</section>"])


def _table(table: Table, *, printed: bool = False) -> str:
    """Text columns on the left, numbers on the right. printed: with the digits that the paper prints."""
    text = [[_printed(cell) for cell in row] for row in table.rows] if printed else table.text()
    worded = [column == 0 or any(_is_word(row[column]) for row in text) for column in range(len(table.head))]

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=word' if worded[column] else ''}>{escape(cell)}</{tag}>" for column, cell in enumerate(row)
        )

    rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in text)
    note = f'<p class="note">{escape(_capital(table.note))}.</p>' if table.note else ""
    top = f"<thead><tr>{cells(table.head, 'th')}</tr></thead>"
    return f'<div class="wide"><table>{top}<tbody>{rows}</tbody></table></div>{note}'


def _printed(cell: Cell) -> str:
    """Three places, or four where the paper has them."""
    return f"{cell:.3f}" if isinstance(cell, float) and round(cell, 3) == cell else shown(cell)


def _is_word(cell: str) -> bool:
    return bool(cell) and cell.split()[0].strip("<+-%").replace(",", "").replace(".", "").rstrip("%").isalpha()


def _capital(text: str) -> str:
    """The first letter large, unless the first word is a name or a sign."""
    first = text.split(" ", 1)[0]
    named = first.endswith(":") or "-" in first or len(first) == 1 or any(letter.isupper() for letter in first)
    return text if named else text[:1].upper() + text[1:]
