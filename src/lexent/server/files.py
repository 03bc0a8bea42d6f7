"""The page's files, read once and served from memory. Only names that were found at the start are answered."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

SCREENS = ("/", "/search", "/compare", "/concept", "/document", "/lexicon")
"""Addresses that the page itself tells apart."""
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
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


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page, in memory."""

    content: bytes
    media: str
    tag: str


def read() -> dict[str, File]:
    """All files of the page, by name."""
    found = {}
    for entry in resources.files("lexent.server").joinpath("page").iterdir():
        ending = "." + entry.name.rpartition(".")[2]
        if ending in MEDIA:
            content = entry.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            found[entry.name] = File(content, MEDIA[ending], tag)
    return found


def router() -> APIRouter:
    """The routes of the page's files."""
    files, routes = read(), APIRouter(include_in_schema=False)

    def answer(request: Request, name: str) -> Response:
        file = files.get(name)
        if file is None:
            raise HTTPException(404)
        headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media, headers=headers)

    async def screen(request: Request) -> Response:
        return answer(request, "index.html")

    async def part(request: Request, name: str) -> Response:
        return answer(request, name)

    for path in SCREENS:
        routes.add_api_route(path, screen, methods=["GET", "HEAD"])
    routes.add_api_route("/page/{name}", part, methods=["GET", "HEAD"])
    return routes
