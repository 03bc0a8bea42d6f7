"""lexent concepts name: names of an index's concepts from its documents as they are now."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from lexent.cli import options
from lexent.cli.console import Output, command

SHOWN_NAMES = 5
"""Changed names that are shown, those of the concepts that most documents have."""


def name_concepts(
    path: options.IndexPath,
    lexicon: Annotated[
        str | None, typer.Option(metavar="NAME_OR_DIR", help="Where the index's lexicon is now, if it moved.")
    ] = None,
    wait: options.Wait = 0,
) -> Output:
    """Name the concepts of an index anew, from the words of its documents as they are now.

    Names are made when an index is built, here and by `lexent compact`; adding and deleting change none. Former names
    still find their concepts, and names of your own stay. Nothing is encoded, and no score changes.
    """
    from lexent.engine import Index

    start = perf_counter()
    with Index.open(path, lexicon=lexicon, wait=wait) as index:
        before = [concept.label for concept in index.lexicon.concepts]
        changed = index.name_concepts()
        counts = index.searcher.document_scorer.df
        concepts = [concept for concept in index.lexicon.concepts if concept.label != before[concept.id]]
    concepts.sort(key=lambda concept: (-int(counts[concept.id]), concept.id))
    seconds = perf_counter() - start
    rows = [{"id": concept.id, "label": concept.label, "before": before[concept.id]} for concept in concepts]
    first = concepts[0].id if concepts else 0
    return Output(
        {"path": str(path), "concepts": len(before), "changed": changed, "names": rows, "seconds": round(seconds, 3)},
        [f"named  {changed:,} of {len(before):,} concepts anew, {seconds:,.1f} s"],
        [command("lexent", "concepts", "show", first, "--index", path)],
        [f"such as  #{row['id']} {row['label']} (was: {row['before']})" for row in rows[:SHOWN_NAMES]],
    )
