"""lexent search: the best documents for a query, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lexent.cli import feedbacks, options
from lexent.cli.console import command, say_next, show, show_json
from lexent.cli.filters import Filter, filter_of
from lexent.cli.fuse import FusionName, weights_of
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.search.fused import FusedResults
    from lexent.search.matching import Mode

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
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="exact|fast",
            help="For recipes that match tokens, such as ssr: every document, or only candidates (approximate).",
            show_default=False,
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates",
            help="With --mode fast: how many documents are scored; 2000 if not given.",
            show_default=False,
        ),
    ] = None,
    coarse: Annotated[
        int | None,
        typer.Option(
            "--coarse",
            help="With --mode fast: how many concepts of each token find the candidates; 4 if not given.",
            show_default=False,
        ),
    ] = None,
    fuse: Annotated[
        str,
        typer.Option(
            "--fuse",
            metavar="NAMES",
            help="Also search by words, and fuse the two: bm25, or bm25=0.5 with a weight. Reads all stored texts.",
        ),
    ] = "",
    fusion: FusionName = "sum",
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
    sides = weights_of(fuse, flag="--fuse")
    if sides and (mode or candidates or coarse):
        raise InputError("--fuse takes the exact ranking; leave out --mode, --candidates and --coarse")
    asked: dict[str, Any] = {"k": k, "steer": steer, "filter": where, "idf_of_subset": subset_idf}
    asked |= {"feedback": learned, "like": like or (), "unlike": unlike or ()}
    with Index.open(path, encoder=encoder, lexicon=lexicon) as index:
        if sides:
            _show_fused(
                index.search_fused(options.checked_query(query), fuse=sides, fusion=fusion, **asked),
                full=explain,
                contributions=contributions,
                json=json,
            )
            return
        found = index.search(options.checked_query(query), mode=_mode(mode, candidates, coarse), **asked)
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


def _mode(name: str | None, candidates: int | None, coarse: int | None) -> Mode:
    """The mode of search, with its settings where any is given."""
    from lexent.search import Fast

    if candidates is None and coarse is None:
        return cast("Mode", name)
    if name != "fast":
        raise InputError("--candidates and --coarse are settings of the fast mode; add --mode fast")
    given = {"candidates": candidates, "concepts": coarse}
    return Fast(**{setting: value for setting, value in given.items() if value is not None})


def _show_fused(found: FusedResults, *, full: bool, contributions: int | None, json: bool) -> None:
    if json:
        show_json(found.to_dict(contributions=contributions))
        return
    from lexent.cli import views

    show(*views.fused(found, full=full))
