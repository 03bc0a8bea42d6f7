"""lexent eval: how good the rankings are on a test collection, beside baselines."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import feedbacks, options
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.fuse import FusionName, weights_of
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.evaluation import Report


def evaluate(
    collection: Annotated[
        str,
        typer.Argument(
            metavar="COLLECTION", help="A BEIR folder (corpus.jsonl, queries.jsonl, qrels/), or an ir_datasets id."
        ),
    ],
    recipe: Annotated[
        str, typer.Option("--recipe", help="The recipe, which names a choice for each stage; several with commas.")
    ] = "latent-terms",
    baselines: Annotated[
        str, typer.Option("--baselines", help='Systems to compare with: dense, bm25, both, or "" for none.')
    ] = "dense,bm25",
    measures: Annotated[
        str, typer.Option("--measures", help="ir_measures names with commas, such as nDCG@10,R@100,RR@10.")
    ] = "nDCG@10,R@100",
    split: Annotated[str, typer.Option("--split", help="The judgements to use, such as test, dev or train.")] = "test",
    run: Annotated[
        list[Path] | None,
        typer.Option("--run", metavar="FILE", help="A TREC run file to evaluate beside the others. Repeatable."),
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option("--run-dir", metavar="DIR", help="Write a TREC run file of each system into this folder."),
    ] = None,
    depth: Annotated[int, typer.Option("--depth", help="How many documents each system gives for a query.")] = 1000,
    fuse: Annotated[
        str,
        typer.Option(
            "--fuse",
            metavar="NAMES",
            help="Also fuse each recipe with these: baselines, recipes or run files by name, with commas; "
            "dense=0.5 gives a weight.",
        ),
    ] = "",
    fusion: FusionName = "sum",
    feedback: feedbacks.Count = None,
    feedback_method: feedbacks.MethodName = None,
    feedback_concepts: feedbacks.Concepts = None,
    feedback_weight: feedbacks.Weight = None,
    adapter: Annotated[
        Path | None,
        typer.Option("--adapter", metavar="DIR", help="Also evaluate this adapter over all documents, as imrnn."),
    ] = None,
    encoder: options.EncoderName = None,
    lexicon: options.LexiconName = None,
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
    per_query: Annotated[
        bool, typer.Option("--per-query", help="With --json: the values of every single query too.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Evaluate a recipe beside dense and lexical search on a test collection.

    Encoded texts are kept in a cache folder, so a second run with other settings is quick.
    """
    from lexent import evaluation

    change = partial(
        options.recipe_of,
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
    with Meter() as meter:
        report = evaluation.evaluate(
            collection,
            recipe=[change(name) for name in options.names_of(recipe)],
            lexicon=lexicon,
            encoder=encoder,
            baselines=options.names_of(baselines),
            measures=measures,
            runs=run or [],
            split=split,
            depth=depth,
            fuse=weights_of(fuse, flag="--fuse"),
            fusion=fusion,
            feedback=feedbacks.feedback_of(feedback, feedback_method, feedback_concepts, feedback_weight),
            adapter=adapter,
            run_dir=run_dir,
            progress=meter.update,
        )
    if json:
        show_json(report.to_json(per_query=per_query))
        return
    _show(report)
    if run_dir is not None:
        say(f"runs in {run_dir}")
    if Path(collection).is_dir():
        out = f"{report.collection}.lexent"
        say_next(command("lexent", "index", collection, "--out", out), command("lexent", "eval", collection, "--k1", 3))


def _show(report: Report) -> None:
    from lexent.cli.views import table

    missing = f", {report.missing:,} judged documents missing" if report.missing else ""
    size = f"{report.documents:,} documents, {report.queries:,} queries{missing}"
    show(f"{report.collection} ({report.split}): {size}", "")
    measures = list(next(iter(report.systems.values())))
    head = ["system"]
    for measure in measures:
        head += [measure, "p"] if report.compared_with else [measure]
    rows = []
    for system, values in report.systems.items():
        row = [system]
        for measure in measures:
            row.append(f"{values[measure]:.4f}")
            if report.compared_with:
                row.append(_p(report.p_values.get(system, {}).get(measure)))
        rows.append([*row, f"{report.seconds[system]:.1f}" if system in report.seconds else ""])
    show(*table([*head, "seconds"], rows))
    if report.compared_with:
        show("", f"p: paired t-test against {report.compared_with}, over queries")
    if report.gains:
        head = ["over the best of its parts"]
        for measure in measures:
            head += [measure, "p", "best part"]
        rows = []
        for system, gains in report.gains.items():
            rows.append([system])
            for measure in measures:
                rows[-1] += [f"{gains[measure].difference:+.4f}", _p(gains[measure].p), gains[measure].against]
        show("", *table(head, rows))


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"
