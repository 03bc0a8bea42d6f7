"""The verbs, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from lexent.cli.adapt.app import adapt
from lexent.cli.backup import backup, restore
from lexent.cli.concepts.app import concepts
from lexent.cli.demo import demo
from lexent.cli.doctor import doctor
from lexent.cli.eval import evaluate
from lexent.cli.explain import explain
from lexent.cli.failures import Verbs, end_at_second_interrupt
from lexent.cli.fuse import fuse
from lexent.cli.index import add, compact, delete, index, retune
from lexent.cli.info import info, verify
from lexent.cli.mcp import mcp
from lexent.cli.option_groups import add_commands, command_group
from lexent.cli.readability import readability
from lexent.cli.reproduce import reproduce
from lexent.cli.search import search
from lexent.cli.serve import serve
from lexent.cli.studies import analyse, faithfulness, fidelity, limit
from lexent.cli.train.app import train
from lexent.cli.tune import tune
from lexent.cli.warm import warm

app = typer.Typer(
    name="lexent",
    cls=Verbs,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # lines of a paragraph flow together
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with: lexent demo",
)
add_commands(
    app, demo=demo, index=index, add=add, delete=delete, compact=compact, retune=retune, search=search, explain=explain,
    serve=serve, mcp=mcp, eval=evaluate, fuse=fuse, analyse=analyse, fidelity=fidelity, faithfulness=faithfulness,
    readability=readability, reproduce=reproduce, tune=tune, train=train, info=info, verify=verify,
    backup=backup, restore=restore, doctor=doctor, warm=warm,
)  # fmt: skip
app.add_typer(concepts, name="concepts")
app.add_typer(adapt, name="adapt")
app.add_typer(command_group("Make test collections.", limit=limit), name="make")


@app.callback(invoke_without_command=True)
def lexent(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere on the line.")
    ] = False,
) -> None:
    """Search text by named concepts, and see why each hit was found."""
    if version:
        from lexent.artifact import lexent_version

        typer.echo(f"lexent {lexent_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """The entry point `lexent`."""
    end_at_second_interrupt()
    app(prog_name="lexent")
