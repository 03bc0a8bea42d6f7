"""A server from its start to its end: what it prints, how it stops, and that nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import certificates
from commands import furnished, run, tiny
from lexent.engine import Index
from serving import wait_until_ready

NEW = [{"id": f"new{n}", "text": f"zebra number {n}"} for n in range(5)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnished(tmp_path_factory.mktemp("life"))


@contextmanager
def started(
    *words: object, verify: ssl.SSLContext | bool = True, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """`lexent serve` as a program of its own, at the address that it prints."""
    command = [sys.executable, "-m", "lexent", "serve", *(str(word) for word in words)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("serving  "), line
        address = line.split(" at ")[1].split(";")[0]
        with httpx.Client(base_url=address, timeout=60, verify=verify) as client:
            wait_until_ready(client)
            yield process, client
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def test_a_killed_server_loses_no_acknowledged_write(place: Path) -> None:
    path = place / "docs.lexent"
    with started(path, "--port", 0) as (process, client):
        for document in NEW:
            assert client.post("/v1/indexes/docs/documents", json={"documents": [document]}).status_code == 200
        assert client.delete("/v1/indexes/docs/documents", params={"id": "d0"}).status_code == 200
        assert client.put("/v1/indexes/docs/concepts/7/label", json={"label": "kept"}).status_code == 200
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    found = json.loads(run("search", path, "zebra number", "-k", 50, "--json").stdout)
    assert {document["id"] for document in NEW} <= {hit["id"] for hit in found["hits"]}
    with Index.open(path) as index:
        assert len(index) == 40 + 5 - 1
    assert run("verify", path).exit_code == 0
    assert "kept" in run("concepts", "show", "7", "--index", path).stdout


def test_a_server_that_is_told_to_stop_ends_well(place: Path) -> None:
    with started(place / "docs.lexent", "--port", 0) as (process, client):
        assert client.post("/v1/indexes/docs/search", json={"query": "yeast"}).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) in (0, -signal.SIGTERM)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


@contextmanager
def adding(client: httpx.Client, *, name: str, rows: int) -> Iterator[tuple[socket.socket, Callable[[], list[Any]]]]:
    """A bulk add in whose middle the client waits, and the lines of its answer so far."""
    with socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=60) as made:
        head = "POST /v1/indexes/docs/documents/bulk HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        made.sendall(f"{head}Content-Type: application/x-ndjson\r\n\r\n".encode())
        for number in range(rows):
            row = json.dumps({"id": f"{name}{number}", "text": f"zebra number {number}"}) + "\n"
            made.sendall(f"{len(row):x}\r\n{row}\r\n".encode())
        file = made.makefile("rb")

        def lines() -> list[Any]:
            found = []
            while (line := file.readline()) and line.strip() != b"0":
                if line.startswith(b"{"):
                    found.append(json.loads(line))
                    if "committed" in found[-1] and found[-1]["through"] == 6:
                        break
            return found

        yield made, lines


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_bulk_add_ends_with_its_last_line_when_the_server_is_stopped(place: Path, number: int) -> None:
    path, name = place / "docs.lexent", f"stop{int(number)}-"
    with (
        started(path, "--port", 0, "--max-batch", 3) as (process, client),
        adding(client, name=name, rows=8) as (made, lines),
    ):
        assert [line["through"] for line in lines()] == [3, 6]
        process.send_signal(number)
        (last,) = lines()
        made.close()
        assert "stopping" in last.pop("error")
        assert last == {"done": False, "uncommitted": 2, "lines": 8, "added": 6, "replaced": 0, "failed": 0}
        assert process.wait(timeout=20) == -signal.SIGTERM
    with Index.open(path) as index:
        found = index.documents.positions([f"{name}{row}" for row in range(8)])
        assert set(found) == {f"{name}{row}" for row in range(6)}


def test_a_bulk_add_accounts_for_every_row_when_the_disk_is_full(place: Path) -> None:
    path = place / "docs.lexent"
    with started(path, "--port", 0, "--max-batch", 3) as (process, client):
        rows = [{"id": f"full{row}", "text": f"zebra number {row}"} for row in range(5)]
        rows += [{"id": f"full{row}", "text": "zebra", "metadata": {"much": "a" * 900_000}} for row in range(5, 8)]
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        content = "\n".join(json.dumps(row) for row in rows).replace("zebra number 1", '"').encode()
        headers = {"content-type": "application/x-ndjson"}
        reply = client.post("/v1/indexes/docs/documents/bulk", content=content, headers=headers)
        last = json.loads(reply.text.splitlines()[-1])
        assert "no space left" in last.pop("error")
        assert last == {"done": False, "uncommitted": 3, "lines": 7, "added": 3, "replaced": 0, "failed": 1}
        assert client.get("/v1/indexes/docs").json()["documents"] > 0


def test_the_demo_opens_the_page_on_a_prepared_query(place: Path, tmp_path: Path) -> None:
    words = ["demo", "--serve", "--port", "0", "--entries", "30", *tiny(place)]
    environment = {**os.environ, "LEXENT_CACHE": str(tmp_path), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    process = subprocess.Popen(
        [sys.executable, "-m", "lexent", *words], stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("ready  "))
        page = httpx.URL(line.split()[1])
        assert page.params["q"] == "read a compressed file"
        assert httpx.get(page).text.startswith("<!doctype html>")
        index = httpx.get(page.join("/v1/indexes")).json()["default"]
        reply = httpx.post(page.join(f"/v1/indexes/{index}/search"), json={"query": page.params["q"]})
        assert len(reply.json()["hits"]) == 10
    finally:
        process.kill()
        process.communicate(timeout=30)


def test_a_taken_port_gives_way_to_the_next(place: Path) -> None:
    from lexent.errors import InputError
    from lexent.server.app import listen

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with listen("127.0.0.1", port, others=True) as other:
            assert port < other.getsockname()[1] < port + 20
        with pytest.raises(InputError, match=f"port {port} at 127.0.0.1 is taken"):
            listen("127.0.0.1", port, others=False)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nothing.lexent"], 3, "nothing.lexent"),
        (["docs.lexent", "--host", "0.0.0.0"], 2, "LEXENT_API_KEY"),
        (["docs.lexent", "--public-name", "papers.example.org"], 2, "LEXENT_API_KEY"),
        (["docs.lexent", "--max-k", "0"], 2, "the limit k is 0"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(
    place: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, message: str
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.delenv("LEXENT_API_KEY", raising=False)
    result = run("serve", "--port", 0, *words)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificates.certificate(tmp_path_factory.mktemp("tls"))


def test_a_server_with_a_certificate_answers_over_https(place: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    words = (place / "docs.lexent", "--port", 0, "--tls-cert", cert, "--tls-key", key)
    with started(*words, verify=ssl.create_default_context(cafile=cert)) as (_, client):
        assert client.base_url.scheme == "https"
        assert len(client.post("/v1/indexes/docs/search", json={"query": "yeast", "k": 3}).json()["hits"]) == 3
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(client.base_url.join("/health"))
        with pytest.raises(httpx.TransportError):
            httpx.get(client.base_url.copy_with(scheme="http").join("/health"))


def test_a_certificate_that_cannot_be_used_is_refused(place: Path, certificate: tuple[Path, Path]) -> None:
    cert, _ = certificate
    for words, says in (
        (["--tls-cert", cert], "go together"),
        (["--tls-cert", cert, "--tls-key", place / "nothing.pem"], "cannot be used"),
        (["--tls-cert", cert, "--tls-key", cert], "cannot be used"),
    ):
        result = run("serve", place / "docs.lexent", "--port", 0, *words)
        assert (result.exit_code, says in result.stderr) == (2, True), result.stderr


def test_a_server_beyond_this_machine_asks_for_its_key(place: Path) -> None:
    key = "k" * 24
    with started(place / "docs.lexent", "--port", 0, "--host", "0.0.0.0", LEXENT_API_KEY=key) as (_, client):
        assert client.get("/v1/indexes").status_code == 401
        assert client.get("/v1/indexes", headers={"Authorization": f"Bearer {key}"}).status_code == 200
