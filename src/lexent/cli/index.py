"""lexent index: from files to an index on disk."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from lexent.cli import options
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.progress import Meter


def index(
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
    text: options.TextColumn = None,
    title: options.TitleColumn = None,
    id: options.IdColumn = None,
    encoder: options.EncoderName = None,
    lexicon: options.LexiconName = None,
    recipe: options.RecipeName = "latent-terms",
    k1: options.K1 = None,
    b: options.B = None,
    idf: options.Idf = None,
    k2: options.K2 = None,
    formula: options.Formula = None,
    k: options.K = None,
    query_k: options.QueryK = None,
    function_words: options.FunctionWords = None,
    emphasis: options.Emphasis = None,
    power: options.Power = None,
    query_power: options.QueryPower = None,
    document_cap: options.DocumentCap = None,
    query_cap: options.QueryCap = None,
    prune: options.Prune = None,
    adaptive_k: options.AdaptiveK = None,
    whole: options.Whole = None,
    buckets: options.Buckets = None,
    predicted: options.Predicted = None,
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
    from lexent.search import Index

    start = perf_counter()
    settings = options.recipe_of(
        recipe,
        k1=k1,
        b=b,
        idf=idf,
        k2=k2,
        formula=formula,
        k=k,
        query_k=query_k,
        function_words=function_words,
        emphasis=emphasis,
        power=power,
        query_power=query_power,
        document_cap=document_cap,
        query_cap=query_cap,
        prune=prune,
        adaptive_k=adaptive_k,
        whole=whole,
        buckets=buckets,
        predicted=predicted,
    )
    budget = options.bytes_of(memory)
    place = out or default_out(source)
    artifact.check_target(place, kind="index", overwrite=overwrite)
    corpus = read(source, text=text, title=title, id=id)
    say(f"found    {corpus.description}")
    with Meter("documents") as meter:
        built = Index.build(
            corpus,
            out=place,
            encoder=encoder,
            lexicon=lexicon,
            recipe=settings,
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
