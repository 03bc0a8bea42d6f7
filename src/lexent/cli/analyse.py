"""lexent analyse: what recipes do on a collection, and why; tables of the papers on your own data."""

from __future__ import annotations

from typing import Annotated

import typer

from lexent.cli import options, studies
from lexent.cli.console import show, show_json
from lexent.cli.progress import Meter


def analyse(
    collection: studies.CollectionName,
    what: Annotated[
        str,
        typer.Option(
            "--what",
            metavar="NAMES",
            help="Analyses with commas: mismatch, cost, caps, idf, prune, tuned, k, zipf, categories; or all. "
            "tuned needs a train split, and k encodes the texts again.",
        ),
    ] = "mismatch,cost,caps,idf,prune,zipf,categories",
    recipe: Annotated[str, typer.Option("--recipe", help="Recipes to analyse, with commas.")] = "latent-terms",
    baselines: Annotated[
        str, typer.Option("--baselines", help="Systems beside them in mismatch and cost: dense, bm25, both or none.")
    ] = "dense,bm25",
    measures: Annotated[
        str, typer.Option("--measures", help="ir_measures names with commas; tests are made with the first.")
    ] = "nDCG@10,R@100",
    split: studies.Split = None,
    train: Annotated[
        str, typer.Option("--train", help="The split that tuned tunes on, if there is one; a test split is refused.")
    ] = "train",
    encoder: options.EncoderName = None,
    lexicon: options.LexiconName = None,
    json: options.Json = False,
) -> None:
    """Analyse recipes on a test collection: what they miss, what they cost, and what each setting does."""
    from lexent.cli.views import table
    from lexent.studies import analyses

    with Meter("") as meter:
        found = analyses.analyse(
            collection,
            what=options.names_of(what),
            recipe=options.names_of(recipe),
            lexicon=lexicon,
            encoder=encoder,
            baselines=options.names_of(baselines),
            measures=measures,
            split=split,
            train=train,
            progress=meter.update,
        )
    if json:
        show_json(found.to_json())
        return
    show(f"{found.collection} ({found.split}): {found.documents:,} documents, {found.queries:,} queries")
    for parts in found.parts.values():
        for part in parts:
            for each in part.tables():
                show("", each.title, *table(each.head, each.text()))
                if each.note:
                    show(each.note)
