"""The page's files, and the addresses that show it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.staticfiles import StaticFiles

SCREENS = ("/", "/search", "/compare", "/concept", "/document", "/lexicon")
"""Addresses that the page itself tells apart."""
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
"""Nothing comes from elsewhere, nothing written into the page runs, and no text can become HTML."""


class PageFiles(StaticFiles):
    """The files of the page, which a browser asks for again each time and gets again where they changed."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        """The file, or that the browser has it already."""
        response = super().file_response(*given, **named)
        response.headers["Cache-Control"] = "no-cache"
        return response


def router() -> APIRouter:
    """The routes of the page's files."""
    files, routes = PageFiles(packages=[("lexent.server", "page")]), APIRouter(include_in_schema=False)

    async def screen(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    async def part(request: Request, name: str) -> Response:
        return await files.get_response(name, request.scope)

    for path in SCREENS:
        routes.add_api_route(path, screen, methods=["GET", "HEAD"])
    routes.add_api_route("/page/{name}", part, methods=["GET", "HEAD"])
    return routes
