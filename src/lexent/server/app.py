"""The server as an ASGI app: routes, middleware and the registry of indexes, with their life cycle."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI

from lexent.artifact import lexent_version
from lexent.models import EncoderLike, LexiconLike
from lexent.server import files, problems, routes
from lexent.server.metrics import Metrics
from lexent.server.registry import IndexRegistry
from lexent.server.request_guard import RequestGuard
from lexent.server.settings import Settings
from lexent.server.workers import Workers

log = logging.getLogger("lexent.server")


def make(
    paths: Sequence[str | Path],
    settings: Settings | None = None,
    *,
    encoder: EncoderLike = None,
    lexicon: LexiconLike = None,
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
        [Path(path) for path in paths], limits=limits, metrics=metrics, encoder=encoder, lexicon=lexicon
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
    problems.install(app)
    app.include_router(routes.state_router(registry, metrics))
    app.include_router(routes.api_router(registry, chosen, workers))
    app.include_router(files.router())
    app.add_middleware(RequestGuard, settings=chosen, metrics=metrics)
    return app
