"""Options of relevance feedback, for the verbs that search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lexent.cli.fields import help_of
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.search.feedback import Feedback

PANEL = "Relevance feedback"
Methods = Literal["rocchio", "rm3"]


def _help(field: str) -> str:
    return help_of("search/feedback.py", "Feedback", field)


Count = Annotated[
    int | None,
    typer.Option(
        "--feedback",
        metavar="N",
        help="Search twice: the second time also by concepts of the first N hits.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
MethodName = Annotated[
    Methods | None,
    typer.Option("--feedback-method", help=_help("method"), rich_help_panel=PANEL, show_default=False),
]
Concepts = Annotated[
    int | None,
    typer.Option("--feedback-concepts", help=_help("concepts"), rich_help_panel=PANEL, show_default=False),
]
Weight = Annotated[
    float | None,
    typer.Option("--feedback-weight", help=_help("weight"), rich_help_panel=PANEL, show_default=False),
]
Like = Annotated[
    list[str] | None,
    typer.Option(
        "--like",
        metavar="ID",
        help="Search also by concepts of this document, which is what you look for. Repeatable.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
Unlike = Annotated[
    list[str] | None,
    typer.Option(
        "--unlike",
        metavar="ID",
        help="Search less by concepts of this document, which is not what you look for. Repeatable.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]


def feedback_of(
    count: int | None, method: Methods | None, concepts: int | None, weight: float | None, *, marked: bool = False
) -> Feedback | None:
    """The feedback that was asked for; settings alone, without documents to learn from, are refused."""
    if count is None and not marked:
        if (method, concepts, weight) != (None, None, None):
            raise InputError("there is nothing to learn from: add --feedback 5, which learns from the first five hits")
        return None
    from lexent.search.feedback import Feedback

    given: dict[str, Any] = {"method": method, "concepts": concepts, "weight": weight}
    return Feedback(documents=count or 0, **{name: value for name, value in given.items() if value is not None})
