"""lexent add: more documents for an index that stands."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from lexent.cli import options
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.progress import Meter


def add(
    path: options.IndexPath,
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="What to add: the same kinds of file or folder as for lexent index."),
    ],
    upsert: Annotated[
        bool, typer.Option("--upsert", help="Documents whose id is already there take the place of the older ones.")
    ] = False,
    text: options.TextColumn = None,
    title: options.TitleColumn = None,
    id: options.IdColumn = None,
    memory: options.Memory = None,
    encoder: options.IndexEncoder = None,
    lexicon: options.IndexLexicon = None,
    json: options.Json = False,
) -> None:
    """Add documents to an index.

    All of them or none: they are on the disk when this ends, and an interrupted run changes nothing. Searches that run
    meanwhile go on undisturbed.
    """
    from lexent.corpus import read
    from lexent.engine import Index

    start = perf_counter()
    budget = options.bytes_of(memory)
    with Index.open(path, encoder=encoder, lexicon=lexicon) as index:
        corpus = read(source, text=text, title=title, id=id)
        say(f"found    {corpus.description}")
        before = len(index)
        with Meter("documents") as meter:
            progress = meter.counter("adding", corpus.count())
            count = index.add(corpus, upsert=upsert, memory=budget, progress=progress)
        facts = {**index.info(), "added": count, "replaced": before + count - len(index)}
    seconds = perf_counter() - start
    if json:
        show_json({**facts, "seconds": round(seconds, 3)})
        return
    replaced = f", {facts['replaced']:,} of them in the place of older ones" if facts["replaced"] else ""
    show(f"added    {count:,} documents{replaced}, {seconds:,.1f} s; {path} now has {facts['documents']:,}")
    say_next(command("lexent", "search", path, "your question"))
