"""The server as an ASGI app: its parts put together, opened when it starts and closed when it ends."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI

from lexent.artifact import lexent_version
from lexent.search.parts import EncoderLike, LexiconLike
from lexent.server import files, problems, routes
from lexent.server.gate import Gate
from lexent.server.metrics import Metrics
from lexent.server.settings import Settings
from lexent.server.shelf import Shelf
from lexent.server.workers import Workers

log = logging.getLogger("lexent.server")


def make(
    paths: Sequence[str | Path],
    settings: Settings | None = None,
    *,
    encoder: EncoderLike = None,
    lexicon: LexiconLike = None,
    say: Callable[[str], None] = log.info,
    ready: Callable[[], None] | None = None,
    failed: Callable[[BaseException], None] | None = None,
) -> FastAPI:
    """An app that serves these indexes.

    It answers at once, and searches when its models are loaded: GET /ready says when. ready: called then. failed:
    called where they cannot be loaded.
    """
    chosen = settings or Settings()
    limits = chosen.limits
    metrics = Metrics()
    shelf = Shelf([Path(path) for path in paths], limits=limits, metrics=metrics, encoder=encoder, lexicon=lexicon)
    workers = Workers(threads=chosen.threads, most=limits.concurrency, seconds=limits.seconds)

    def opening() -> None:
        try:
            shelf.open(say)
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
            if shelf.ready:
                await asyncio.to_thread(shelf.refresh)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        thread = threading.Thread(target=opening, name="lexent-opening", daemon=True)
        thread.start()
        fresh = asyncio.create_task(keep_fresh())
        yield
        fresh.cancel()
        with suppress(asyncio.CancelledError):
            await fresh
        await asyncio.to_thread(workers.close)
        if shelf.ready:
            await asyncio.to_thread(shelf.close)

    app = FastAPI(
        title="Lexent",
        version=lexent_version(),
        summary="Search by named concepts, and see why each hit was found.",
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
        lifespan=life,
        redirect_slashes=False,
    )
    app.state.shelf, app.state.metrics, app.state.workers = shelf, metrics, workers
    problems.install(app)
    app.include_router(routes.state_router(shelf, metrics))
    app.include_router(routes.api_router(shelf, chosen, workers))
    app.include_router(files.router())
    app.add_middleware(Gate, settings=chosen, metrics=metrics)
    return app
