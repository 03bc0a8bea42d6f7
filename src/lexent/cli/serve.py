"""lexent serve: an HTTP API and a page where one sees why, and steers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.console import say
from lexent.cli.option_groups import Settings, values_group, with_option_groups
from lexent.errors import MissingExtraError

if TYPE_CHECKING:
    from lexent.models import EncoderLike, LexiconLike
    from lexent.server.settings import Limits

HOST, PORT = "127.0.0.1", 7777


LIMITS = values_group("server/settings.py", "Limits", panel="Limits (what one request may ask for)", prefix="--max-")

Host = Annotated[
    str, typer.Option("--host", help="Where to listen; beyond this machine a key is needed: LEXENT_API_KEY.")
]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, help="7777 where not given, or the next free one.", show_default=False),
]


@with_option_groups
def serve(
    *,
    paths: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Indexes, folders that `lexent index` made.")],
    host: Host = HOST,
    port: Port = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse all changes, whatever the key.")] = False,
    refresh: Annotated[
        float, typer.Option("--refresh", min=0.05, help="Seconds between looks for changes by other processes.")
    ] = 1.0,
    limits: Annotated[Settings, LIMITS],
    models: options.IndexModels,
) -> None:
    """Serve indexes over HTTP, with a page to search, steer and see why.

    Only this machine can reach it, unless --host says otherwise: then LEXENT_API_KEY must hold a key, and
    LEXENT_READ_KEY may hold another for those who only search. Changes made by other processes show within a second.
    """
    from lexent.server.settings import Limits

    start(
        paths, host=host, port=port, read_only=read_only, refresh=refresh, limits=Limits(**limits),
        encoder=models.encoder, lexicon=models.lexicon,
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
    run(paths, settings, made, encoder=encoder, lexicon=lexicon, ready=ready)


def _has_screen() -> bool:
    """Whether there is a browser with windows; one in the terminal would take it away."""
    import os
    import sys

    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(shown) or sys.platform in ("darwin", "win32")
