"""lexent search: the best documents for a query, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lexent.cli import feedbacks, options
from lexent.cli.console import command, say_next, show, show_json
from lexent.cli.filters import Filtering, filter_of
from lexent.cli.fuse import WordFusion, weights_of
from lexent.cli.option_groups import Settings, option_group, with_option_groups
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.search.fused import FusedResults
    from lexent.search.modes import Mode

MAX_HIGHLIGHTED_HITS = 20
"""Hits whose words are marked: each is encoded again, which takes some milliseconds."""


@option_group
@dataclass(frozen=True, slots=True)
class SearchMode:
    """Exact or fast MaxSim, with the settings of the fast one."""

    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="exact|fast",
            help="For recipes that match tokens, such as ssr: every document, or only candidates (approximate).",
            show_default=False,
        ),
    ] = None
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates",
            help="With --mode fast: how many documents are scored; 2000 if not given.",
            show_default=False,
        ),
    ] = None
    coarse: Annotated[
        int | None,
        typer.Option(
            "--coarse",
            help="With --mode fast: how many concepts of each token find the candidates; 4 if not given.",
            show_default=False,
        ),
    ] = None

    def chosen(self) -> Mode:
        """The mode, with its settings where any is given."""
        from lexent.search import Fast

        if self.candidates is None and self.coarse is None:
            return cast("Mode", self.mode)
        if self.mode != "fast":
            raise InputError("--candidates and --coarse are settings of the fast mode; add --mode fast")
        given = {"candidates": self.candidates, "concepts": self.coarse}
        return Fast(**{setting: value for setting, value in given.items() if value is not None})


@with_option_groups
def search(
    *,
    path: options.IndexPath,
    query: options.QueryText,
    k: options.Hits = 5,
    steering: options.Steering,
    filtering: Filtering,
    mode: SearchMode,
    fusion: WordFusion,
    feedback: Annotated[Settings, feedbacks.DOCUMENTS],
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
    models: options.IndexModels,
    json: options.Json = False,
) -> None:
    """Search an index by concepts.

    Every hit shows the named contributions that its score is the sum of.
    """
    from lexent.engine import Index

    steer, where, sides = steering.factors(), filter_of(filtering.filter), weights_of(fusion.fuse, flag="--fuse")
    if sides and (mode.mode or mode.candidates or mode.coarse):
        raise InputError("--fuse takes the exact ranking; leave out --mode, --candidates and --coarse")
    requested: dict[str, Any] = {"k": k, "steer": steer, "filter": where, "idf_of_subset": filtering.subset_idf}
    requested |= feedbacks.learning_of(feedback)
    with Index.open(path, encoder=models.encoder, lexicon=models.lexicon) as index:
        if sides:
            _show_fused(
                index.search_fused(options.checked_query(query), fuse=sides, fusion=fusion.fusion, **requested),
                full=explain,
                contributions=contributions,
                json=json,
                filtered=where is not None,
            )
            return
        found = index.search(options.checked_query(query), mode=mode.chosen(), **requested)
        if json:
            show_json(found.to_dict(contributions=contributions))
            return
        from lexent.cli import views
        from lexent.explain.highlight import highlights

        words = highlights(found.hits[:MAX_HIGHLIGHTED_HITS])
        show(*views.results(found, words=words, full=explain, filtered=where is not None))
        if not found.hits:
            other = "other words" if where is None else query
            say_next(command("lexent", "search", path, other), command("lexent", "info", path))
            return
        strongest = found.concepts[0].label.split(" · ")[0]
        steps = [command("lexent", "explain", path, query, found.hits[-1].id)]
        if not steer:
            steps.append(command("lexent", "search", path, query, "--boost", f"{strongest}=2"))
        if not explain:
            steps.append(command("lexent", "search", path, query, "--explain"))
        say_next(*steps)


def _show_fused(found: FusedResults, *, full: bool, contributions: int | None, json: bool, filtered: bool) -> None:
    if json:
        show_json(found.to_dict(contributions=contributions))
        return
    from lexent.cli import views

    show(*views.fused(found, full=full, filtered=filtered))
