"""lexent analyse: what recipes do on a collection, and why; tables of the papers on your own data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.console import Output
from lexent.cli.option_groups import option_group
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.studies.analyses import Analyses as Found


@option_group
class Analyses:
    """What is analysed, and beside which systems."""

    what: Annotated[str, typer.Option(metavar="NAMES")] = "mismatch,cost,caps,idf,prune,zipf,categories"
    """Analyses with commas: mismatch, cost, caps, idf, prune, tuned, k, zipf, categories; or all. tuned needs a train
    split, and k encodes the texts again."""
    recipe: str = "latent-terms"
    """Recipes to analyse, with commas."""
    baselines: str = "dense,bm25"
    """Systems beside them in mismatch and cost: dense, bm25, both or none."""
    measures: str = "nDCG@10,R@100"
    """Names of ir_measures with commas; tests are made with the first."""
    split: options.Split = None
    train: str = "train"
    """The split that tuned tunes on, if there is one; a test split is refused."""


def analyse(collection: options.CollectionName, chosen: Analyses, models: options.Models) -> Output:
    """Analyse recipes on a test collection: what they miss, what they cost, and what each setting does."""
    from lexent.studies import analyses

    lists = {name: options.names_of(getattr(chosen, name)) for name in ("what", "recipe", "baselines")}
    with Meter("") as meter:
        found = analyses.analyse(collection, **{**vars(chosen), **lists, **vars(models)}, progress=meter.update)
    return Output(found, _lines(found))


def _lines(found: Found) -> Iterator[Line]:
    from lexent.cli.views import table

    yield f"{found.collection} ({found.split}): {found.documents:,} documents, {found.queries:,} queries"
    for each in (one for parts in found.parts.values() for part in parts for one in part.tables()):
        yield from ("", each.title)
        yield from table(each.head, each.text())
        if each.note:
            yield each.note
