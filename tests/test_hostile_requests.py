"""Requests as nobody should send them: each gets an answer or a closed connection, and changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import small
from lexent.indexing.manifest import verify
from lexent.server.settings import Settings
from serving import serving

MANY = int(os.environ.get("LEXENT_HOSTILE_REQUESTS", "20000"))
FINE = {100, *range(200, 500), 501, 503, 505}
"""Statuses that a server may give to anything; every other means that something broke."""
PATHS = [
    *("/", "/health", "/ready", "/metrics", "/openapi.json", "/v1/indexes", "/v1/indexes/docs"),
    *(f"/v1/indexes/docs/{name}" for name in ("search", "explain", "words", "compare", "lexicon", "concepts")),
    *("/v1/indexes/docs/documents", "/v1/indexes/docs/concepts/3", "/v1/indexes/docs/concepts/3/label"),
    "/v1/indexes/docs/documents/bulk",
    *("/v1/indexes/../../etc/passwd", "/v1/indexes/%2e%2e%2f%2e%2e/search", "/v1/indexes/docs/documents?id=d3"),
]  # fmt: skip
VALUES: list[Any] = [
    *(None, True, 0, -1, 3, 2**63, -(2**70), 1e308, 1e-320, "", "d3", "yeast dough", "#3", "\x00", "\u202e"),
    *("a" * 5000, "../../x", "' OR 1=1 --", "<script>", "%s%n", "{{7*7}}", [], {}),
]  # fmt: skip
NAMES = [
    *("query", "k", "filter", "steer", "mode", "id", "documents", "label", "title", "text", "metadata", "settings"),
    *("groups", "upsert", "feedback", "and", "or", "not", "in", "gte", "exists", "__proto__", "", "n", "#3"),
]  # fmt: skip
HEADERS = [
    *("Content-Length: 0", "Content-Length: -1", "Content-Length: 99999999999999"),
    *("Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"),
    *("Content-Encoding: gzip", "Expect: 100-continue"),
    *("Host: evil.example", "Host:", "Origin: https://evil.example", "Upgrade: websocket\r\nConnection: Upgrade"),
    *("Authorization: Bearer x", "Cookie: " + "a=b; " * 500, "X: " + "y" * 20_000, "Range: bytes=0-1", "A\x00b: c"),
    *("If-None-Match: *", "Accept: \xff", " folded: 1", "Content-Type: text/xml", "X-Forwarded-For: ::1"),
]  # fmt: skip


def hostile(chance: random.Random) -> bytes:
    """One request: well formed or not, about something that there is or not."""
    method = chance.choice(["GET", "POST", "POST", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", "é", ""])
    path = chance.choice(PATHS)
    body = json.dumps(value(chance, 4)).encode() if chance.random() < 0.8 else chance.randbytes(chance.randrange(200))
    if chance.random() < 0.1:
        body = b"[" * chance.randrange(100_000) if chance.random() < 0.5 else b'{"query":' * chance.randrange(3000)
    head = [f"{method} {path} HTTP/{chance.choice(['1.1', '1.1', '1.1', '1.0', '2.0', '9'])}"]
    if chance.random() < 0.9:
        head.append("Host: localhost")
    if chance.random() < 0.9:
        head.append("Content-Type: application/json")
    if chance.random() < 0.9:
        head.append(f"Content-Length: {len(body)}")
    if chance.random() < 0.4:
        head += chance.sample(HEADERS, 1 + chance.randrange(3))
    request = bytearray("\r\n".join([*head, "Connection: close", "", ""]).encode("latin-1") + body)
    if chance.random() < 0.3:
        for _ in range(1 + chance.randrange(6)):
            request[chance.randrange(len(request))] = chance.randrange(256)
    if chance.random() < 0.1:
        del request[chance.randrange(len(request)) :]
    return bytes(request)


def value(chance: random.Random, depth: int) -> Any:
    """JSON of names that the server knows, with values that it does not expect."""
    if depth == 4:
        query = {"query": "yeast dough"} if chance.random() < 0.7 else {}
        return {**query, **{chance.choice(NAMES): value(chance, 3) for _ in range(chance.randrange(4))}}
    if depth and chance.random() < 0.5:
        if chance.random() < 0.5:
            return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
        return {chance.choice(NAMES): value(chance, depth - 1) for _ in range(chance.randrange(4))}
    return chance.choice(VALUES)


def answered(port: int, request: bytes) -> list[int]:
    """The statuses that come back until the server closes the connection; a timeout where it does not."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as made:
        try:
            made.sendall(request)
            made.shutdown(socket.SHUT_WR)
            while piece := made.recv(65_536):
                found += piece
        except (ConnectionResetError, BrokenPipeError):  # refused before it was read
            pass
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", found)]


def attack(path: Path, count: int, seed: int) -> None:
    small.build(path, extras=("dense", "lexical")).close()
    chance, seen = random.Random(seed), Counter[int]()
    before = content(path)
    with serving([path], Settings(read_only=True)) as client:
        for number in range(count):
            request = hostile(chance)
            statuses = answered(client.base_url.port or 0, request)
            assert FINE.issuperset(statuses), (number, statuses, request[:2000])
            seen.update(statuses)
            if number % 500 == 0:
                assert client.get("/health").status_code == 200
        assert client.post("/v1/indexes/docs/search", json={"query": "yeast", "k": 3}).json()["hits"]
    assert {200, 400, 403, 404, 405, 422} <= set(seen)  # so that all layers were reached
    assert content(path) == before
    verify(path)


def content(path: Path) -> dict[str, str]:
    """The files of an index, but its locks."""
    files = (file for file in path.rglob("*") if file.is_file() and file.suffix != ".lock")
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_hostile_requests_are_answered_and_change_nothing(tmp_path: Path) -> None:
    attack(tmp_path / "docs.lexent", 1000, 0)


@pytest.mark.slow
def test_many_hostile_requests(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    attack(tmp_path / "docs.lexent", MANY, 1)
    record_property("requests", MANY)
