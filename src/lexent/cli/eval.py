"""lexent eval: how good the rankings are on a test collection, beside baselines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options, relevance_feedback
from lexent.cli.console import Output, command
from lexent.cli.fuse import SystemFusion, weights_of
from lexent.cli.option_groups import Settings, option_group
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.evaluation import Report


@option_group
class Measuring:
    """What is measured, on which judgements, beside which systems."""

    recipe: str = "hybrid"
    """The recipe, which names a choice for each stage; several with commas."""
    baselines: str = "dense,bm25"
    """Systems to compare with: dense, bm25, both, or "" for none."""
    measures: str = "nDCG@10,R@100"
    """Names of ir_measures with commas, such as nDCG@10,R@100,RR@10."""
    split: options.Split = None
    depth: int = 1000
    """How many documents each system gives for a query."""
    run: Annotated[list[Path] | None, typer.Option(metavar="FILE")] = None
    """A TREC run file to evaluate beside the others. Repeatable."""
    run_dir: Annotated[Path | None, typer.Option(metavar="DIR")] = None
    """Write a TREC run file of each system into this folder."""
    adapter: Annotated[Path | None, typer.Option(metavar="DIR")] = None
    """Also evaluate this adapter over all documents, as imrnn."""
    per_query: bool = False
    """With --json: the values of every single query too."""


def evaluate(
    collection: options.CollectionName,
    measuring: Measuring,
    fusion: SystemFusion,
    feedback: Annotated[Settings, relevance_feedback.HITS],
    models: options.Models,
    passages: options.Passages,
    settings: Annotated[Settings, options.RECIPE],
) -> Output:
    """Evaluate a recipe beside dense and lexical search on a test collection.

    Encoded texts are kept in a cache folder, so a second run with other settings is quick.
    """
    from lexent import evaluation

    with Meter() as meter:
        report = evaluation.evaluate(
            collection,
            recipe=[options.recipe_of(name, settings, passages) for name in options.names_of(measuring.recipe)],
            baselines=options.names_of(measuring.baselines),
            measures=measuring.measures,
            runs=measuring.run or [],
            split=measuring.split,
            depth=measuring.depth,
            fuse=weights_of(fusion.fuse, flag="--fuse"),
            fusion=fusion.fusion,
            feedback=relevance_feedback.feedback_of(feedback),
            adapter=measuring.adapter,
            run_dir=measuring.run_dir,
            progress=meter.update,
            **vars(models),
        )
    steps = []
    if Path(collection).is_dir():
        out = f"{report.collection}.lexent"
        steps = [command("lexent", "index", collection, "--out", out), command("lexent", "eval", collection, "--k1", 3)]
    notes = [f"runs in {measuring.run_dir}"] if measuring.run_dir is not None else []
    return Output(report.to_json(per_query=measuring.per_query), _lines(report), steps, notes)


def _lines(report: Report) -> Iterator[Line]:
    from lexent.cli import studies
    from lexent.cli.views import table
    from lexent.evaluation.overlap import Part
    from lexent.nan_safe import p_text

    missing = f", {report.missing:,} judged documents missing" if report.missing else ""
    size = f"{report.documents:,} documents, {report.queries:,} queries{missing}"
    yield from (f"{report.collection} ({report.split}): {size}", "")
    p = report.compared_with is not None
    if report.parts:
        yield from (*studies.part_tables(report.parts, p=p), "")
    title = "all queries" if report.parts else "system"
    whole = Part(report.queries, report.systems, report.p_values)
    yield from studies.system_table(title, whole, p=p, seconds=report.seconds)
    if p:
        yield from ("", f"p: paired t-test against {report.compared_with}, over queries")
    if report.trained:
        where = "" if report.parts else "; no train split of this collection is known"
        yield f"learned from queries and documents: {', '.join(report.trained)}{where}"
    if report.gains:
        measures = list(next(iter(report.systems.values())))
        head = ["over the best of its parts", *(cell for name in measures for cell in (name, "p", "best part"))]
        rows = []
        for system, gains in report.gains.items():
            rows.append([system])
            for gain in (gains[measure] for measure in measures):
                rows[-1] += [f"{gain.difference:+.4f}", p_text(gain.p), gain.against]
        yield ""
        yield from table(head, rows)
