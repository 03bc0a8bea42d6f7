"""lexent adapt explain: what an adapter did to a query, in parameters, in vectors and in names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lexent.cli import options, studies
from lexent.cli.adapt.eval import AdapterPath
from lexent.cli.console import show, show_json
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from pathlib import Path

    from lexent.adapters.directions import Named, Reading
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


def explainer(
    collection: str, adapter: Path, *, split: str | None, encoder: str | None, lexicon: str | None, meter: Meter
) -> Explainer:
    """What reads an adapter's changes, on a collection."""
    from lexent.adapters import load
    from lexent.evaluation.collections import load as read
    from lexent.evaluation.systems import Bench
    from lexent.studies.adapter_explanations import Explainer

    return Explainer(
        read(collection, split=split),
        load(adapter),
        encoder=Bench(encoder=encoder).encoder,
        lexicon=lexicon,
        progress=meter.update,
    )


def explain(
    collection: studies.CollectionName,
    adapter: AdapterPath,
    query: options.QueryText,
    document: Annotated[
        str | None, typer.Option("--document", metavar="ID", help="Also this document, wherever it ranks.")
    ] = None,
    by: Tables = "concepts",
    names: Names = 8,
    hits: options.Hits = 5,
    view: Annotated[
        View,
        typer.Option(
            "--view",
            help="effective: the whole change of the direction that documents are compared with. own: the same, less "
            "what all queries of the collection have in common. modulation: what the feedback documents did to the "
            "query alone, lifted by the projector's pseudoinverse, as in the paper.",
        ),
    ] = "effective",
    split: studies.Split = None,
    encoder: options.EncoderName = None,
    lexicon: options.LexiconName = None,
    json: options.Json = False,
) -> None:
    """Show what an adapter did to a query: which concepts it moved it towards and away from, and what came of it."""
    with Meter() as meter:
        found = explainer(collection, adapter, split=split, encoder=encoder, lexicon=lexicon, meter=meter).explain(
            options.checked_query(query),
            by=options.names_of(by),
            document=document,
            k=hits,
            names=names,
            view=view,
        )
    if json:
        show_json(found.to_json())
        return
    _show(found)


def _show(found: Explained) -> None:
    from lexent.cli.views import table

    parts, change = found.structure, found.change
    show(f"query  {found.query}", "")
    if parts.kept_base:
        show("this adapter kept the base: it changes nothing")
    rank = f"{parts.effective_rank:.0f} of {parts.width} directions"
    show(
        f"structure    {parts.mode}, {parts.parameters:,} numbers; projector {parts.projector_distance:.2f} from its "
        f"start, {rank}"
    )
    show(
        f"             on the query: W {change.by.distance:.2f} from the identity, bias {change.by.bias:.3f}; "
        f"on documents: W {change.upon.distance:.2f}, bias {change.upon.bias:.3f}"
    )
    show(
        f"attribution  the query moved by {change.length:.3f} (cosine with itself {change.cosine:.3f}), "
        f"{found.common_share:.0%} of it as other queries do",
        "",
    )
    head = ["document", "base rank", "rank", "base score", "score", "change", "moved"]
    rows = [
        [
            found.documents[each.position],
            f"{each.base_rank:,}",
            f"{each.rank:,}",
            f"{each.base_score:.3f}",
            f"{each.score:.3f}",
            f"{each.change:+.3f}",
            f"{each.moved:.3f}",
        ]
        for each in change.documents
    ]
    show(*table(head, rows), "")
    for name, reading in found.readings.items():
        _reading(f"the query, by {name}", reading)
    for id, reading in found.document_readings.items():
        _reading(f"document {id}", reading, few=3)


def _reading(title: str, reading: Reading, few: int | None = None) -> None:
    """Towards and away, strongest first."""
    show(f"{title}: {reading.explained:.0%} of the change")
    for word, named in (("towards", reading.towards), ("away from", reading.away)):
        if named:
            show(f"  {word:<9} {', '.join(_name(each) for each in named[:few])}")


def _name(each: Named) -> str:
    return f"{each.name} ({each.value:+.3f})"
