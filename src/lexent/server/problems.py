"""Errors in one shape, that of RFC 9457: what went wrong, and what to do."""

from __future__ import annotations

import logging
import math
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from lexent.errors import LexentError, LockedError

MEDIA = "application/problem+json"
log = logging.getLogger("lexent.server")


class ServerError(LexentError):
    """What only a server has to say."""

    def __init__(
        self,
        detail: str,
        *,
        status: int,
        slug: str,
        retry: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.http_status = status
        self.slug = slug
        self.retry = retry
        self.headers = headers


def overloaded(detail: str, *, retry: float = 1.0) -> ServerError:
    """429: too many requests."""
    return ServerError(f"{detail}; try again in {math.ceil(retry)} s", status=429, slug="overloaded", retry=retry)


def starting() -> ServerError:
    """503: the models are still being loaded."""
    return ServerError(
        "the server is still loading its models; try again in 1 s, GET /ready says when",
        status=503,
        slug="starting",
        retry=1.0,
    )


def too_slow(seconds: float) -> ServerError:
    """504: the request took too long."""
    return ServerError(
        f"this took longer than the {seconds:g} s that a request may take; ask for fewer documents, "
        "or start the server with a higher --max-seconds",
        status=504,
        slug="too-slow",
    )


def problem(status: int, detail: str, *, slug: str = "", **more: Any) -> dict[str, Any]:
    """The body of an answer that says what went wrong."""
    title = HTTPStatus(status).phrase
    kind = f"urn:lexent:problem:{slug}" if slug else "about:blank"
    return {"type": kind, "title": title, "status": status, "detail": detail, **more}


def answer(body: dict[str, Any], *, retry: float | None = None, headers: dict[str, str] | None = None) -> Response:
    """The response of a problem."""
    found = dict(headers or {})
    if retry is not None:
        found["Retry-After"] = str(math.ceil(retry))
    return Response(orjson.dumps(body), status_code=body["status"], media_type=MEDIA, headers=found)


def of(error: Exception) -> Response:
    """The answer to any error. What is not meant to happen is logged, and its words stay in the log."""
    if isinstance(error, ServerError):
        return answer(problem(error.http_status, str(error), slug=error.slug), retry=error.retry, headers=error.headers)
    if isinstance(error, LexentError):
        retry = 1.0 if isinstance(error, LockedError) else None
        return answer(problem(error.http_status, str(error), slug=_slug(error)), retry=retry)
    log.error("unexpected %s", type(error).__name__, exc_info=error)
    return answer(
        problem(500, "something went wrong that should not; the server's log has the traceback", slug="unexpected")
    )


def install(app: FastAPI) -> None:
    """Makes every error of the app an answer in this shape."""

    async def expected(_: Request, error: Exception) -> Response:
        return of(error)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        errors = [{"where": _where(one["loc"]), "message": str(one["msg"])} for one in error.errors()]
        first = errors[0] if errors else {"where": "request", "message": "cannot be read"}
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        detail = f"{first['where']}: {first['message']}{more}; what is allowed: GET /openapi.json"
        return answer(problem(422, detail, slug="invalid", errors=errors))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if isinstance(error.__cause__, LexentError):  # ours, on its way through the reading of a body
            return of(error.__cause__)
        details = {
            404: f"nothing is at {request.url.path}; what there is: GET /openapi.json",
            405: f"{request.method} is not answered at {request.url.path}; what is: GET /openapi.json",
        }
        detail = details.get(error.status_code, f"{error.detail}; what is allowed: GET /openapi.json")
        return answer(problem(error.status_code, detail), headers=dict(error.headers or {}))

    app.add_exception_handler(LexentError, expected)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, expected)


def _where(place: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in place)


def _slug(error: LexentError) -> str:
    """NotFoundError is "not-found"."""
    name = type(error).__name__.removesuffix("Error")
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).strip("-")
