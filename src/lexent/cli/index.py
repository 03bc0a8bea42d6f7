"""lexent index: from files to an index on disk."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from lexent.cli import options
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.option_groups import Settings, with_option_groups
from lexent.cli.progress import Meter


@with_option_groups
def index(
    *,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="What to index: .jsonl, .csv, .tsv, .parquet, a folder of .txt or .md files, or a BEIR folder.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="The index's folder; the source's name + .lexent if not given."
        ),
    ] = None,
    columns: options.Columns,
    models: options.Models,
    recipe: options.RecipeName = "latent-terms",
    settings: Annotated[Settings, options.RECIPE],
    extras: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="NAMES",
            help="Keep more, to compare with other ways to search: dense (the encoder's vectors), lexical, or both.",
        ),
    ] = "",
    memory: options.Memory = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Index a file or folder.

    Columns that are not named are guessed and shown. The index appears when it is whole; an interrupted run leaves
    nothing behind, and an older index as it was.
    """
    from lexent import artifact
    from lexent.corpus import read
    from lexent.engine import Index

    start = perf_counter()
    chosen = options.recipe_of(recipe, settings)
    budget = options.bytes_of(memory)
    place = out or default_out(source)
    artifact.check_target(place, kind="index", overwrite=overwrite)
    corpus = read(source, text=columns.text, title=columns.title, id=columns.id)
    say(f"found    {corpus.description}")
    with Meter("documents") as meter:
        built = Index.build(
            corpus,
            out=place,
            encoder=models.encoder,
            lexicon=models.lexicon,
            recipe=chosen,
            extras=options.names_of(extras),
            memory=budget,
            progress=meter.counter("indexing", corpus.count()),
            overwrite=overwrite,
        )
    facts = built.info()
    seconds = perf_counter() - start
    if json:
        show_json({**facts, "seconds": round(seconds, 3)})
        return
    size = f"{facts['bytes'] / 1e6:,.1f} MB, {seconds:,.1f} s"
    show(f"indexed  {facts['documents']:,} documents, {facts['live_concepts']:,} live concepts, {size} -> {place}")
    say_next(command("lexent", "search", place, "your question"), command("lexent", "info", place))


def default_out(source: Path) -> Path:
    """In the current folder: papers.jsonl.gz becomes papers.lexent, the folder notes becomes notes.lexent."""
    name = source.resolve().name
    if not source.is_dir():
        name = Path(name.removesuffix(".gz")).stem
    return Path(f"{name or 'corpus'}.lexent")
