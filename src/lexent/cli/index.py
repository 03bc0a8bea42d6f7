"""lexent index: from files to an index on disk."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from lexent.cli import options
from lexent.cli.console import Output, command, say
from lexent.cli.option_groups import Settings, option_group
from lexent.cli.progress import Meter


@option_group
class Target:
    """What is indexed, how, and where the index goes."""

    source: Annotated[Path, typer.Argument(metavar="SOURCE")]
    """What to index: .jsonl, .csv, .tsv, .parquet, a folder of .txt or .md files, or a BEIR folder."""
    out: Annotated[Path | None, typer.Option("-o", metavar="DIR")] = None
    """The index's folder. [default: the source's name + .lexent]"""
    recipe: options.RecipeName = "latent-terms"
    extras: Annotated[str, typer.Option("--with", metavar="NAMES")] = ""
    """Keep more, to compare with other ways to search: dense (the encoder's vectors), lexical, or both."""
    memory: options.Memory = None
    overwrite: options.Overwrite = False


def index(
    target: Target, columns: options.Columns, models: options.Models, settings: Annotated[Settings, options.RECIPE]
) -> Output:
    """Index a file or folder.

    Columns that are not named are guessed and shown. The index appears when it is whole; an interrupted run leaves
    nothing behind, and an older index as it was.
    """
    from lexent import artifact
    from lexent.corpus import read
    from lexent.engine import Index

    start = perf_counter()
    chosen = options.recipe_of(target.recipe, settings)
    budget = options.bytes_of(target.memory)
    place = target.out or default_out(target.source)
    artifact.check_target(place, kind="index", overwrite=target.overwrite)
    corpus = read(target.source, **vars(columns))
    say(f"found    {corpus.description}")
    with Meter("documents") as meter:
        built = Index.build(
            corpus,
            out=place,
            recipe=chosen,
            extras=options.names_of(target.extras),
            memory=budget,
            progress=meter.counter("indexing", corpus.count()),
            overwrite=target.overwrite,
            **vars(models),
        )
    facts = built.info()
    seconds = perf_counter() - start
    size = f"{facts['bytes'] / 1e6:,.1f} MB, {seconds:,.1f} s"
    return Output(
        {**facts, "seconds": round(seconds, 3)},
        [f"indexed  {facts['documents']:,} documents, {facts['live_concepts']:,} live concepts, {size} -> {place}"],
        [command("lexent", "search", place, "your question"), command("lexent", "info", place)],
    )


def default_out(source: Path) -> Path:
    """In the current folder: papers.jsonl.gz becomes papers.lexent, the folder notes becomes notes.lexent."""
    name = source.resolve().name
    if not source.is_dir():
        name = Path(name.removesuffix(".gz")).stem
    return Path(f"{name or 'corpus'}.lexent")
