"""lexent reproduce: a paper's analyses on your collection, as one page."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Annotated

import typer

from lexent.cli import options
from lexent.cli.console import Output, command
from lexent.cli.option_groups import Settings, option_group, settings_group, with_option_groups
from lexent.cli.progress import Meter

PRINTED = ("imrnns", "ssr", "uhd")
"""Papers whose tables are printed, beside the page."""
SIZES = settings_group("studies/reproduction/study.py", "Sizes", panel="Sizes", flags={"tokens": "--sample"})


@option_group
class Sections:
    """What the report holds."""

    only: Annotated[str, typer.Option(metavar="SECTIONS")] = ""
    """Sections to make, with commas."""
    skip: Annotated[str, typer.Option(metavar="SECTIONS")] = ""
    """Sections to leave out, with commas."""
    measures: str = "nDCG@10,R@100"
    """Names of ir_measures with commas; plots and tests use the first."""
    split: options.Split = None


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="clsr, latent-terms, imrnns, ssr or uhd.")],
    collection: options.CollectionName,
    sections: Sections,
    sizes: Annotated[Settings, SIZES],
    models: options.Models,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="REPORT",
            help="The page to write, such as report.html; report.json stands beside it, and report.work keeps each "
            "section as soon as it is done, so that a killed run goes on. [default: PAPER-COLLECTION.html]",
        ),
    ] = None,
) -> Output:
    """Make a paper's analyses on a collection, and write one page with tables and plots.

    Sections: quality, limit (latent-terms only), fidelity, faithfulness, names, mismatch, cost, caps, idf, k, tuned,
    prune, zipf, categories; of imrnns: adapted, forms, deletion; of ssr: quality, limit, theory, k, long, losses,
    latents, modes, growth, index; of uhd: quality, buckets, k, caps, prune, zipf, speed, values. The tables of the last
    three papers are printed too. One that fails stands in the report with its error, and the exit code says so.
    """
    from lexent.cli.studies import table_lines
    from lexent.evaluation import measures as scoring
    from lexent.studies.reproduction import Sizes, Study
    from lexent.studies.reproduction import reproduce as make
    from lexent.studies.reproduction.reproduce import chosen

    wanted = {"only": options.names_of(sections.only), "skip": options.names_of(sections.skip)}
    made = chosen(paper, **wanted)  # refused before the long work
    out = out or Path(f"{paper}-{Path(collection).name}.html".replace(":", "-"))
    typed = _typed(paper, collection, out, {**vars(sections), **sizes, **vars(models)})
    with Meter("") as meter:
        study = Study.of(
            paper,
            collection,
            measures=tuple(str(measure) for measure in scoring.parse(sections.measures)),
            split=sections.split,
            sizes=Sizes(**sizes),
            progress=meter.update,
            **vars(models),
        )
        found = make(
            study,
            out,
            **wanted,
            command=typed,
            progress=lambda title, done, total: meter.update("sections", done, total, title),
        )
    values = {"page": str(found.page), "data": str(found.data), "sections": list(found.sections)}
    kept = [f"kept from before: {', '.join(found.kept)}"] if found.kept else []
    return Output(
        {**values, "kept": list(found.kept), "failed": found.failed},
        [
            *(table_lines(found.tables) if paper in PRINTED else ()),
            f"{found.page}: {len(made) - len(found.failed)} sections; {found.data}",
        ],
        notes=[*kept, *(f"failed   {name}: {error}" for name, error in found.failed.items())],
        failed=bool(found.failed),
    )


def _typed(paper: str, collection: str, out: Path, given: dict[str, object]) -> str:
    """The command that makes the same report: options that are not as they are by default."""
    usual = {name: parameter.default for name, parameter in signature(with_option_groups(reproduce)).parameters.items()}
    flags = {name: SIZES.flags.get(name, f"--{name}") for name in given}
    changed = [word for name, value in given.items() if value != usual[name] for word in (flags[name], value)]
    return command("lexent", "reproduce", paper, collection, "--out", out, *changed)
