"""lexent make limit: a test collection that single vectors cannot solve, of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lexent.cli import options
from lexent.cli.console import command, say_next, show, show_json

make = typer.Typer(name="make", help="Make test collections.", no_args_is_help=True)


@make.callback()
def _make() -> None:
    """Make test collections."""


@make.command("limit")
def limit(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The BEIR folder to write.")],
    documents: Annotated[int, typer.Option("--documents", help="How many documents, from 46 to 89,100.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed makes another collection.")] = 0,
    json: options.Json = False,
) -> None:
    """Make a LIMIT collection: 46 people, a query for each pair of them, and others who like nothing that is asked for.

    A larger collection of the same seed holds all documents of a smaller one, and has the same queries.
    """
    from lexent.evaluation.collections import write
    from lexent.studies.limit import limit as generate

    made = generate(documents, seed=seed)
    write(made, out)
    if json:
        show_json({"path": str(out), "documents": len(made.documents), "queries": len(made.queries), "seed": seed})
        return
    show(f"made     {len(made.documents):,} documents, {len(made.queries):,} queries -> {out}")
    measures = "R@2,R@10,R@100"
    say_next(command("lexent", "eval", out, "--measures", measures))
