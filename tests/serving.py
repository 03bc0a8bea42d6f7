"""A running server for tests: in a thread of this process, over real sockets, on the tiny encoder."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx

import small
from lexent.encoders import TinyEncoder
from lexent.server.app import Server, address, config, listen, make
from lexent.server.settings import Settings


@contextmanager
def serving(
    paths: Sequence[Path], settings: Settings | None = None, *, loop: str = "auto", **parts: Any
) -> Iterator[httpx.Client]:
    """A client of a server that is ready; the tiny encoder and its lexicon where no others are given."""
    chosen: dict[str, Any] = {"encoder": TinyEncoder(), "lexicon": small.lexicon(), **parts}
    app = make(paths, settings, **chosen)
    made = listen("127.0.0.1", 0, others=False)
    given = settings or Settings()
    server = Server(config(app, given))
    server.config.loop = loop
    verify = True if given.tls_cert is None else ssl.create_default_context(cafile=given.tls_cert)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [made]}, daemon=True)
    thread.start()
    try:
        with httpx.Client(base_url=address(given, made), timeout=60, verify=verify) as client:
            wait_until_ready(client)
            client.app = app  # type: ignore[attr-defined]
            yield client
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        assert not thread.is_alive(), "the server did not end"


def wait_until_ready(client: httpx.Client, seconds: float = 300) -> None:
    end = monotonic() + seconds
    while monotonic() < end:
        try:
            if client.get("/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        sleep(0.02)
    raise AssertionError(f"the server was not ready within {seconds} s")


def is_problem(reply: httpx.Response, status: int) -> dict[str, Any]:
    """The body of an error, held to RFC 9457."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = reply.json()
    assert {"type", "title", "status", "detail"} <= set(body)
    assert body["status"] == status
    assert body["detail"]
    return body
