"""TLS handshakes are counted as connections and have their time, as headers do."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep

import httpx
import pytest

import small
from certificates import certificate
from lexent.server.settings import Limits, Settings
from serving import serving
from test_server_connections import HEALTH, connected, rest_of

SECONDS = 1.0


@pytest.fixture(scope="module", params=["auto", "asyncio"])
def secured(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("tls")
    small.build(folder / "docs.lexent").close()
    cert, key = certificate(folder)
    limits = Limits(header_seconds=SECONDS, connections_per_address=6)
    settings = Settings(limits=limits, tls_cert=str(cert), tls_key=str(key))
    with serving([folder / "docs.lexent"], settings, loop=request.param) as client:
        yield client


def is_open(made: socket.socket) -> bool:
    made.settimeout(0)
    try:
        return made.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def hello() -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    """A client whose first message waits to be sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return client, incoming, outgoing


def test_handshakes_that_do_not_end_count_as_connections(secured: httpx.Client) -> None:
    begun = monotonic()
    with ExitStack() as opened:
        idle = [opened.enter_context(connected(secured)) for _ in range(200)]
        for made in idle[:194]:
            made.settimeout(SECONDS / 2)
            assert rest_of(made) == b""  # closed for the next ones
        assert monotonic() - begun < 10 * SECONDS
        assert httpx.get(secured.base_url.join("/health"), verify=False).status_code == 200
        assert sum(map(is_open, idle)) <= 6
        sleep(1.5 * SECONDS)
        assert sum(map(is_open, idle)) == 0
        assert secured.get("/health").status_code == 200


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_handshake_has_its_time(secured: httpx.Client, share: float) -> None:
    message = hello()[2].read()
    with connected(secured, message[: int(share * len(message))]) as made:
        begun = monotonic()
        assert bool(rest_of(made)) == (share == 1)
        assert SECONDS / 2 < monotonic() - begun < 5 * SECONDS


def test_what_is_not_tls_is_closed(secured: httpx.Client) -> None:
    begun = monotonic()
    with connected(secured, HEALTH) as made:
        assert b"HTTP" not in rest_of(made)
        assert monotonic() - begun < SECONDS / 2


def test_a_request_may_come_with_the_end_of_the_handshake(secured: httpx.Client) -> None:
    client, incoming, outgoing = hello()
    with connected(secured, outgoing.read()) as made:
        while True:
            incoming.write(made.recv(65536))
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                made.sendall(outgoing.read())
        client.write(HEALTH)
        made.sendall(outgoing.read())
        while True:
            incoming.write(made.recv(65536))
            try:
                assert client.read(12) == b"HTTP/1.1 200"
                return
            except ssl.SSLWantReadError:
                continue


def test_headers_that_do_not_end_are_closed_after_a_handshake_too(secured: httpx.Client) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with connected(secured) as made, context.wrap_socket(made) as inner:
        inner.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert b"HTTP/1.1 408 " in rest_of(inner)


def test_a_handshake_gives_its_place_to_its_connection(tmp_path: Path) -> None:
    small.build(tmp_path / "docs.lexent").close()
    cert, key = map(str, certificate(tmp_path))
    settings = Settings(limits=Limits(connections_per_address=1), tls_cert=cert, tls_key=key)
    with serving([tmp_path / "docs.lexent"], settings) as client:
        context = ssl.create_default_context(cafile=cert)
        for _ in range(20):
            with httpx.Client(base_url=client.base_url, verify=context) as other:
                assert [other.get("/health").status_code for _ in range(2)] == [200, 200]


def test_a_server_ends_while_a_handshake_does_not(tmp_path: Path) -> None:
    small.build(tmp_path / "docs.lexent").close()
    cert, key = certificate(tmp_path)
    with ExitStack() as opened:
        with serving([tmp_path / "docs.lexent"], Settings(tls_cert=str(cert), tls_key=str(key))) as client:
            made = opened.enter_context(connected(client, hello()[2].read()[:50]))
            assert client.get("/health").status_code == 200
            begun = monotonic()
        assert monotonic() - begun < 5
        assert rest_of(made) == b""
