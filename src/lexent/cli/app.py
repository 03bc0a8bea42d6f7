"""The verbs, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from lexent.cli.adapt.app import adapt
from lexent.cli.add import add
from lexent.cli.analyse import analyse
from lexent.cli.compact import compact
from lexent.cli.concepts.app import concepts
from lexent.cli.delete import delete
from lexent.cli.demo import demo
from lexent.cli.doctor import doctor
from lexent.cli.eval import evaluate
from lexent.cli.explain import explain
from lexent.cli.failures import Verbs, end_at_second_interrupt
from lexent.cli.faithfulness import faithfulness
from lexent.cli.fidelity import fidelity
from lexent.cli.fuse import fuse
from lexent.cli.index import index
from lexent.cli.info import info
from lexent.cli.limit import make
from lexent.cli.reproduce import reproduce
from lexent.cli.retune import retune
from lexent.cli.search import search
from lexent.cli.serve import serve
from lexent.cli.train.app import train
from lexent.cli.tune import tune
from lexent.cli.verify import verify

app = typer.Typer(
    name="lexent",
    cls=Verbs,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # lines of a paragraph flow together
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with: lexent demo",
)
app.command("demo")(demo)
app.command("index")(index)
app.command("add")(add)
app.command("delete")(delete)
app.command("compact")(compact)
app.command("retune")(retune)
app.command("search")(search)
app.command("explain")(explain)
app.command("serve")(serve)
app.add_typer(concepts, name="concepts")
app.add_typer(adapt, name="adapt")
app.command("eval")(evaluate)
app.command("fuse")(fuse)
app.command("analyse")(analyse)
app.command("fidelity")(fidelity)
app.command("faithfulness")(faithfulness)
app.command("reproduce")(reproduce)
app.command("tune")(tune)
app.add_typer(make, name="make")
app.command("train")(train)
app.command("info")(info)
app.command("verify")(verify)
app.command("doctor")(doctor)


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
