"""lexent adapt explain and deletion: what an adapter did to a query, and whether its named directions matter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lexent.cli import options
from lexent.cli.adapt.eval import AdapterPath
from lexent.cli.console import Output
from lexent.cli.option_groups import option_group
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.adapters.deletion import Deletion
    from lexent.adapters.directions import Reading
    from lexent.cli.console import Line
    from lexent.studies.adapter_explanations import Explained, Explainer

View = Literal["effective", "own", "modulation"]
Tables = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="TABLES",
        help="What names come from, with commas: concepts of a pooled lexicon, words of the collection, or tokens, the "
        "encoder's input embeddings.",
    ),
]
Names = Annotated[int, typer.Option("--names", min=1, help="How many directions a change is read with.")]


@option_group
class ReadingOptions:
    """How a change is read."""

    document: Annotated[str | None, typer.Option(metavar="ID")] = None
    """Also this document, wherever it ranks."""
    by: Tables = "concepts"
    names: Names = 8
    hits: options.Hits = 5
    view: View = "effective"
    """What is read. effective: the whole change of the direction that documents are compared with. own: the same, less
    what all queries of the collection have in common. modulation: what the feedback documents did to the query alone,
    lifted by the projector's pseudoinverse, as in the paper."""


def explainer(collection: str, adapter: Path, *, split: str | None, models: options.Models, meter: Meter) -> Explainer:
    """What reads an adapter's changes, on a collection."""
    from lexent.adapters import load
    from lexent.evaluation.collections import load as read
    from lexent.evaluation.systems import Bench
    from lexent.studies.adapter_explanations import Explainer

    encoder = Bench(encoder=models.encoder).encoder
    loaded = read(collection, split=split)
    return Explainer(loaded, load(adapter), encoder=encoder, lexicon=models.lexicon, progress=meter.update)


def explain(
    collection: options.CollectionName,
    adapter: AdapterPath,
    query: options.QueryText,
    reading: ReadingOptions,
    models: options.Models,
    split: options.Split = None,
) -> Output:
    """Show what an adapter did to a query: which concepts it moved it towards and away from, and what came of it."""
    with Meter() as meter:
        found = explainer(collection, adapter, split=split, models=models, meter=meter).explain(
            options.checked_query(query),
            by=options.names_of(reading.by),
            document=reading.document,
            k=reading.hits,
            names=reading.names,
            view=reading.view,
        )
    return Output(found, _lines(found))


def _lines(found: Explained) -> Iterator[Line]:
    from lexent.cli.views import table

    parts, change = found.structure, found.change
    yield from (f"query  {found.query}", "")
    if parts.kept_base:
        yield "this adapter kept the base: it changes nothing"
    rank = f"{parts.effective_rank:.0f} of {parts.width} directions"
    yield (
        f"structure    {parts.mode}, {parts.parameters:,} numbers; projector {parts.projector_distance:.2f} from its "
        f"start, {rank}"
    )
    yield (
        f"             on the query: W {change.by.distance:.2f} from the identity, bias {change.by.bias:.3f}; "
        f"on documents: W {change.upon.distance:.2f}, bias {change.upon.bias:.3f}"
    )
    yield (
        f"attribution  the query moved by {change.length:.3f} (cosine with itself {change.cosine:.3f}), "
        f"{found.common_share:.0%} of it as other queries do"
    )
    yield ""
    head = ["document", "base rank", "rank", "base score", "score", "change", "moved"]
    rows = []
    for each in change.documents:
        row = [found.documents[each.position], f"{each.base_rank:,}", f"{each.rank:,}", f"{each.base_score:.3f}"]
        rows.append([*row, f"{each.score:.3f}", f"{each.change:+.3f}", f"{each.moved:.3f}"])
    yield from table(head, rows)
    yield ""
    for name, reading in found.readings.items():
        yield from _reading(f"the query, by {name}", reading)
    for id, reading in found.document_readings.items():
        yield from _reading(f"document {id}", reading, few=3)


def _reading(title: str, reading: Reading, few: int | None = None) -> Iterator[str]:
    """Towards and away, strongest first."""
    yield f"{title}: {reading.explained:.0%} of the change"
    for word, named in (("towards", reading.towards), ("away from", reading.away)):
        if named:
            yield f"  {word:<9} {', '.join(f'{each.name} ({each.value:+.3f})' for each in named[:few])}"


def deletion(
    collection: options.CollectionName,
    adapter: AdapterPath,
    models: options.Models,
    by: Tables = "concepts",
    names: Names = 8,
    queries: Annotated[int, typer.Option("--queries", min=2, help="How many queries are drawn.")] = 200,
    draws: Annotated[int, typer.Option("--draws", min=1, help="Random sets of directions a query.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Of the queries and sets that are drawn.")] = 0,
    split: options.Split = None,
) -> Output:
    """Take the named directions out of each query's change, and compare with random ones, and with a shorter change."""
    with Meter() as meter:
        reader = explainer(collection, adapter, split=split, models=models, meter=meter)
        found = [
            reader.deletion(by=name, queries=queries, names=names, draws=draws, seed=seed)
            for name in options.names_of(by)
        ]
    tables = [each.to_json() for each in found]
    return Output(
        {"collection": collection, "split": reader.collection.split, "tables": tables}, _deletion_lines(found)
    )


def _deletion_lines(found: list[Deletion]) -> Iterator[Line]:
    from lexent.cli.views import table
    from lexent.studies.analyses.table import p_text
    from lexent.undefined import shown

    labels = {"whole": "nothing", "named": "the named", "random": "random ones", "shrunk": "length alone"}
    for each in found:
        share = f"{shown(each.explained, '.0%')} of the change (random ones: {shown(each.explained_random, '.0%')})"
        yield from (f"{each.table}: {each.directions} directions of each of {each.queries:,} queries, {share}", "")
        p_values = {"random": each.p_random, "shrunk": each.p_shrunk}
        rows = [
            [
                labels.get(name, "the whole change"),
                shown(each.margin[name], ".4f"),
                shown(each.lost[name], ".0%"),
                shown(each.ndcg[name], ".4f"),
                p_text(p_values.get(name)),
            ]
            for name in each.margin
        ]
        yield from table(["taken away", "margin", "of the gain lost", "nDCG@10", "p"], rows)
        yield ""
    yield "margin: the best relevant document's score less the mean of the ten best others of the base"
    yield "p: paired one-sided t-test, the named cost more margin than these"
