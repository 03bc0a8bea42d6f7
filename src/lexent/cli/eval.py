"""lexent eval: how good the rankings are on a test collection, beside baselines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import feedbacks, options, studies
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.fuse import SystemFusion, weights_of
from lexent.cli.option_groups import Settings, option_group, with_option_groups
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.evaluation import Report


@option_group
@dataclass(frozen=True, slots=True)
class Measuring:
    """What is measured, on which judgements, beside which systems."""

    baselines: Annotated[
        str, typer.Option("--baselines", help='Systems to compare with: dense, bm25, both, or "" for none.')
    ] = "dense,bm25"
    measures: Annotated[
        str, typer.Option("--measures", help="ir_measures names with commas, such as nDCG@10,R@100,RR@10.")
    ] = "nDCG@10,R@100"
    split: studies.Split = None
    depth: Annotated[int, typer.Option("--depth", help="How many documents each system gives for a query.")] = 1000


@option_group
@dataclass(frozen=True, slots=True)
class RunFiles:
    """TREC run files that are read and written."""

    run: Annotated[
        list[Path] | None,
        typer.Option("--run", metavar="FILE", help="A TREC run file to evaluate beside the others. Repeatable."),
    ] = None
    run_dir: Annotated[
        Path | None,
        typer.Option("--run-dir", metavar="DIR", help="Write a TREC run file of each system into this folder."),
    ] = None


@with_option_groups
def evaluate(
    *,
    collection: studies.CollectionName,
    recipe: Annotated[
        str, typer.Option("--recipe", help="The recipe, which names a choice for each stage; several with commas.")
    ] = "latent-terms",
    measuring: Measuring,
    run_files: RunFiles,
    fusion: SystemFusion,
    feedback: Annotated[Settings, feedbacks.HITS],
    adapter: Annotated[
        Path | None,
        typer.Option("--adapter", metavar="DIR", help="Also evaluate this adapter over all documents, as imrnn."),
    ] = None,
    models: options.Models,
    settings: Annotated[Settings, options.RECIPE],
    per_query: Annotated[
        bool, typer.Option("--per-query", help="With --json: the values of every single query too.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Evaluate a recipe beside dense and lexical search on a test collection.

    Encoded texts are kept in a cache folder, so a second run with other settings is quick.
    """
    from lexent import evaluation

    with Meter() as meter:
        report = evaluation.evaluate(
            collection,
            recipe=[options.recipe_of(name, settings) for name in options.names_of(recipe)],
            lexicon=models.lexicon,
            encoder=models.encoder,
            baselines=options.names_of(measuring.baselines),
            measures=measuring.measures,
            runs=run_files.run or [],
            split=measuring.split,
            depth=measuring.depth,
            fuse=weights_of(fusion.fuse, flag="--fuse"),
            fusion=fusion.fusion,
            feedback=feedbacks.feedback_of(feedback),
            adapter=adapter,
            run_dir=run_files.run_dir,
            progress=meter.update,
        )
    if json:
        show_json(report.to_json(per_query=per_query))
        return
    _show(report)
    if run_files.run_dir is not None:
        say(f"runs in {run_files.run_dir}")
    if Path(collection).is_dir():
        out = f"{report.collection}.lexent"
        say_next(command("lexent", "index", collection, "--out", out), command("lexent", "eval", collection, "--k1", 3))


def _show(report: Report) -> None:
    from lexent.cli.views import table

    missing = f", {report.missing:,} judged documents missing" if report.missing else ""
    size = f"{report.documents:,} documents, {report.queries:,} queries{missing}"
    show(f"{report.collection} ({report.split}): {size}", "")
    measures = list(next(iter(report.systems.values())))
    if report.parts:
        from lexent.cli.overlap import by_parts, of_part

        p = report.compared_with is not None
        show(*of_part(*next(iter(report.parts.items())), p=p), "", *by_parts(report.parts, p=p))
        show("")
    head = ["all queries" if report.parts else "system"]
    for measure in measures:
        head += [measure, "p"] if report.compared_with else [measure]
    rows = []
    for system, values in report.systems.items():
        row = [system]
        for measure in measures:
            row.append(f"{values[measure]:.4f}")
            if report.compared_with:
                row.append(studies.p_value(report.p_values.get(system, {}).get(measure)))
        rows.append([*row, f"{report.seconds[system]:.1f}" if system in report.seconds else ""])
    show(*table([*head, "seconds"], rows))
    if report.compared_with:
        show("", f"p: paired t-test against {report.compared_with}, over queries")
    if report.trained:
        where = "" if report.parts else "; no train split of this collection is known"
        show(f"learned from queries and documents: {', '.join(report.trained)}{where}")
    if report.gains:
        head = ["over the best of its parts"]
        for measure in measures:
            head += [measure, "p", "best part"]
        rows = []
        for system, gains in report.gains.items():
            rows.append([system])
            for measure in measures:
                gain = gains[measure]
                rows[-1] += [f"{gain.difference:+.4f}", studies.p_value(gain.p), gain.against]
        show("", *table(head, rows))
