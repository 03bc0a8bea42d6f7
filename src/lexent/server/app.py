"""The server as an ASGI app, and how it is run: its socket, its event loop, its end without losing requests."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import logging
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from lexent.artifact import lexent_version
from lexent.errors import InputError
from lexent.models import EncoderLike, LexiconLike
from lexent.server import files, problems, routes
from lexent.server.audit_log import AuditLog
from lexent.server.connections import protocol, within_open_files
from lexent.server.metrics import Metrics
from lexent.server.registry import IndexRegistry
from lexent.server.request_bodies import RequestBodies
from lexent.server.request_guard import RequestGuard
from lexent.server.settings import Settings
from lexent.server.workers import Workers

log = logging.getLogger("lexent.server")
MAX_PORTS_TRIED = 20
"""Ports that are tried where the usual one is taken."""
SHUTDOWN_SECONDS = 30
"""Seconds that requests have to end once the server is stopped."""
SWITCH_INTERVAL_SECONDS = 0.0005
"""Seconds that a thread may hold the interpreter while another waits: the event loop must not wait for a search."""


def make(
    paths: Sequence[str | Path],
    settings: Settings | None = None,
    *,
    encoder: EncoderLike = None,
    lexicon: LexiconLike = None,
    trust_encoder: bool = False,
    ready: Callable[[], None] | None = None,
    failed: Callable[[BaseException], None] | None = None,
) -> FastAPI:
    """An app that serves these indexes.

    It accepts requests at once; searches are answered 503 until GET /ready says that the models are loaded. ready:
    called then. failed: called with the error where they cannot be loaded.
    """
    chosen = settings or Settings()
    limits = chosen.limits
    metrics = Metrics()
    registry = IndexRegistry(
        [Path(path) for path in paths],
        limits=limits,
        metrics=metrics,
        encoder=encoder,
        lexicon=lexicon,
        trust_encoder=trust_encoder,
        audit_log=None if chosen.audit_log is None else AuditLog(chosen.audit_log),
    )
    workers = Workers(threads=chosen.threads, most=limits.concurrency, seconds=limits.seconds)

    def opening() -> None:
        try:
            registry.open()
        except BaseException as error:
            log.error("the indexes cannot be opened: %s", error)
            if failed is not None:
                failed(error)
            return
        if ready is not None:
            ready()

    async def keep_fresh() -> None:
        while True:
            await asyncio.sleep(chosen.refresh)
            if registry.ready:
                await asyncio.to_thread(registry.refresh)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        thread = threading.Thread(target=opening, name="lexent-opening", daemon=True)
        thread.start()
        fresh = asyncio.create_task(keep_fresh())
        yield
        fresh.cancel()
        with suppress(asyncio.CancelledError):
            await fresh
        await asyncio.to_thread(workers.close)
        if registry.ready:
            await asyncio.to_thread(registry.close)

    app = FastAPI(
        title="Lexent",
        version=lexent_version(),
        summary="Search by named concepts, and see why each hit was found.",
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.registry, app.state.metrics, app.state.workers = registry, metrics, workers
    app.state.bodies = bodies = RequestBodies(limits)
    problems.install(app)
    app.include_router(routes.state_router(registry, metrics))
    app.include_router(routes.api_router(registry, chosen, workers))
    app.include_router(files.router())
    app.add_middleware(RequestGuard, settings=chosen, metrics=metrics, bodies=bodies)
    app.openapi()  # makes the routes; the first requests would each begin to, and Python 3.11 fails where two parse
    return app


def listen(host: str, port: int, *, others: bool) -> socket.socket:
    """A socket at that port; others: at the next free one, where it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, port + (MAX_PORTS_TRIED if others and port else 1)):
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, number))
            made.listen(2048)
        except OSError as error:
            made.close()
            if error.errno == errno.EADDRINUSE:
                continue
            reason = f"cannot listen at {host}:{number}: {error.strerror}"
            raise InputError(f"{reason}; choose another --host or --port") from error
        return made
    raise InputError(f"port {port} at {host} is taken; choose another: --port {port + 1}")


def address(settings: Settings, made: socket.socket) -> str:
    """What to type into a browser."""
    host = "127.0.0.1" if settings.host in ("localhost", "0.0.0.0") else settings.host
    scheme = "http" if settings.tls_cert is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{made.getsockname()[1]}"


def config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves the app: one connection has its limits, as one request has."""
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # what strangers send is no warning
    return uvicorn.Config(
        app,
        http=protocol(within_open_files(settings.limits), settings.tls()),
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        proxy_headers=settings.public_name is not None,
        forwarded_allow_ips=["127.0.0.1", "::1"],
    )


class Server(uvicorn.Server):
    """Ends the streams of rows before it waits for requests to end."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and wait for requests to end."""
        self.config.app.state.bodies.stop()  # type: ignore[union-attr]
        await super().shutdown(sockets)


@contextmanager
def end_at_hangup(server: Server) -> Iterator[None]:
    """SIGHUP, of a terminal that was closed, ends the server as SIGTERM does; not where it is ignored (nohup)."""
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(hangup, lambda number, frame: server.handle_exit(signal.SIGTERM, frame))
    try:
        yield
    finally:
        signal.signal(hangup, before)


def run(
    paths: Sequence[Path],
    settings: Settings,
    made: socket.socket,
    *,
    encoder: EncoderLike = None,
    lexicon: LexiconLike = None,
    trust_encoder: bool = False,
    ready: Callable[[], None],
) -> None:
    """Serves until it is stopped; an index or model that cannot be opened ends it with its error."""
    errors: list[BaseException] = []

    def failed(error: BaseException) -> None:
        errors.append(error)
        server.should_exit = True

    app = make(
        paths,
        settings,
        encoder=encoder,
        lexicon=lexicon,
        trust_encoder=trust_encoder,
        ready=ready,
        failed=failed,
    )
    server = Server(config(app, settings))
    # Two heaps in all: the C library makes up to eight a core, and what a thread frees stays in its own.
    with suppress(OSError, AttributeError):  # other systems have other C libraries
        ctypes.CDLL("libc.so.6").mallopt(-8, 2)  # M_ARENA_MAX
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        with end_at_hangup(server):
            server.run(sockets=[made])
    finally:
        sys.setswitchinterval(before)
    if errors:
        raise errors[0]
