"""Request guard middleware: API keys, host and origin checks, security headers, metrics. Plain ASGI."""

from __future__ import annotations

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexent.server import problems
from lexent.server.audit_log import Caller
from lexent.server.connections import network
from lexent.server.files import POLICY
from lexent.server.host_header import host_name, is_loopback
from lexent.server.keys import READ_KEY, WRITE_KEY
from lexent.server.metrics import Metrics
from lexent.server.problems import ServerError
from lexent.server.rate_limit import RateLimit
from lexent.server.request_bodies import RequestBodies
from lexent.server.settings import Settings

KEY_PATHS = ("/v1/", "/metrics", "/openapi.json")
"""Paths that need a key where the server has one. The page's files hold no data and need none."""
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
READ_PATHS = ("/search", "/explain", "/words", "/compare")
"""POST requests that only read."""
SECURITY_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class RequestGuard:
    """The outermost middleware of the app."""

    def __init__(self, app: ASGIApp, *, settings: Settings, metrics: Metrics, bodies: RequestBodies) -> None:
        self._app, self._settings, self._metrics, self._bodies = app, settings, metrics, bodies
        self._rate = None if settings.rate_limit is None else RateLimit(settings.rate_limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status, begun = perf_counter(), 500, False

        async def sending(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                named = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *SECURITY_HEADERS]
                if b"cache-control" not in named:
                    message["headers"].append((b"cache-control", b"no-store"))
            await send(message)

        self._metrics.running.inc()
        try:
            self._check(scope)
            await self._app(scope, self._bodies.limited(scope, receive), sending)
        except ServerError as error:
            if begun:
                raise
            await problems.of(error)(scope, receive, sending)
        finally:
            self._metrics.running.dec()
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.answered(route, scope["method"], status, perf_counter() - start)

    # --- access ------------------------------------------------------------------------------------------------

    def _check(self, scope: Scope) -> None:
        size = sum(len(name) + len(value) for name, value in scope["headers"])
        if size + len(scope.get("raw_path", b"")) + len(scope["query_string"]) > self._settings.limits.headers:
            detail = f"the headers are larger than {self._settings.limits.headers:,} bytes"
            raise ServerError(detail, status=431, slug="too-large")
        headers = dict(scope["headers"])
        self._check_host(scope, headers)
        path, method = scope["path"], scope["method"]
        if not path.startswith(KEY_PATHS):
            return
        key, address = self._settings.keys.find(_key(headers)), (scope.get("client") or ("",))[0]
        if self._rate is not None:
            self._rate.take(f"key {key.name}" if key.secret else network(address), perf_counter())
        if key.access == "none":
            raise ServerError(
                f"a key is needed: send it as Authorization: Bearer KEY; it is in {WRITE_KEY} or {READ_KEY} where "
                "the server was started",
                status=401,
                slug="no-key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        changes = method not in SAFE_METHODS and not path.endswith(READ_PATHS)
        if changes and self._settings.read_only:
            raise ServerError(
                "this server was started with --read-only; start it without to change anything",
                status=403,
                slug="read-only",
            )
        if changes and key.access != "write":
            raise ServerError(
                f"this key may read and not change; use the one in {WRITE_KEY}", status=403, slug="read-only"
            )
        scope.setdefault("state", {})["caller"] = Caller(key.name, address)

    def _check_host(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Refuse other host names on loopback (DNS rebinding) and requests from pages of other origins."""
        given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        host = given[0] if given else ""
        if given or scope["http_version"] != "1.0":  # which may leave it out
            name = host_name(given)
            if self._settings.loopback and not is_loopback(name) and name != (self._settings.public_name or "").lower():
                raise ServerError(
                    f'this server answers to localhost, not to "{host[:100]}"; to be reached by another name start it '
                    "with --host, or behind a proxy with --public-name, and a key",
                    status=421,
                    slug="other-host",
                )
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != host:
            raise ServerError(
                "requests from pages of other sites are not answered; send them from a program, or from this page",
                status=403,
                slug="other-origin",
            )


def _key(headers: dict[bytes, bytes]) -> bytes | None:
    given = headers.get(b"authorization", b"")
    kind, _, key = given.partition(b" ")
    return key.strip() if kind.lower() == b"bearer" else headers.get(b"x-api-key")
