"""lexent readability: can a reader see from a few lines why a document is a hit?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.console import Output, command
from lexent.cli.option_groups import Settings, option_group, settings_group
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.studies.readability import ReadabilityReport
    from lexent.studies.readability.shown_lines import ShownHit

RAISING_WORDS = 3
"""Words that are shown of those that raised a line."""
PLAN = settings_group("studies/readability/readability.py", "Plan")
"""What is measured, and on how much."""


@option_group
class Measured:
    """Whose explanations are measured, and by what."""

    recipe: str = "latent-terms"
    """The recipe whose explanations are measured."""
    judge: options.Name = None
    """Another encoder, which says which words are close and which texts a name describes. [default: those two are not
    measured]"""
    off_topic: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Queries, one a line, about nothing that the collection holds. [default: 60 queries from many fields]"""
    split: options.Split = None
    out: Annotated[Path | None, typer.Option(metavar="REPORT")] = None
    """Write a page with plots, such as report.html, and report.json beside it. Needs lexent[report]."""


def readability(
    collection: options.CollectionName,
    measured: Measured,
    plan: Annotated[Settings, PLAN],
    models: options.Models,
) -> Output:
    """Measure what explanations say before and after concepts are grouped and named by the documents.

    Before is a line a concept with the lexicon's names, after a line for concepts that say the same. How much of a
    score do the first six lines hold? Does the document support their names? Do lines repeat a word? Do names tell
    which held-out texts have a concept? Is gibberish weaker than real queries? The collection is indexed for this, and
    the index is removed.
    """
    from lexent.studies.readability import Plan
    from lexent.studies.readability import readability as measure
    from lexent.studies.readability.report_page import write
    from lexent.studies.reproduction.plots import require_matplotlib

    if measured.out is not None:
        require_matplotlib()  # known before the long work
    names = ("recipe", "judge", "off_topic", "split")
    given = {name: getattr(measured, name) for name in names} | vars(models)
    with Meter() as meter:
        report = measure(collection, plan=Plan(**plan), **given, progress=meter.update)
    written: list[str] = []
    if measured.out is not None:
        typed = command("lexent", "readability", collection, *_flags({**given, **plan, "out": measured.out}))
        written += [f"wrote    {path}" for path in write(report, measured.out, command=typed)]
    return Output(report, _lines(report), notes=[*report.notes, *written])


def _flags(given: Settings) -> Iterator[object]:
    for name, value in given.items():
        if value is not None:
            yield from (f"--{name.replace('_', '-')}", value)


def _lines(report: ReadabilityReport) -> Iterator[Line]:
    from lexent.cli.views import table
    from lexent.studies.readability.report_page import tables

    size = f"{report.documents:,} documents, {report.queries:,} queries, {report.hits:,} hits explained"
    yield f"{report.recipe} on {report.collection} ({report.split}): {size}"
    for each in tables(report):
        yield ""
        yield from table(each.head, each.text())
        yield from each.note.split("; ")
    for before, after in report.examples:
        yield from ("", *_example(before, after))


def _example(before: ShownHit, after: ShownHit) -> Iterator[str]:
    """The first lines of a hit, before and after. Lines that its words do not support say what raised them."""
    from lexent.cli.views import titled
    from lexent.studies.readability.support import supported

    yield f'"{after.query}" -> {titled(after.id, after.title)} ({after.score:.1f})'
    for name, hit in (("before", before), ("after", after)):
        for place, line in enumerate(hit.lines):
            raised = "" if supported(line) else f"  (raised by {', '.join(line.raised_by[:RAISING_WORDS])})"
            yield f"  {name if place == 0 else '':6} {line.value:6.1f}  {line.name}{raised if line.raised_by else ''}"
        rest = hit.score - sum(line.value for line in hit.lines)
        if rest >= 0.05:
            yield f"  {'':6} {rest:6.1f}  the rest"
