"""The query of a request: checked, and with its final weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lexent.errors import InputError
from lexent.search.feedback import Learning
from lexent.server.bodies import QueryBody
from lexent.server.settings import Limits

if TYPE_CHECKING:
    from lexent.search.query import Query
    from lexent.search.searcher import Searcher


def checked(body: QueryBody | Any, limits: Limits) -> str:
    """The query, where it is not longer than it may be."""
    query: str = body.query
    if len(query) > limits.query:
        raise InputError(f"the query has {len(query):,} characters; allowed: at most {limits.query:,}")
    return query


def learning_of(body: QueryBody) -> Learning | None:
    """The relevance feedback that a body requests."""
    return Learning.of(body.feedback, like=body.like, unlike=body.unlike)


def steer_of(body: QueryBody) -> dict[str | int, float]:
    """The factors of concepts that a body requests."""
    return dict(body.steer.items())


def weighed(searcher: Searcher, body: QueryBody) -> Query:
    """The query with its final weights."""
    return searcher.query(body.query, steer=steer_of(body), learning=learning_of(body))
