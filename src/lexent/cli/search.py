"""lexent search: the best documents for a query, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from lexent.cli import feedbacks, options
from lexent.cli.console import command, say_next, show, show_json
from lexent.cli.filters import Filter, filter_of

HIGHLIGHTED = 20
"""Hits whose words are marked: each is encoded again, which takes some milliseconds."""


def search(
    path: options.IndexPath,
    query: options.QueryText,
    k: options.Hits = 5,
    boost: options.Boost = None,
    drop: options.Drop = None,
    filter: Filter = None,
    subset_idf: Annotated[
        bool,
        typer.Option(
            "--subset-idf", help="With --filter: concepts count by how rare they are among the documents left."
        ),
    ] = False,
    feedback: feedbacks.Count = None,
    feedback_method: feedbacks.MethodName = None,
    feedback_concepts: feedbacks.Concepts = None,
    feedback_weight: feedbacks.Weight = None,
    like: feedbacks.Like = None,
    unlike: feedbacks.Unlike = None,
    explain: Annotated[
        bool, typer.Option("--explain", "-e", help="Show the query's concepts and more of each hit's contributions.")
    ] = False,
    contributions: Annotated[
        int | None,
        typer.Option(
            "--contributions",
            help="With --json: at most this many contributions a hit, the others summed in its rest.",
            show_default=False,
        ),
    ] = None,
    encoder: options.IndexEncoder = None,
    lexicon: options.IndexLexicon = None,
    json: options.Json = False,
) -> None:
    """Search an index by concepts.

    Every hit shows the named contributions that its score is the sum of.
    """
    from lexent.search import Index

    steer, where = options.steer_of(boost, drop), filter_of(filter)
    learned = feedbacks.feedback_of(
        feedback, feedback_method, feedback_concepts, feedback_weight, marked=bool(like or unlike)
    )
    with Index.open(path, encoder=encoder, lexicon=lexicon) as index:
        found = index.search(
            options.checked_query(query),
            k=k,
            steer=steer,
            filter=where,
            idf_of_subset=subset_idf,
            feedback=learned,
            like=like or (),
            unlike=unlike or (),
        )
        if json:
            show_json(found.to_dict(contributions=contributions))
            return
        from lexent.cli import views
        from lexent.explain.highlight import highlights

        show(*views.results(found, words=highlights(found.hits[:HIGHLIGHTED]), full=explain))
        if not found.hits:
            say_next(command("lexent", "search", path, "other words"), command("lexent", "info", path))
            return
        strongest = found.concepts[0].label.split(" · ")[0]
        steps = [command("lexent", "explain", path, query, found.hits[-1].id)]
        if not steer:
            steps.append(command("lexent", "search", path, query, "--boost", f"{strongest}=2"))
        if not explain:
            steps.append(command("lexent", "search", path, query, "--explain"))
        say_next(*steps)
