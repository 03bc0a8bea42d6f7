"""lexent search: the best documents for a query, and why."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lexent.cli import options, relevance_feedback
from lexent.cli.console import Output, command
from lexent.cli.filters import Filtering, filter_of
from lexent.cli.fuse import WordFusion, weights_of
from lexent.cli.option_groups import Settings, option_group, settings_group
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.search import Results
    from lexent.search.fused import FusedResults
    from lexent.search.modes import Mode, Unit

MAX_HIGHLIGHTED_HITS = 20
"""Hits whose words are marked: each is encoded again, which takes some milliseconds."""
HITS_AT_A_TIME = 2
"""Hits that are encoded together. The first are shown while the others are encoded."""
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
    unit: Annotated[str, typer.Option(metavar="document|passage")] = "document"
    """What hits are: documents, each by its best passage, or passages, of which several may be of one document."""
    min_strength: Annotated[float | None, typer.Option(metavar="0..1")] = None
    """Leave out hits of less strength, which means the same for every query."""
    min_score: Annotated[float | None, typer.Option(metavar="NUMBER")] = None
    """Leave out hits of a lower score."""
    mode: Annotated[str | None, typer.Option(metavar="exact|fast")] = None
    """For recipes that match tokens, such as ssr: every document, or only candidates (approximate)."""
    explain: Annotated[bool, typer.Option("-e")] = False
    """Show each hit's score by pairs of words, and the concepts of each line."""
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
) -> Iterator[Output]:
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
    if sides and shown.unit != "document":
        raise InputError("--fuse ranks documents; leave out --unit")
    least = {name: getattr(shown, name) for name in ("min_score", "min_strength")}
    bounded = any(value is not None for value in least.values())
    if sides and bounded:
        raise InputError("fused scores have no scale of their own; leave out --fuse, or --min-score and --min-strength")
    text = options.checked_query(query)
    filtered = where is not None
    with Index.open(path, **vars(models)) as index:
        if sides:
            fused = index.search_fused(text, fuse=sides, fusion=fusion.fusion, **requested)
            data = partial(fused.to_dict, contributions=shown.contributions)
            yield Output(data, _fused_lines(fused, full=shown.explain, filtered=filtered))
            return
        mode = Fast(**fast) if fast else cast("Mode", shown.mode)
        found = index.search(text, unit=cast("Unit", shown.unit), mode=mode, **least, **requested)
        if found.hits:
            steps = [command("lexent", "explain", path, query, found.hits[-1].id)]
            # Of the best hit: what the query has most of may be in no document.
            strongest = found.hits[0].explain().groups[0].label.split(" · ")[0]
            steps += [] if steer else [command("lexent", "search", path, query, "--boost", f"{strongest}=2")]
            steps += [] if shown.explain else [command("lexent", "search", path, query, "--explain")]
        else:
            other = query if filtered or bounded else "other words"
            steps = [command("lexent", "search", path, other), command("lexent", "info", path)]
        data = partial(found.to_dict, contributions=shown.contributions)
        yield Output(data, _lines(found, full=shown.explain, filtered=filtered, bounded=bounded), steps)


def _lines(found: Results, *, full: bool, filtered: bool, bounded: bool) -> Iterator[Line]:
    from lexent.cli import views
    from lexent.explain.highlight import highlights

    hits = found.hits[:MAX_HIGHLIGHTED_HITS]
    starts = range(0, len(hits), HITS_AT_A_TIME)
    words = chain.from_iterable(highlights(hits[start : start + HITS_AT_A_TIME]) for start in starts)
    yield from views.results(found, words=words, full=full, filtered=filtered, bounded=bounded)


def _fused_lines(found: FusedResults, *, full: bool, filtered: bool) -> Iterator[Line]:
    from lexent.cli import views

    yield from views.fused(found, full=full, filtered=filtered)
