"""lexent adapt eval: base and adapted, and the methods beside them, on the same candidates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options, studies
from lexent.cli.console import command, say_next, show, show_json
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.evaluation.comparison import Comparison

AdapterPath = Annotated[Path, typer.Argument(metavar="ADAPTER", help="The folder that `lexent adapt train` wrote.")]


def evaluate(
    collection: studies.CollectionName,
    adapter: AdapterPath,
    split: studies.Split = None,
    candidates: Annotated[
        int,
        typer.Option("--candidates", min=0, help="Rank only the base's best so many documents; 0 ranks all of them."),
    ] = 0,
    beside: Annotated[
        str,
        typer.Option(
            "--beside",
            metavar="METHODS",
            help="Other methods on the same candidates, with commas: prf-dime-20 to prf-dime-80 (DIME by "
            "pseudo-relevance feedback, without 20 to 80 % of the dimensions), search-adaptor, hypencoder-2 to "
            "hypencoder-8, or all. Those that learn are trained on --train-split first.",
        ),
    ] = "",
    train_split: Annotated[
        str | None,
        typer.Option(
            "--train-split",
            help="The split that other methods learn from, and that tells which test queries are new. "
            "Default: the adapter's own.",
            show_default=False,
        ),
    ] = None,
    measures: Annotated[
        str, typer.Option("--measures", help="ir_measures names with commas, such as nDCG@10,R@10,RR@10.")
    ] = "nDCG@10,R@10,RR@10",
    encoder: options.EncoderName = None,
    json: options.Json = False,
) -> None:
    """Measure an adapter beside the base retriever, both on identical candidates, with a paired test."""
    from lexent.evaluation.comparison import compare

    with Meter("queries") as meter:
        found = compare(
            collection,
            adapter,
            split=split,
            candidates=candidates or None,
            beside=options.names_of(beside),
            train_split=train_split,
            measures=measures,
            encoder=encoder,
            progress=meter.update,
        )
    if json:
        show_json(found.to_json())
        return
    _show(found)
    say_next(command("lexent", "adapt", "explain", collection, adapter, next(iter(found.example), "QUERY")))


def _show(found: Comparison) -> None:
    from lexent.cli.overlap import by_parts, of_part
    from lexent.evaluation.overlap import Part

    ranked = f"the base's best {found.candidates:,}" if found.candidates else "all documents"
    show(f"{found.collection} ({found.split}): {found.queries:,} queries, {ranked} ranked by every system", "")
    if found.parts:
        show(*of_part(*next(iter(found.parts.items()))), "", *by_parts(found.parts))
    else:
        show(*of_part("all", Part(found.queries, found.values, found.p_values)))
        show("", "no train split is known, so what training has seen of these queries is not known either")
    show("", "p: paired t-test against the base, over queries")
    if found.kept_base:
        show("the adapter kept the base: both are the same")
