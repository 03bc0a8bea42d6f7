"""lexent reproduce: a paper's analyses on your collection, as one page."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options, studies
from lexent.cli.console import command, say, show, show_json
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.evaluation.reproduction import Outcome

PRINTED = ("imrnns", "ssr", "uhd")
"""Papers whose tables are printed, beside the page."""


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="clsr, latent-terms, imrnns, ssr or uhd.")],
    collection: studies.CollectionName,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="REPORT",
            help="The page to write, such as report.html; report.json stands beside it, and report.work keeps each "
            "section as soon as it is done, so that a killed run goes on. PAPER-COLLECTION.html where not given.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[str, typer.Option("--only", metavar="SECTIONS", help="Sections to make, with commas.")] = "",
    skip: Annotated[str, typer.Option("--skip", metavar="SECTIONS", help="Sections to leave out, with commas.")] = "",
    measures: Annotated[
        str, typer.Option("--measures", help="ir_measures names with commas; plots and tests use the first.")
    ] = "nDCG@10,R@100",
    split: studies.Split = "test",
    queries: Annotated[int, typer.Option("--queries", help="Queries whose explanations are tested.")] = 200,
    sample: Annotated[int, typer.Option("--sample", help="Documents whose token states are looked at.")] = 1000,
    texts: Annotated[int, typer.Option("--texts", help="Documents that names are tested on.")] = 2000,
    limit: Annotated[int, typer.Option("--limit", help="Documents of the LIMIT collection that is made.")] = 1000,
    latents: Annotated[
        int, typer.Option("--latents", help="Of ssr and uhd: latents of the lexicons they train.")
    ] = 1024,
    steps: Annotated[int, typer.Option("--steps", help="Of ssr and uhd: steps of their training.")] = 150,
    lessons: Annotated[int, typer.Option("--lessons", help="Of ssr and uhd: pairs and documents to train on.")] = 500,
    encoder: options.EncoderName = None,
    lexicon: options.LexiconName = None,
    json: options.Json = False,
) -> None:
    """Make a paper's analyses on a collection, and write one page with tables and plots.

    Sections: quality, limit (latent-terms only), fidelity, faithfulness, names, mismatch, cost, caps, idf, k, tuned,
    prune, zipf, categories; of imrnns: adapted, forms, deletion; of ssr: quality, limit, theory, k, long, losses,
    latents, modes, growth, index; of uhd: quality, buckets, k, caps, prune, zipf, units, joint, speed, density, values,
    of which units and joint need no lexicon. The tables of the last three papers are printed too. One that fails stands
    in the report with its error, and the exit code says so.
    """
    from lexent.evaluation import measures as scoring
    from lexent.evaluation.reproduction import Sizes, Study
    from lexent.evaluation.reproduction import reproduce as make
    from lexent.evaluation.reproduction.reproduce import chosen

    wanted = options.names_of(only), options.names_of(skip)
    sections = chosen(paper, only=wanted[0], skip=wanted[1])  # refused before the long work
    given = {"only": only, "skip": skip, "measures": measures, "split": split, "queries": queries, "sample": sample}
    out = out or Path(f"{paper}-{Path(collection).name}.html".replace(":", "-"))
    given |= {"texts": texts, "limit": limit, "latents": latents, "steps": steps, "lessons": lessons}
    typed = _typed(paper, collection, out, {**given, "encoder": encoder, "lexicon": lexicon})
    with Meter("") as meter:
        study = Study.of(
            paper,
            collection,
            encoder=encoder,
            lexicon=lexicon,
            measures=tuple(str(measure) for measure in scoring.parse(measures)),
            split=split,
            lexicons=not all(section.trains for section in sections),
            sizes=Sizes(
                queries=queries,
                tokens=sample,
                texts=texts,
                limit=limit,
                latents=latents,
                steps=steps,
                lessons=lessons,
            ),
            progress=meter.update,
        )
        found = make(
            study,
            out,
            only=wanted[0],
            skip=wanted[1],
            command=typed,
            told=lambda title, done, total: meter.update("sections", done, total, title),
        )
    if json:
        values = {"page": str(found.page), "data": str(found.data), "sections": list(found.sections)}
        show_json({**values, "kept": list(found.kept), "failed": found.failed})
    else:
        if paper in PRINTED:
            _print(paper, found)
        show(f"{found.page}: {len(sections) - len(found.failed)} sections; {found.data}")
        if found.kept:
            say(f"kept from before: {', '.join(found.kept)}")
        for name, error in found.failed.items():
            say(f"failed   {name}: {error}")
    if found.failed:
        raise typer.Exit(1)


def _print(paper: str, found: Outcome) -> None:
    """The tables of a report's sections."""
    import json

    from lexent.cli.views import table
    from lexent.evaluation.reproduction.reproduce import every_section

    kept = json.loads(found.data.read_text(encoding="utf-8"))["sections"]
    for section in every_section(paper):
        result = kept.get(section.name, {}).get("result")
        for each in section.tables(result) if result is not None else []:
            show(each.title, "", *table(list(each.head), each.text()), *([each.note] if each.note else []), "")


def _typed(paper: str, collection: str, out: Path, given: dict[str, object]) -> str:
    """The command that makes the same report: options that are not as they are by default."""
    usual = {name: parameter.default for name, parameter in signature(reproduce).parameters.items()}
    changed = [word for name, value in given.items() if value != usual[name] for word in (f"--{name}", value)]
    return command("lexent", "reproduce", paper, collection, "--out", out, *changed)
