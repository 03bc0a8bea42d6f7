"""lexent serve: an HTTP API and a page where one sees why, and steers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.console import say
from lexent.cli.fields import help_of
from lexent.errors import MissingExtraError

if TYPE_CHECKING:
    from lexent.search.parts import EncoderLike, LexiconLike
    from lexent.server.settings import Limits

PANEL = "Limits (what one request may ask for)"
HOST, PORT = "127.0.0.1", 7777


def _limit(flag: str, field: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(
        flag, help=help_of("server/settings.py", "Limits", field), rich_help_panel=PANEL
    )
    return found


Host = Annotated[
    str, typer.Option("--host", help="Where to listen; beyond this machine a key is needed: LEXENT_API_KEY.")
]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, help="7777 where not given, or the next free one.", show_default=False),
]


def serve(
    paths: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Indexes, folders that `lexent index` made.")],
    host: Host = HOST,
    port: Port = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse all changes, whatever the key.")] = False,
    refresh: Annotated[
        float, typer.Option("--refresh", min=0.05, help="Seconds between looks for changes by other processes.")
    ] = 1.0,
    max_body: Annotated[int, _limit("--max-body", "body")] = 16_000_000,
    max_line: Annotated[int, _limit("--max-line", "line")] = 1_000_000,
    max_query: Annotated[int, _limit("--max-query", "query")] = 2_000,
    max_k: Annotated[int, _limit("--max-k", "k")] = 1_000,
    max_batch: Annotated[int, _limit("--max-batch", "batch")] = 1_000,
    max_concurrency: Annotated[int, _limit("--max-concurrency", "concurrency")] = 64,
    max_writes: Annotated[int, _limit("--max-writes", "writes")] = 16,
    max_seconds: Annotated[float, _limit("--max-seconds", "seconds")] = 30.0,
    encoder: options.IndexEncoder = None,
    lexicon: options.IndexLexicon = None,
) -> None:
    """Serve indexes over HTTP, with a page to search, steer and see why.

    Only this machine can reach it, unless --host says otherwise: then LEXENT_API_KEY must hold a key, and
    LEXENT_READ_KEY may hold another for those who only search. Changes made by other processes show within a second.
    """
    from lexent.server.settings import Limits

    limits = Limits(
        body=max_body,
        line=max_line,
        query=max_query,
        k=max_k,
        batch=max_batch,
        concurrency=max_concurrency,
        writes=max_writes,
        seconds=max_seconds,
    )
    start(
        paths, host=host, port=port, read_only=read_only, refresh=refresh, limits=limits, encoder=encoder,
        lexicon=lexicon,
    )  # fmt: skip


def start(
    paths: list[Path],
    *,
    host: str = HOST,
    port: int | None = None,
    read_only: bool = False,
    refresh: float = 1.0,
    limits: Limits | None = None,
    encoder: EncoderLike = None,
    lexicon: LexiconLike = None,
    query: str = "",
    browse: bool = False,
) -> None:
    """Serves until interrupted. query: what the page begins with; browse: show it in a browser when it is ready."""
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        from importlib.util import find_spec

        if find_spec(package) is None:
            raise MissingExtraError(package.replace("_", "-"), extra="serve", purpose="serving over HTTP")
    import os
    from urllib.parse import urlencode

    # oneDNN keeps what it compiled for the last 1,024 shapes of batches, and here those vary in length. It reads this
    # when torch is first used, so it is said now.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
    from lexent.server.run import address, listen, run
    from lexent.server.settings import Keys, Limits, Settings

    settings = Settings(
        host=host, port=port if port is not None else PORT, keys=Keys.of(), limits=limits or Limits(),
        read_only=read_only, refresh=refresh,
    )  # fmt: skip
    made = listen(host, settings.port, others=port is None)
    where = address(settings, made)
    page = f"{where}/search?{urlencode({'q': query})}" if query else where

    def ready() -> None:
        say(f"ready    {page}  (API: {where}/openapi.json; stop: Ctrl-C)")
        if browse and _has_screen():
            import webbrowser

            webbrowser.open(page)

    say(f"serving  {', '.join(str(path) for path in paths)} at {where}; loading models")
    run(paths, settings, made, encoder=encoder, lexicon=lexicon, say=lambda _: None, ready=ready)


def _has_screen() -> bool:
    """Whether there is a browser with windows; one in the terminal would take it away."""
    import os
    import sys

    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(shown) or sys.platform in ("darwin", "win32")
