"""Options of relevance feedback, for the verbs that search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexent.cli.option_groups import Settings, changes_of, option_group, settings_group
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.search.feedback import Feedback

PANEL = "Relevance feedback"


@option_group
class FirstHits:
    """The first hits that feedback learns from."""

    PANEL = PANEL
    feedback: Annotated[int | None, typer.Option(metavar="N")] = None
    """Search twice: the second time also by concepts of the first N hits."""


@option_group
class Marked:
    """Documents that a person marked."""

    PANEL = PANEL
    like: Annotated[list[str] | None, typer.Option(metavar="ID")] = None
    """Search also by concepts of this document, which is what you look for. Repeatable."""
    unlike: Annotated[list[str] | None, typer.Option(metavar="ID")] = None
    """Search less by concepts of this document, which is not what you look for. Repeatable."""


SETTINGS = ("method", "concepts", "weight")
HITS = changes_of(FirstHits) + settings_group(
    "search/feedback.py", "Feedback", SETTINGS, panel=PANEL, prefix="--feedback-", with_defaults=False
)
"""Feedback from the first hits."""
DOCUMENTS = HITS + changes_of(Marked)
"""Feedback from the first hits, and from documents that a person marked."""


def feedback_of(given: Settings) -> Feedback | None:
    """The feedback that was requested; settings alone, without documents to learn from, are refused."""
    settings = {name: value for name, value in given.items() if name in SETTINGS}
    if not given.keys() & {"feedback", "like", "unlike"}:
        if settings:
            raise InputError("there is nothing to learn from: add --feedback 5, which learns from the first five hits")
        return None
    from lexent.search.feedback import Feedback

    return Feedback(documents=given.get("feedback", 0), **settings)


def learning_of(given: Settings) -> dict[str, Any]:
    """The feedback and the marked documents, as arguments of a search."""
    return {"feedback": feedback_of(given), "like": given.get("like", ()), "unlike": given.get("unlike", ())}
