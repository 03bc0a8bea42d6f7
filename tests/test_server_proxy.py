"""A server behind nginx, by the configuration of docs/serve.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest

import small
from certificates import certificate
from lexent.server.keys import Keys
from lexent.server.settings import Limits, Settings
from markdown import ROOT
from serving import is_problem, serving

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
NAME, KEY = "papers.example.org", "k" * 20
ELSEWHERE = "127.0.0.2"
CONNECTIONS = 20
"""Of one address, in the configuration."""
needs_nginx = pytest.mark.skipif(NGINX is None, reason="no nginx on the PATH")


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def documented(port: int, behind: int, cert: Path, key: Path) -> str:
    """The configuration of the page, with other ports and files."""
    (found,) = re.findall(r"```\n(limit_conn_zone.*?)```", (ROOT / "docs" / "serve.md").read_text(), re.DOTALL)
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/papers.pem", str(cert)),
        ("/etc/ssl/papers.key", str(key)),
        ("http://127.0.0.1:7777", f"http://127.0.0.1:{behind}"),
    ):
        assert found.count(old) == 1, old
        found = found.replace(old, new)
    assert f"limit_conn each {CONNECTIONS};" in found
    return found


@contextmanager
def nginx(folder: Path, behind: int) -> Iterator[tuple[str, ssl.SSLContext]]:
    """The address of a running nginx, and what its certificate is checked with."""
    cert, key = certificate(folder, NAME)
    port = free_port()
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder / kind};" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"daemon off; {user} pid {folder / 'pid'}; error_log {folder / 'error.log'}; events {{}}\n"
        f"http {{ access_log off; {paths}\n{documented(port, behind, cert, key)}}}\n"
    )
    process = subprocess.Popen([str(NGINX), "-p", folder, "-c", folder / "nginx.conf"], stderr=subprocess.PIPE)
    try:
        end = monotonic() + 20
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None, process.communicate()[1]
            assert monotonic() < end
            sleep(0.02)
        yield f"https://127.0.0.1:{port}", ssl.create_default_context(cafile=cert)
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proxy")
    small.build(folder / "docs.lexent").close()
    return folder


@pytest.fixture(scope="module")
def proxied(place: Path) -> Iterator[httpx.Client]:
    """A client of nginx with the right key."""
    settings = Settings(
        keys=Keys(write=f"anna:{KEY}"),
        public_name=NAME,
        limits=Limits(batch=3, body=100_000),
        rate_limit=200,
        audit_log=str(place / "audit.jsonl"),
    )
    with (
        serving([place / "docs.lexent"], settings) as direct,
        nginx(place, direct.base_url.port or 0) as (address, verify),
        httpx.Client(base_url=address, verify=verify, timeout=60) as client,
    ):
        client.headers.update({"Authorization": f"Bearer {KEY}", "Host": NAME})
        yield client


def secured(client: httpx.Client, place: Path) -> ssl.SSLSocket:
    made = socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=20)
    return ssl.create_default_context(cafile=place / "cert.pem").wrap_socket(made, server_hostname=NAME)


def from_elsewhere(client: httpx.Client, place: Path) -> httpx.Client:
    """The same client at another address."""
    context = ssl.create_default_context(cafile=place / "cert.pem")
    transport = httpx.HTTPTransport(local_address=ELSEWHERE, verify=context)
    return httpx.Client(transport=transport, base_url=client.base_url, headers=client.headers)


def bulk_head(key: str = KEY) -> bytes:
    lines = ("POST /v1/indexes/docs/documents/bulk HTTP/1.1", f"Host: {NAME}", f"Authorization: Bearer {key}")
    return "\r\n".join((*lines, "Content-Type: application/x-ndjson", "Transfer-Encoding: chunked", "", "")).encode()


def chunk(*ids: str) -> bytes:
    rows = "".join(json.dumps({"id": id, "text": "zebra"}) + "\n" for id in ids).encode()
    return b"%x\r\n%b\r\n" % (len(rows), rows)


@needs_nginx
def test_the_page_and_the_api_are_reached(proxied: httpx.Client) -> None:
    assert proxied.get("/").text.startswith("<!doctype html>")
    search: dict[str, Any] = {"json": {"query": "yeast", "k": 3}}
    assert len(proxied.post("/v1/indexes/docs/search", **search).json()["hits"]) == 3
    own = proxied.post("/v1/indexes/docs/search", headers={"Origin": f"https://{NAME}"}, **search)
    assert own.status_code == 200
    is_problem(proxied.post("/v1/indexes/docs/search", headers={"Origin": "https://evil.example"}, **search), 403)
    is_problem(proxied.get("/v1/indexes", headers={"Host": "evil.example"}), 421)
    is_problem(proxied.get("/v1/indexes", headers={"Authorization": "Bearer x"}), 401)


@needs_nginx
def test_a_bulk_add_is_a_stream_in_both_directions(proxied: httpx.Client, place: Path) -> None:
    with secured(proxied, place) as made:
        made.sendall(bulk_head() + chunk("s1", "s2", "s3"))
        file = made.makefile("rb")
        committed = next(line for line in file if line.startswith(b"{"))  # while the request is not complete
        assert json.loads(committed) == {"committed": 3, "through": 3}
        made.sendall(chunk("s4") + b"0\r\n\r\n")
        lines = []
        while not lines or "done" not in lines[-1]:
            lines += [json.loads(line)] if (line := file.readline()).startswith(b"{") else []
        assert (lines[-1]["done"], lines[-1]["added"]) == (True, 4)


@needs_nginx
def test_a_body_that_is_too_large_is_told_so(proxied: httpx.Client) -> None:
    document = {"id": "large", "text": "zebra " * 500_000}
    reply = proxied.post("/v1/indexes/docs/documents", json={"documents": [document]})
    assert "100,000 bytes" in is_problem(reply, 413)["detail"]
    assert proxied.get("/v1/indexes").status_code == 200


@needs_nginx
def test_the_limit_of_connections_is_that_of_each_client(proxied: httpx.Client, place: Path) -> None:
    with ExitStack() as opened:
        for _ in range(CONNECTIONS):
            opened.enter_context(secured(proxied, place)).sendall(bulk_head() + chunk("many"))
        end = monotonic() + 20
        while proxied.get("/health").status_code != 503:
            assert monotonic() < end
        with from_elsewhere(proxied, place) as client:
            assert client.get("/health").status_code == 200


@needs_nginx
def test_the_address_of_a_client_is_passed_on_and_cannot_be_chosen(proxied: httpx.Client, place: Path) -> None:
    with from_elsewhere(proxied, place) as client:
        forged = {"X-Forwarded-For": "198.51.100.7", "Forwarded": "for=198.51.100.7"}
        body = {"documents": [{"id": "forged", "text": "zebra"}]}
        assert client.post("/v1/indexes/docs/documents", json=body, headers=forged).status_code == 200
    found = [json.loads(line) for line in (place / "audit.jsonl").read_text().splitlines()]
    callers = {(line["who"], line["address"]) for line in found if "forged" in line.get("ids", [])}
    assert callers == {("anna", ELSEWHERE)}


@pytest.mark.parametrize("public_name", [None, NAME])
def test_only_a_proxy_may_say_the_address_of_a_client(place: Path, public_name: str | None) -> None:
    settings = Settings(keys=Keys(write=KEY), public_name=public_name, rate_limit=0.001)
    with serving([place / "docs.lexent"], settings) as client:
        for number, given in enumerate(("192.0.2.1", "192.0.2.2", "192.0.2.1", "198.51.100.9, 192.0.2.1")):
            status = client.get("/v1/indexes", headers={"X-Forwarded-For": given}).status_code
            one_too_many = number > 1 if public_name else number > 0
            assert status == (429 if one_too_many else 401)
