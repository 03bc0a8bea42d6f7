"""Runs a server: its socket, its event loop, and its end without losing requests that are being answered."""

from __future__ import annotations

import ctypes
import errno
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import uvicorn

from lexent.errors import InputError
from lexent.models import EncoderLike, LexiconLike
from lexent.server.app import make
from lexent.server.settings import Settings

MAX_PORTS_TRIED = 20
"""Ports that are tried where the usual one is taken."""
SHUTDOWN_SECONDS = 30
"""Seconds that requests have to end once the server is stopped."""
SWITCH_INTERVAL_SECONDS = 0.0005
"""Seconds that a thread may hold the interpreter while another waits: the event loop must not wait for a search."""


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
    return f"http://{f'[{host}]' if ':' in host else host}:{made.getsockname()[1]}"


def run(
    paths: Sequence[Path],
    settings: Settings,
    made: socket.socket,
    *,
    encoder: EncoderLike = None,
    lexicon: LexiconLike = None,
    ready: Callable[[], None],
) -> None:
    """Serves until it is stopped; an index or model that cannot be opened ends it with its error."""
    errors: list[BaseException] = []

    def failed(error: BaseException) -> None:
        errors.append(error)
        server.should_exit = True

    app = make(paths, settings, encoder=encoder, lexicon=lexicon, ready=ready, failed=failed)
    config = uvicorn.Config(
        app,
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    server = uvicorn.Server(config)
    # Two heaps in all: the C library makes up to eight a core, and what a thread frees stays in its own.
    with suppress(OSError, AttributeError):  # other systems have other C libraries
        ctypes.CDLL("libc.so.6").mallopt(-8, 2)  # M_ARENA_MAX
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        server.run(sockets=[made])
    finally:
        sys.setswitchinterval(before)
    if errors:
        raise errors[0]
