"""lexent delete: documents out of an index."""

from __future__ import annotations

from typing import Annotated

import typer

from lexent.cli import options
from lexent.cli.console import command, say_next, show, show_json


def delete(
    path: options.IndexPath,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of the documents to delete.")],
    missing_ok: Annotated[
        bool,
        typer.Option("--missing-ok", help="Pass over ids that are not there; without it, nothing is deleted then."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Delete documents from an index, by id.

    All of them or none. Their space is given back by lexent compact, or when enough of a segment is gone.
    """
    from lexent.engine import Index

    with Index.open(path) as index:
        count = index.delete(ids, missing=missing_ok)
        facts = {**index.info(), "removed": count}
    if json:
        show_json(facts)
        return
    show(f"deleted  {count:,} documents; {path} now has {facts['documents']:,}")
    if facts["deleted"]:
        say_next(command("lexent", "compact", path))
