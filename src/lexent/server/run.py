"""Listening: a socket, the quickest event loop there is, and an end without losing what is on its way."""

from __future__ import annotations

import ctypes
import errno
import importlib.util
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn

from lexent.errors import InputError
from lexent.models import EncoderLike, LexiconLike
from lexent.server.app import make
from lexent.server.settings import Settings

MAX_PORTS_TRIED = 20
"""Ports that are tried where the usual one is taken."""
SHUTDOWN_SECONDS = 30
"""Seconds that requests have to end once the server is told to stop."""
SWITCH_INTERVAL_SECONDS = 0.0005
"""Seconds that a thread may hold the interpreter while another waits: the event loop must not wait for a search."""


def listen(host: str, port: int, *, others: bool) -> socket.socket:
    """A socket at that port; where it is taken and others will do, at the next free one."""
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
            raise InputError(
                f"cannot listen at {host}:{number}: {error.strerror}; choose another --host or --port"
            ) from (error)
        return made
    raise InputError(f"port {port} at {host} is taken; choose another: --port {port + 1}")


def address(settings: Settings, made: socket.socket) -> str:
    """What to type into a browser."""
    host = "127.0.0.1" if settings.host in ("localhost", "0.0.0.0") else settings.host
    return f"http://{f'[{host}]' if ':' in host else host}:{made.getsockname()[1]}"


def few_arenas() -> None:
    """Two heaps in all: the C library makes up to eight a core, and what a thread frees stays in its own."""
    with suppress(OSError, AttributeError):  # other systems have other C libraries
        ctypes.CDLL("libc.so.6").mallopt(-8, 2)  # M_ARENA_MAX


def run(
    paths: Sequence[Path],
    settings: Settings,
    made: socket.socket,
    *,
    encoder: EncoderLike = None,
    lexicon: LexiconLike = None,
    say: Callable[[str], None],
    ready: Callable[[], None],
) -> None:
    """Serves until it is told to stop; an index or model that cannot be opened ends it with its error."""
    trouble: list[BaseException] = []

    def failed(error: BaseException) -> None:
        trouble.append(error)
        server.should_exit = True

    app = make(paths, settings, encoder=encoder, lexicon=lexicon, say=say, ready=ready, failed=failed)
    config: dict[str, Any] = {
        "loop": "uvloop" if importlib.util.find_spec("uvloop") else "asyncio",
        "http": "httptools" if importlib.util.find_spec("httptools") else "h11",
        "ws": "none",
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "date_header": False,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": SHUTDOWN_SECONDS,
    }
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    server = uvicorn.Server(uvicorn.Config(app, **config))
    few_arenas()
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        server.run(sockets=[made])
    finally:
        sys.setswitchinterval(before)
    if trouble:
        raise trouble[0]
