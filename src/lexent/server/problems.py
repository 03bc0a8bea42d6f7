"""Errors in one shape, that of RFC 9457: what went wrong, and what to do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
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
    """An error that only a server has."""

    def __init__(self, detail: str, *, status: int, slug: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.http_status, self.slug, self.headers = status, slug, headers


def overloaded(detail: str) -> ServerError:
    """429: too many requests."""
    return ServerError(f"{detail}; try again in 1 s", status=429, slug="overloaded", headers={"Retry-After": "1"})


def starting() -> ServerError:
    """503: the models are still being loaded."""
    detail = "the server is still loading its models; try again in 1 s, GET /ready says when"
    return ServerError(detail, status=503, slug="starting", headers={"Retry-After": "1"})


def too_slow(seconds: float) -> ServerError:
    """504: the request took too long."""
    detail = (
        f"this took longer than the {seconds:g} s that a request may take; ask for fewer documents, "
        "or start the server with a higher --max-seconds"
    )
    return ServerError(detail, status=504, slug="too-slow")


def answer(
    status: int, detail: str, *, slug: str = "", headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """A response that says what went wrong."""
    kind = f"urn:lexent:problem:{slug}" if slug else "about:blank"
    body = {"type": kind, "title": HTTPStatus(status).phrase, "status": status, "detail": detail, **more}
    return Response(orjson.dumps(body), status_code=status, media_type=MEDIA, headers=headers)


def of(error: Exception) -> Response:
    """The answer to any error. What is not meant to happen is logged, and its words stay in the log."""
    if isinstance(error, ServerError):
        return answer(error.http_status, str(error), slug=error.slug, headers=error.headers)
    if isinstance(error, LexentError):
        headers = {"Retry-After": "1"} if isinstance(error, LockedError) else None
        return answer(error.http_status, str(error), slug=slug_of(error), headers=headers)
    log.error("unexpected %s", type(error).__name__, exc_info=error)
    return answer(500, "something went wrong that should not; the server's log has the traceback", slug="unexpected")


def install(app: FastAPI) -> None:
    """Makes every error of the app an answer in this shape."""

    async def expected(_: Request, error: Exception) -> Response:
        return of(error)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        errors = [{"where": ".".join(map(str, one["loc"])), "message": str(one["msg"])} for one in error.errors()]
        first = errors[0] if errors else {"where": "request", "message": "cannot be read"}
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        detail = f"{first['where']}: {first['message']}{more}; what is allowed: GET /openapi.json"
        return answer(422, detail, slug="invalid", errors=errors)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if isinstance(error.__cause__, LexentError):  # ours, on its way through the reading of a body
            return of(error.__cause__)
        details = {
            404: f"nothing is at {request.url.path}; what there is: GET /openapi.json",
            405: f"{request.method} is not answered at {request.url.path}; what is: GET /openapi.json",
        }
        detail = details.get(error.status_code, f"{error.detail}; what is allowed: GET /openapi.json")
        return answer(error.status_code, detail, headers=error.headers)

    handlers = {LexentError: expected, RequestValidationError: invalid, HTTPException: refused, Exception: expected}
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def slug_of(error: LexentError) -> str:
    """The kind of an error as one word: NotFoundError is "not-found"."""
    if isinstance(error, ServerError):
        return error.slug
    name = type(error).__name__.removesuffix("Error")
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).strip("-")
