"""lexent serve: an HTTP API and a page where one sees why, and steers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.console import say
from lexent.cli.option_groups import Settings, settings_group
from lexent.errors import MissingExtraError

if TYPE_CHECKING:
    from lexent.models import EncoderLike, LexiconLike

_SETTINGS = ("server/settings.py", "Settings")
_LIMITS = (
    *("body", "line", "query", "k", "batch", "concurrency", "writes", "seconds"),
    *("body_seconds", "connections", "connections_per_address"),
)
LIMITS = settings_group("server/settings.py", "Limits", _LIMITS, panel="Limits of requests", prefix="--max-")
PORT = settings_group(*_SETTINGS, ("port",), ranges={"port": {"min": 0, "max": 65535}})
_NAMES = ("host", "read_only", "refresh", "tls_cert", "tls_key", "public_name", "rate_limit", "audit_log")
SERVER = settings_group(*_SETTINGS, _NAMES, ranges={"refresh": {"min": 0.05}}) + PORT


def serve(
    paths: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Indexes, folders that `lexent index` made.")],
    settings: Annotated[Settings, SERVER],
    limits: Annotated[Settings, LIMITS],
    models: options.IndexModels,
) -> None:
    """Serve indexes over HTTP, with a page to search, steer and see why.

    Only this machine can reach it, unless --host says otherwise: then LEXENT_API_KEY must hold a key, and
    LEXENT_READ_KEY may hold another for those who only search. Changes made by other processes show within a second.
    """
    start(paths, settings, limits=limits, **vars(models))


def start(
    paths: list[Path],
    settings: Settings,
    *,
    limits: Settings | None = None,
    encoder: EncoderLike = None,
    lexicon: LexiconLike = None,
    trust_encoder: bool = False,
    query: str = "",
    browse: bool = False,
) -> None:
    """Serve until interrupted. Where no port is given and the usual one is taken, the next free one is used.

    query: what the page begins with; browse: show it in a browser when it is ready.
    """
    from importlib.util import find_spec
    from urllib.parse import urlencode

    for package in ("fastapi", "uvicorn", "prometheus_client"):
        if find_spec(package) is None:
            raise MissingExtraError(package.replace("_", "-"), extra="serve", purpose="serving over HTTP")
    # oneDNN keeps what it compiled for the last 1,024 shapes of batches, and here those vary in length. It reads this
    # when torch is first used, so it is set now.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
    from lexent.server.app import address, listen, run
    from lexent.server.keys import Keys
    from lexent.server.settings import Limits
    from lexent.server.settings import Settings as ServerSettings

    chosen = ServerSettings(keys=Keys.of(), limits=Limits(**limits or {}), **settings)
    chosen.tls()  # refused before anything is opened
    made = listen(chosen.host, chosen.port, others="port" not in settings)
    where = address(chosen, made)
    page = f"{where}/search?{urlencode({'q': query})}" if query else where

    def ready() -> None:
        say(f"ready    {page}  (API: {where}/openapi.json; stop: Ctrl-C)")
        # A browser without windows would take the terminal away.
        windows = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform in ("darwin", "win32")
        if browse and windows:
            import webbrowser

            webbrowser.open(page)

    say(f"serving  {', '.join(str(path) for path in paths)} at {where}; loading models")
    run(paths, chosen, made, encoder=encoder, lexicon=lexicon, trust_encoder=trust_encoder, ready=ready)
