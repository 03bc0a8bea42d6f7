"""lexent search: the best documents for a query, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lexent.cli import options, relevance_feedback
from lexent.cli.console import command, say_next, show, show_json
from lexent.cli.filters import Filtering, filter_of
from lexent.cli.fuse import WordFusion, weights_of
from lexent.cli.option_groups import Json, Settings, option_group, settings_group
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.search.modes import Mode

MAX_HIGHLIGHTED_HITS = 20
"""Hits whose words are marked: each is encoded again, which takes some milliseconds."""
FAST = settings_group(
    "search/modes.py",
    "Fast",
    ("candidates", "concepts"),
    flags={"concepts": "--coarse"},
    more_help=dict.fromkeys(("candidates", "concepts"), "With --mode fast."),
)


@option_group
class Shown:
    """How the ranking is made, and how much of it is shown."""

    k: options.Hits = 5
    mode: Annotated[str | None, typer.Option(metavar="exact|fast")] = None
    """For recipes that match tokens, such as ssr: every document, or only candidates (approximate)."""
    explain: Annotated[bool, typer.Option("-e")] = False
    """Show the query's concepts and more of each hit's contributions."""
    contributions: int | None = None
    """With --json: at most this many contributions a hit, the others summed in its rest."""


def search(
    path: options.IndexPath,
    query: options.QueryText,
    shown: Shown,
    steering: options.Steering,
    filtering: Filtering,
    fast: Annotated[Settings, FAST],
    fusion: WordFusion,
    feedback: Annotated[Settings, relevance_feedback.DOCUMENTS],
    models: options.IndexModels,
    json: Json = False,
) -> None:
    """Search an index by concepts.

    Every hit shows the named contributions that its score is the sum of.
    """
    from lexent.engine import Index
    from lexent.search import Fast

    steer, where, sides = steering.factors(), filter_of(filtering.filter), weights_of(fusion.fuse, flag="--fuse")
    if sides and (shown.mode or fast):
        raise InputError("--fuse takes the exact ranking; leave out --mode, --candidates and --coarse")
    if fast and shown.mode != "fast":
        raise InputError("--candidates and --coarse are settings of the fast mode; add --mode fast")
    requested: dict[str, Any] = {"k": shown.k, "steer": steer, "filter": where, "idf_of_subset": filtering.subset_idf}
    requested |= relevance_feedback.learning_of(feedback)
    text = options.checked_query(query)
    with Index.open(path, **vars(models)) as index:
        if sides:
            fused = index.search_fused(text, fuse=sides, fusion=fusion.fusion, **requested)
        else:
            found = index.search(text, mode=Fast(**fast) if fast else cast("Mode", shown.mode), **requested)
        if json:
            show_json((fused if sides else found).to_dict(contributions=shown.contributions))
            return
        from lexent.cli import views
        from lexent.explain.highlight import highlights

        if sides:
            show(*views.fused(fused, full=shown.explain, filtered=where is not None))
            return
        words = highlights(found.hits[:MAX_HIGHLIGHTED_HITS])
        show(*views.results(found, words=words, full=shown.explain, filtered=where is not None))
        if not found.hits:
            other = "other words" if where is None else query
            say_next(command("lexent", "search", path, other), command("lexent", "info", path))
            return
        strongest = found.concepts[0].label.split(" · ")[0]
        steps = [command("lexent", "explain", path, query, found.hits[-1].id)]
        if not steer:
            steps.append(command("lexent", "search", path, query, "--boost", f"{strongest}=2"))
        if not shown.explain:
            steps.append(command("lexent", "search", path, query, "--explain"))
        say_next(*steps)
