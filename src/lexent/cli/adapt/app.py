"""lexent adapt: small networks over a frozen retriever, trained, measured and explained; a file a verb."""

from __future__ import annotations

import typer

from lexent.cli.adapt.deletion import deletion
from lexent.cli.adapt.eval import evaluate
from lexent.cli.adapt.explain import explain
from lexent.cli.adapt.train import train

adapt = typer.Typer(
    help="Train adapters that improve a frozen retriever on your own judged queries, and see what they changed."
)
adapt.command("train")(train)
adapt.command("eval")(evaluate)
adapt.command("explain")(explain)
adapt.command("deletion")(deletion)


@adapt.callback(invoke_without_command=True)
def verbs(context: typer.Context) -> None:
    """Show the help where no verb is given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
