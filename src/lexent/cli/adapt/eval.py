"""lexent adapt eval: base and adapted, and the methods beside them, on the same candidates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.console import Output, command
from lexent.cli.option_groups import option_group
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.evaluation.comparison import Comparison

AdapterPath = Annotated[Path, typer.Argument(metavar="ADAPTER", help="The folder that `lexent adapt train` wrote.")]


@option_group
class Comparing:
    """What is compared, and by which measures."""

    split: options.Split = None
    candidates: Annotated[int, typer.Option(min=0)] = 0
    """Rank only the base's best so many documents; 0 ranks all of them."""
    beside: Annotated[str, typer.Option(metavar="METHODS")] = ""
    """Other methods on the same candidates, with commas: prf-dime-20 to prf-dime-80 (DIME by pseudo-relevance feedback,
    without 20 to 80 % of the dimensions), search-adaptor, hypencoder-2 to hypencoder-8, or all. Those that learn are
    trained on --train-split first."""
    train_split: str | None = None
    """The split that other methods learn from, and that tells which test queries are new. [default: the adapter's
    own]"""
    measures: str = "nDCG@10,R@10,RR@10"
    """Names of ir_measures with commas, such as nDCG@10,R@10,RR@10."""
    encoder: options.EncoderName = None


def evaluate(collection: options.CollectionName, adapter: AdapterPath, comparing: Comparing) -> Output:
    """Measure an adapter beside the base retriever, both on identical candidates, with a paired test."""
    from lexent.evaluation.comparison import compare

    beside = options.names_of(comparing.beside)
    given = {**vars(comparing), "candidates": comparing.candidates or None, "beside": beside}
    with Meter("queries") as meter:
        found = compare(collection, adapter, **given, progress=meter.update)
    query = next(iter(found.example), "QUERY")
    return Output(found, _lines(found), [command("lexent", "adapt", "explain", collection, adapter, query)])


def _lines(found: Comparison) -> Iterator[Line]:
    from lexent.cli.studies import part_tables, system_table
    from lexent.evaluation.overlap import Part

    ranked = f"the base's best {found.candidates:,}" if found.candidates else "all documents"
    yield from (f"{found.collection} ({found.split}): {found.queries:,} queries, {ranked} ranked by every system", "")
    if found.parts:
        yield from part_tables(found.parts)
    else:
        whole = Part(found.queries, found.values, found.p_values)
        yield from system_table(f"all queries, {found.queries:,}", whole)
        yield from ("", "no train split is known, so what training has seen of these queries is not known either")
    yield from ("", "p: paired t-test against the base, over queries")
    if found.kept_base:
        yield "the adapter kept the base: both are the same"
