"""lexent make limit: a test collection that single vectors cannot solve, of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lexent.cli.console import Output, command


def limit(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The BEIR folder to write.")],
    documents: Annotated[int, typer.Option("--documents", help="How many documents, from 46 to 89,100.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed makes another collection.")] = 0,
) -> Output:
    """Make a LIMIT collection: 46 people, a query for each pair of them, and others who like nothing that is asked for.

    A larger collection of the same seed holds all documents of a smaller one, and has the same queries.
    """
    from lexent.evaluation.collections import write
    from lexent.studies.limit import limit as generate

    made = generate(documents, seed=seed)
    write(made, out)
    return Output(
        {"path": str(out), "documents": len(made.documents), "queries": len(made.queries), "seed": seed},
        [f"made     {len(made.documents):,} documents, {len(made.queries):,} queries -> {out}"],
        [command("lexent", "eval", out, "--measures", "R@2,R@10,R@100")],
    )
