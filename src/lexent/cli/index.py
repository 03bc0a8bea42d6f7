"""lexent index, add, delete, compact and retune: from files to an index on disk, and changes to it."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from lexent.cli import options
from lexent.cli.console import Output, command
from lexent.cli.filters import filter_of
from lexent.cli.option_groups import Settings, option_group
from lexent.cli.progress import Meter
from lexent.cli.reading_report import facts_of, say_found, say_problems
from lexent.errors import InputError


@option_group
class Target:
    """What is indexed, how, and where the index goes."""

    source: Annotated[Path, typer.Argument(metavar="SOURCE")]
    """What to index: a file (.jsonl .json .csv .tsv .parquet .txt .md .rst .html .pdf .docx .epub .eml .mbox, source
    code; also .gz, .zst), a folder of such files, or a BEIR folder."""
    out: Annotated[Path | None, typer.Option("-o", metavar="DIR")] = None
    """The index's folder. [default: the source's name + .lexent]"""
    recipe: options.RecipeName = "hybrid"
    extras: Annotated[str, typer.Option("--with", metavar="NAMES")] = ""
    """Keep more, to compare with other ways to search: dense (the encoder's vectors), lexical, or both."""
    memory: options.Memory = None
    overwrite: options.Overwrite = False
    fresh: bool = False
    """Begin anew, and not where an interrupted run with the same settings stopped."""


def index(
    target: Target,
    reading: options.Reading,
    models: options.Models,
    passages: options.Passages,
    settings: Annotated[Settings, options.RECIPE],
) -> Output:
    """Index a file or folder.

    Columns that are not named are guessed and shown. Documents that the encoder cannot read whole are cut into
    passages. The index appears when it is whole, and an older one stays as it was until then. An interrupted run
    goes on where it stopped when the same command is given again.
    """
    from lexent import artifact
    from lexent.corpus import read
    from lexent.engine import Index

    start = perf_counter()
    chosen = options.recipe_of(target.recipe, settings, passages)
    budget = options.bytes_of(target.memory)
    place = target.out or default_out(target.source)
    artifact.check_target(place, kind="index", overwrite=target.overwrite)
    corpus = read(target.source, **vars(reading))
    say_found(corpus)
    with Meter("documents") as meter:
        built = Index.build(
            corpus,
            out=place,
            recipe=chosen,
            extras=options.names_of(target.extras),
            memory=budget,
            progress=meter.counter("indexing", corpus.count()),
            overwrite=target.overwrite,
            resume=not target.fresh,
            **vars(models),
        )
    say_problems(corpus.problems)
    facts = {**built.info(), **facts_of(corpus)}
    seconds = perf_counter() - start
    size = f"{facts['bytes'] / 1e6:,.1f} MB, {seconds:,.1f} s"
    words = f", {facts['live_words']:,} words" if facts["live_words"] else ""
    return Output(
        {**facts, "seconds": round(seconds, 3)},
        [f"indexed  {sizes_of(facts)}, {facts['live_concepts']:,} live concepts{words}, {size} -> {place}"],
        [command("lexent", "search", place, "your question"), command("lexent", "info", place)],
    )


def sizes_of(facts: dict[str, Any]) -> str:
    """How many documents an index has, and passages where some documents have several."""
    documents, passages = facts["documents"], facts["passages"]
    return f"{documents:,} documents" + (f", {passages:,} passages" if passages > documents else "")


def default_out(source: Path) -> Path:
    """In the current folder: papers.jsonl.gz becomes papers.lexent, the folder notes becomes notes.lexent."""
    from lexent.corpus.lines import unpacked_name

    name = source.resolve().name
    if not source.is_dir():
        name = Path(unpacked_name(name)).stem
    return Path(f"{name or 'corpus'}.lexent")


def add(
    path: options.IndexPath,
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="What to add: the same kinds of file or folder as for lexent index."),
    ],
    reading: options.Reading,
    models: options.IndexModels,
    upsert: Annotated[
        bool, typer.Option("--upsert", help="Documents whose id is already there take the place of the older ones.")
    ] = False,
    memory: options.Memory = None,
    wait: options.Wait = 0,
) -> Output:
    """Add documents to an index.

    All of them or none: they are on the disk when this ends, and an interrupted run changes nothing. Searches that run
    meanwhile go on undisturbed.
    """
    from lexent.corpus import read
    from lexent.engine import Index

    start = perf_counter()
    budget = options.bytes_of(memory)
    with Index.open(path, **vars(models), wait=wait) as index:
        corpus = read(source, **vars(reading))
        say_found(corpus)
        before = len(index)
        with Meter("documents") as meter:
            progress = meter.counter("adding", corpus.count())
            count = index.add(corpus, upsert=upsert, memory=budget, progress=progress)
        say_problems(corpus.problems)
        facts = {**index.info(), "added": count, "replaced": before + count - len(index), **facts_of(corpus)}
    seconds = perf_counter() - start
    replaced = f", {facts['replaced']:,} of them in the place of older ones" if facts["replaced"] else ""
    line = f"added    {count:,} documents{replaced}, {seconds:,.1f} s; {path} now has {sizes_of(facts)}"
    return Output({**facts, "seconds": round(seconds, 3)}, [line], [command("lexent", "search", path, "your question")])


