"""Clients that send without end, slowly or nothing at all are closed, and others are answered meanwhile."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

import small
from lexent.server.connections import network
from lexent.server.keys import Keys
from lexent.server.settings import Limits, Settings
from serving import serving

KEY = "w" * 20
LIMITS = Limits(headers=20_000, header_seconds=0.4, body_seconds=0.4, connections_per_address=6)
BODY = (
    b"POST /v1/indexes/docs/search HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 99\r\n"
)
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("connections") / "docs.lexent"
    small.build(folder).close()
    return folder


@pytest.fixture(scope="module")
def limited(place: Path) -> Iterator[httpx.Client]:
    with serving([place], Settings(limits=LIMITS, keys=Keys(write=KEY))) as client:
        yield client


@contextmanager
def connected(client: httpx.Client, sent: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=20) as made:
        made.sendall(sent)
        yield made


def rest_of(made: socket.socket) -> bytes:
    """All that the server still sends before it closes the connection."""
    found = b""
    try:
        while part := made.recv(65536):
            found += part
    except ConnectionError:
        pass
    return found


def answers(client: httpx.Client) -> bool:
    return httpx.get(client.base_url.join("/health"), timeout=20).status_code == 200


@pytest.mark.parametrize(
    "start", [b"GET / HTTP/1.1\r\nX-Long: ", b"GET /", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /"]
)
def test_headers_without_end_are_cut_off(limited: httpx.Client, start: bytes) -> None:
    with connected(limited, start) as made:
        try:
            for _ in range(1_000):
                made.sendall(b"a" * 65536)
        except ConnectionError:
            assert answers(limited)
            return
    raise AssertionError("64 MB of headers were read")


def test_headers_that_are_too_large_are_told_so(limited: httpx.Client) -> None:
    whole = httpx.get(limited.base_url.join("/health"), headers={"X-Long": "a" * 21_000})
    assert (whole.status_code, "20,000 bytes" in whole.json()["detail"]) == (431, True)
    with connected(limited, b"GET / HTTP/1.1\r\nX-Long: " + b"a" * 21_000) as made:
        head, _, body = rest_of(made).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 431 ")
        assert "20,000 bytes" in json.loads(body)["detail"]


def test_trailers_and_chunk_extensions_have_the_same_limit(limited: httpx.Client) -> None:
    chunked = b"POST /v1/indexes/docs/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1"
    for more in (b";x=" + b"a" * 65536, b"\r\na\r\n0\r\nX-Long: " + b"a" * 65536):
        with connected(limited, chunked + more[:20]) as made:
            try:
                for _ in range(1_000):
                    made.sendall(more[20:])
            except ConnectionError:
                continue
        raise AssertionError("64 MB of trailers were read")


def test_requests_that_do_not_end_are_closed(limited: httpx.Client) -> None:
    key = b"Authorization: Bearer " + KEY.encode() + b"\r\n"
    half = {
        b"": b"",
        b"\r\n": b"",
        b"GET /health HTTP/1.1\r\nHost: loc": b"408",
        HEALTH + b"GET /": b"408",
        BODY + key + b"\r\n{": b"408",
        BODY + b"\r\n{": b"401",
    }
    for sent, status in half.items():
        with connected(limited, sent) as made:
            assert answers(limited)
            found = rest_of(made)
            assert (b"HTTP/1.1 " + status in found) if status else found == b"", found


def test_a_body_that_drips_is_closed_whatever_it_sends(limited: httpx.Client) -> None:
    with connected(limited, BODY + b"Authorization: Bearer " + KEY.encode() + b"\r\n\r\n") as made:
        made.settimeout(0.1)
        for _ in range(90):
            made.sendall(b" ")
            try:
                found = made.recv(9)
            except TimeoutError:
                continue
            assert found == b"HTTP/1.1 "
            assert made.recv(3) == b"408"
            return
    raise AssertionError("90 bytes of body were awaited for 9 s")


def test_whoever_does_not_read_is_closed(limited: httpx.Client) -> None:
    key = b"Authorization: Bearer " + KEY.encode() + b"\r\n"
    document = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n" + key + b"\r\n"
    size = len(limited.get("/openapi.json", headers={"Authorization": f"Bearer {KEY}"}).content)
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect(("127.0.0.1", limited.base_url.port))
        made.sendall(document * 90)
        made.settimeout(20)
        with connected(limited) as other:
            rest_of(other)  # as long as the time that it has
            rest_of(other)
        for _ in range(5):
            with connected(limited) as other:
                rest_of(other)
        assert len(rest_of(made)) < 90 * size


def test_the_connection_that_waited_longest_gives_way(limited: httpx.Client, place: Path) -> None:
    """Of one address, and of all."""
    both = Limits(connections=6)
    with serving([place], Settings(limits=both)) as other:
        for client in (limited, other):
            with ExitStack() as opened:
                idle = [opened.enter_context(connected(client)) for _ in range(30)]
                for made in idle[:24]:
                    assert rest_of(made) == b""
                assert answers(client)
                last = idle[-1] if client is other else opened.enter_context(connected(client))
                last.sendall(HEALTH)
                assert last.recv(12) == b"HTTP/1.1 200"


def test_an_ipv6_network_counts_as_one_address() -> None:
    assert network("2001:db8::1") == network("2001:db8::ffff:1") == "2001:db8::/64"
    assert network("2001:db8:0:1::1") != network("2001:db8::1")
    assert network("::ffff:192.0.2.7") == network("192.0.2.7")
    assert network("fe80::1%eth0") == "fe80::/64"
