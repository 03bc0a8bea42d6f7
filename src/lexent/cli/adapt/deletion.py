"""lexent adapt deletion: whether the directions that explain an adapter matter to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options, studies
from lexent.cli.adapt.eval import AdapterPath
from lexent.cli.adapt.explain import Names, Tables, explainer
from lexent.cli.console import show, show_json
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.adapters.deletion import Deletion


def deletion(
    collection: studies.CollectionName,
    adapter: AdapterPath,
    by: Tables = "concepts",
    names: Names = 8,
    queries: Annotated[int, typer.Option("--queries", min=2, help="How many queries are drawn.")] = 200,
    draws: Annotated[int, typer.Option("--draws", min=1, help="Random sets of directions a query.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Of the queries and sets that are drawn.")] = 0,
    split: studies.Split = None,
    encoder: options.EncoderName = None,
    lexicon: options.LexiconName = None,
    json: options.Json = False,
) -> None:
    """Take the named directions out of each query's change, and compare with random ones, and with a shorter change."""
    with Meter() as meter:
        reader = explainer(collection, adapter, split=split, encoder=encoder, lexicon=lexicon, meter=meter)
        found = [
            reader.deletion(by=name, queries=queries, names=names, draws=draws, seed=seed)
            for name in options.names_of(by)
        ]
    if json:
        show_json(
            {"collection": collection, "split": reader.collection.split, "tables": [each.to_json() for each in found]}
        )
        return
    _show(found)


def _show(found: list[Deletion]) -> None:
    from lexent.cli.views import table
    from lexent.undefined import shown

    for each in found:
        show(
            f"{each.table}: {each.directions} directions of each of {each.queries:,} queries, "
            f"{shown(each.explained, '.0%')} of the change (random ones: {shown(each.explained_random, '.0%')})",
            "",
        )
        head = ["taken away", "margin", "of the gain lost", "nDCG@10", "p"]
        labels = {"whole": "nothing", "named": "the named", "random": "random ones", "shrunk": "length alone"}
        p_values = {"random": each.p_random, "shrunk": each.p_shrunk}
        rows = [
            [
                labels.get(name, "the whole change"),
                shown(each.margin[name], ".4f"),
                shown(each.lost[name], ".0%"),
                shown(each.ndcg[name], ".4f"),
                studies.p_value(p_values.get(name)),
            ]
            for name in each.margin
        ]
        show(*table(head, rows), "")
    show("margin: the best relevant document's score less the mean of the ten best others of the base")
    show("p: paired one-sided t-test, the named cost more margin than these")