def delete(
    path: options.IndexPath,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="The ids of the documents to delete.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="FIELD=VALUE",
            help="Delete the documents whose metadata fits, in place of ids: 'year<2000'. Repeatable; all must hold. "
            "Written as for lexent search.",
        ),
    ] = None,
    missing_ok: Annotated[
        bool,
        typer.Option("--missing-ok", help="Pass over ids that are not there; without it, nothing is deleted then."),
    ] = False,
    wait: options.Wait = 0,
) -> Output:
    """Delete documents from an index, by id or by a filter.

    All of them or none. Their space is given back by lexent compact, or when enough of a segment is gone.
    """
    from lexent.engine import Index

    if bool(ids) == bool(where):
        given = "ids and a filter" if ids else "nothing"
        raise InputError(
            f"delete was given {given}; name documents or a filter: lexent delete {path} ID, "
            f"lexent delete {path} --filter 'year<2000'"
        )
    with Index.open(path, wait=wait) as index:
        count = index.delete(ids or None, filter=filter_of(where), missing=missing_ok)
        facts = {**index.info(), "removed": count}
    line = f"deleted  {count:,} documents; {path} now has {facts['documents']:,}"
    return Output(facts, [line], [command("lexent", "compact", path)] if count else ())


def compact(path: options.IndexPath, memory: options.Memory = None, wait: options.Wait = 0) -> Output:
    """Write an index anew as one segment, without what was deleted.

    Searches give the same, quicker. Adding merges small segments by itself, so this is seldom needed.
    """
    from lexent.engine import Index

    start = perf_counter()
    with Index.open(path, wait=wait) as index:
        before = index.info()
        with Meter("passages") as meter:
            total = index.manifest.counts.passages
            index.compact(memory=options.bytes_of(memory), progress=meter.counter("compacting", total))
        after = index.info()
    seconds = perf_counter() - start
    sizes = f"{before['bytes'] / 1e6:,.1f} MB to {after['bytes'] / 1e6:,.1f} MB, {seconds:,.1f} s"
    return Output(
        {**after, "bytes_before": before["bytes"], "seconds": round(seconds, 3)},
        [f"compacted  {before['segments']} segments to {after['segments']}, {sizes}"],
    )


def retune(path: options.IndexPath, settings: Annotated[Settings, options.RETUNABLE], wait: options.Wait = 0) -> Output:
    """Change how an index weighs, without encoding its documents again.

    Scores then equal those of an index that was built with these settings.
    """
    from lexent.engine import Index

    if not settings:
        raise InputError(f"nothing to change; give a setting, for example: lexent retune {path} --k1 3 --b 0.4")
    with Index.open(path, wait=wait) as index:
        index.retune(**settings)
        facts = index.info()
    changed = ", ".join(f"{name} {value}" for name, value in settings.items())
    return Output(facts, [f"retuned  {path}: {changed}"], [command("lexent", "search", path, "your question")])
