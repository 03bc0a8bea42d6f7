"""Who may ask a server, how much, and what is written on every answer."""

from __future__ import annotations

import gc
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from weakref import WeakSet

import httpx
import numpy as np
import pytest

import small
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.errors import InputError
from lexent.lexicon import Lexicon
from lexent.recipes import Recipe
from lexent.search.searcher import RepackedLists
from lexent.server.encoding import SharedEncoder, SharedLexicon
from lexent.server.keys import Keys
from lexent.server.micro_batching import MicroBatcher
from lexent.server.problems import ServerError
from lexent.server.rate_limit import RateLimit
from lexent.server.settings import Limits, Settings
from serving import is_problem, serving

WRITE, READ = "w" * 20, "r" * 20
SEARCH = "/v1/indexes/docs/search"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("limited") / "docs.lexent"
    small.build(folder).close()
    return folder


class SlowEncoder(TinyEncoder):
    """Waits before it encodes a query, until it is told to go on."""

    def __init__(self) -> None:
        self.going = threading.Event()
        self.going.set()
        self.sizes: list[int] = []

    def batches(self, texts: Any, *, kind: Any, level: Any = "tokens", specials: bool = True) -> Any:
        if kind == "query":
            self.sizes.append(len(texts))
            assert self.going.wait(30)
        yield from super().batches(texts, kind=kind, level=level, specials=specials)


def until(true: Callable[[], bool]) -> None:
    end = monotonic() + 20
    while not true():
        assert monotonic() < end
        sleep(0.005)


# --- keys and origins --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(place: Path) -> Iterator[httpx.Client]:
    with serving([place], Settings(keys=Keys(write=WRITE, read=READ))) as client:
        yield client


@pytest.fixture(scope="module")
def open_server(place: Path) -> Iterator[httpx.Client]:
    with serving([place]) as client:
        yield client


def raw(client: httpx.Client, lines: list[str]) -> int:
    """The status that a request gets as it is written here."""
    with socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=20) as made:
        made.sendall("\r\n".join(lines).encode())
        return int(made.recv(12).split()[1])


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {READ}"}])
def test_without_a_key_nothing_is_told(guarded: httpx.Client, headers: dict[str, str]) -> None:
    for method, path in (("GET", "/v1/indexes"), ("POST", SEARCH), ("GET", "/metrics"), ("GET", "/openapi.json")):
        reply = guarded.request(method, path, headers=headers)
        assert "Authorization: Bearer" in is_problem(reply, 401)["detail"]
        assert reply.headers["www-authenticate"] == "Bearer"
    for path in ("/", "/health", "/ready", "/page/app.js"):
        assert guarded.get(path).status_code == 200


def test_a_read_key_reads_and_a_write_key_writes(guarded: httpx.Client) -> None:
    read, write = {"Authorization": f"Bearer {READ}"}, {"X-API-Key": WRITE}
    new = {"documents": [{"id": "new", "text": "zebra"}]}
    assert guarded.post(SEARCH, json={"query": "yeast"}, headers=read).status_code == 200
    for method, path, body in (
        ("POST", "/v1/indexes/docs/documents", new),
        ("POST", "/v1/indexes/docs/documents/bulk", new),
        ("DELETE", "/v1/indexes/docs/documents?id=d1", None),
        ("PUT", "/v1/indexes/docs/concepts/1/label", {"label": "mine"}),
        ("DELETE", "/v1/indexes/docs/concepts/1/label", None),
    ):
        assert "LEXENT_API_KEY" in is_problem(guarded.request(method, path, json=body, headers=read), 403)["detail"]
    assert guarded.post("/v1/indexes/docs/documents", json=new, headers=write).status_code == 200
    assert guarded.delete("/v1/indexes/docs/documents?id=new", headers=write).status_code == 200


def test_keys_are_compared_in_constant_time_and_kept_out_of_sight() -> None:
    import inspect

    assert "compare_digest" in inspect.getsource(Keys.find)
    keys = Keys(write=WRITE, read=READ)
    assert WRITE not in repr(keys)
    assert [keys.find(given).access for given in (WRITE.encode(), READ.encode(), b"", None, b"\xff")] == [
        *("write", "read", "none", "none", "none")
    ]
    assert Keys().find(None).access == "write"
    assert Keys.of({"LEXENT_API_KEY": WRITE, "LEXENT_READ_KEY": ""}) == Keys(write=WRITE)
    several = Keys(write=f"anna:{WRITE}, import:{'i' * 20}", read=READ)
    found = [several.find(given) for given in (WRITE.encode(), b"i" * 20, READ.encode(), f"anna:{WRITE}".encode())]
    assert [(key.name, key.access) for key in found] == [
        *(("anna", "write"), ("import", "write"), ("read", "read"), ("anonymous", "none"))
    ]
    assert WRITE not in repr(several) + repr(found)
    for bad in (
        *({"write": "short"}, {"read": "ü" * 20}, {"write": WRITE, "read": WRITE}, {"write": f"a:{WRITE},short"}),
        *({"write": f"a:{WRITE},b:{WRITE}"}, {"write": f"a:{WRITE}", "read": f"a:{READ}"}),
        *({"write": f":{WRITE}"}, {"write": f"two words:{WRITE}"}, {"write": f"{WRITE},"}),
    ):
        with pytest.raises(InputError):
            Keys(**bad)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "example.org", "::"])
def test_beyond_this_machine_a_key_is_needed(host: str) -> None:
    with pytest.raises(InputError, match="LEXENT_API_KEY"):
        Settings(host=host)
    assert not Settings(host=host, keys=Keys(read=READ)).loopback
    assert Settings(host="localhost").loopback
    assert Settings(host="::1").loopback


def test_other_sites_are_refused(guarded: httpx.Client, place: Path) -> None:
    key = {"Authorization": f"Bearer {WRITE}"}
    own = f"http://{guarded.base_url.host}:{guarded.base_url.port}"
    assert guarded.get("/v1/indexes", headers={**key, "Origin": own}).status_code == 200
    is_problem(guarded.get("/v1/indexes", headers={**key, "Origin": "http://evil.example"}), 403)
    is_problem(guarded.get("/v1/indexes", headers={**key, "Origin": "null"}), 403)
    is_problem(guarded.get("/v1/indexes", headers={**key, "Host": "evil.example"}), 421)
    reply = guarded.options(SEARCH, headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"})
    assert reply.status_code == 403
    assert not [name for name in reply.headers if name.startswith("access-control")]
    # A form of another site can send text without asking first: it is not read as JSON.
    plain = guarded.post(SEARCH, content=b'{"query": "a"}', headers={**key, "Content-Type": "text/plain"})
    is_problem(plain, 422)


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        *[([host], 200) for host in ("localhost", "LOCALHOST:7777", "localhost.", "localhost.:80", "127.0.0.1:65535")],
        *[([host], 200) for host in ("127.0.0.2", "[::1]", "[::1]:7777", "[0:0:0:0:0:0:0:1]")],
        *[([host], 421) for host in ("evil.example", "localhost.evil.example", "localhostx", "127.0.0.1.evil.example")],
        *[([host], 421) for host in ("[2001:db8::1]", "10.0.0.1:7777", "127.1", "0x7f000001", "2130706433")],
        *[
            ([host], 400)
            for host in ("", ":80", "localhost:", "localhost:x", "localhost:65536", "localhost:-1", "a..b")
        ],
        *[
            ([host], 400)
            for host in ("localhost..", ".", "::1", "[::1", "[::1]x", "[::1%lo]", "[evil]", "[]", "::1:80")
        ],
        *[([host], 400) for host in ("user@localhost", "localhost:80@evil.example", "localhost/", "localhost#", "a b")],
        *[
            ([host], 400)
            for host in ("localhost,evil.example", "localhost:80:80", "lo\u0441alhost", "http://localhost")
        ],
        ([], 400),
        (["localhost", "localhost"], 400),
        (["localhost", "evil.example"], 400),
        (["localhost, evil.example"], 400),
    ],
)
def test_the_host_is_read_strictly(open_server: httpx.Client, hosts: list[str], status: int) -> None:
    lines = ["GET /health HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close", "", ""]
    assert raw(open_server, lines) == status


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://localhost/health", "evil.example", 200),  # RFC 9112: the target counts, not the header
        ("http://evil.example/health", "localhost", 421),
        ("http://user@localhost/health", "localhost", 400),
        ("http:///health", "localhost", 400),
        ("//evil.example/health", "localhost", 404),
        ("localhost:80", "localhost", 400),
    ],
)
def test_the_host_in_a_target_counts(open_server: httpx.Client, target: str, host: str, status: int) -> None:
    assert raw(open_server, [f"GET {target} HTTP/1.1", f"Host: {host}", "Connection: close", "", ""]) == status


def test_a_proxy_may_pass_its_own_name_on(place: Path) -> None:
    settings = Settings(public_name="papers.example.org", keys=Keys(read=READ))
    with serving([place], settings) as client:
        key = {"Authorization": f"Bearer {READ}"}
        for host, status in (("papers.example.org", 200), ("localhost", 200), ("evil.example", 421)):
            headers = {**key, "Host": host, "Origin": f"https://{host}"}
            assert client.get("/v1/indexes", headers=headers).status_code == status
        other = {**key, "Host": "papers.example.org", "Origin": "https://evil.example"}
        assert client.get("/v1/indexes", headers=other).status_code == 403


def test_http_1_0_needs_no_host(open_server: httpx.Client) -> None:
    assert raw(open_server, ["GET /health HTTP/1.0", "", ""]) == 200
    assert raw(open_server, ["GET /health HTTP/1.0", "Host: evil.example", "", ""]) == 421


def test_read_only_refuses_changes_whatever_the_key(place: Path) -> None:
    with serving([place], Settings(read_only=True)) as client:
        assert client.get("/v1/indexes").json()["writable"] is False
        assert client.post(SEARCH, json={"query": "yeast"}).status_code == 200
        reply = client.post("/v1/indexes/docs/documents", json={"documents": [{"id": "x", "text": "y"}]})
        assert "--read-only" in is_problem(reply, 403)["detail"]


def test_every_answer_has_a_strict_policy(guarded: httpx.Client) -> None:
    for path in ("/", "/page/app.js", "/v1/indexes", "/nothing", "/health"):
        headers = guarded.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    is_problem(guarded.get("/page/..%2f..%2fapp.py"), 404)
    is_problem(guarded.get("/page/nothing.js"), 404)


def test_the_page_is_sent_again_only_where_it_changed(guarded: httpx.Client) -> None:
    for path, kind in (("/", "text/html"), ("/page/app.js", "text/javascript"), ("/page/icon.svg", "image/svg+xml")):
        first = guarded.get(path)
        assert first.headers["content-type"].startswith(kind)
        assert first.headers["cache-control"] == "no-cache"
        again = guarded.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["cache-control"] == "no-cache"


# --- limits ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_server(place: Path) -> Iterator[httpx.Client]:
    limits = Limits(body=2_000, line=200, query=50, k=5, batch=3)
    with serving([place], Settings(limits=limits)) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        (SEARCH, {"query": "a" * 51}, 422, "at most 50"),
        (SEARCH, {"query": "a", "k": 6}, 422, "at most 5"),
        (SEARCH, {"query": "a", "steer": {"#1": 1e39}}, 422, "less than or equal to 1000"),
        (SEARCH, {"query": "a", "settings": {"k1": 1e308}}, 422, "from 0 to 1,000"),
        (SEARCH, {"query": "a", "settings": {"document_cap": 10**18}}, 422, "from 1 to 1,000,000"),
        (SEARCH, {"query": "a", "filter": {"n": list(range(1000))}}, 413, "2,000 bytes"),
        ("/v1/indexes/docs/explain", {"query": "a" * 51, "document": "d1"}, 422, "at most 50"),
        ("/v1/indexes/docs/words", {"query": "a" * 51, "documents": []}, 422, "at most 50"),
        ("/v1/indexes/docs/compare", {"query": "a" * 51}, 422, "at most 50"),
        (
            "/v1/indexes/docs/documents",
            {"documents": [{"id": f"x{n}", "text": "y"} for n in range(4)]},
            *(422, "documents/bulk"),
        ),
        (
            "/v1/indexes/docs/documents",
            {"documents": [{"id": "x", "text": "y", "metadata": {"a": json.loads("[" * 101 + "]" * 101)}}]},
            *(422, "more than 100 levels"),
        ),
    ],
)
def test_more_than_is_allowed_is_refused(
    small_server: httpx.Client, path: str, body: Any, status: int, words: str
) -> None:
    assert words in is_problem(small_server.post(path, json=body), status)["detail"]


def test_a_body_that_does_not_say_its_size_is_cut_off(small_server: httpx.Client) -> None:
    def body() -> Iterator[bytes]:
        yield b'{"query": "'
        for _ in range(100):
            yield b"a" * 100

    reply = small_server.post(SEARCH, content=body(), headers={"content-type": "application/json"})
    assert "2,000 bytes" in is_problem(reply, 413)["detail"]


def test_a_bulk_add_commits_in_batches_and_refuses_long_rows(small_server: httpx.Client) -> None:
    rows = [f'{{"id": "bulk{n}", "text": "zebra"}}' for n in range(7)]
    rows[2] = f'{{"id": "bulk2", "text": "{"z" * 300}"}}'
    headers = {"content-type": "application/x-ndjson"}
    reply = small_server.post("/v1/indexes/docs/documents/bulk", content="\n".join(rows).encode(), headers=headers)
    lines = [one for one in reply.text.splitlines() if "committed" in one]
    assert lines == ['{"committed":3,"through":4}', '{"committed":3,"through":7}']
    assert '{"done":true,"lines":7,"added":6,"replaced":0,"failed":1}' in reply.text
    ids = [f"bulk{n}" for n in (0, 1, 3)]
    assert small_server.delete("/v1/indexes/docs/documents", params={"id": ids}).status_code == 200


def test_a_bulk_add_commits_after_as_many_bytes_as_a_body_may_have(small_server: httpx.Client) -> None:
    rows = [f'{{"id": "fat{n}", "text": "zebra{" " * 150}"}}' for n in range(3)]
    limits = Limits(body=300, batch=1000)
    assert 150 < len(rows[0]) < 200 < limits.body
    headers = {"content-type": "application/x-ndjson"}
    with serving([small_server.app.state.registry.paths["docs"]], Settings(limits=limits)) as client:  # type: ignore[attr-defined]
        reply = client.post("/v1/indexes/docs/documents/bulk", content="\n".join(rows).encode(), headers=headers)
        lines = [json.loads(line) for line in reply.text.splitlines()]
        assert [line["through"] for line in lines if "through" in line] == [2, 3]
        # The same rows twice: each is added or replaces the one before it.
        content = "\n".join([*rows[:1], *rows[:1], ""]).encode()
        reply = client.post("/v1/indexes/docs/documents/bulk?upsert=true", content=content, headers=headers)
        last = {"done": True, "lines": 2, "added": 2, "replaced": 2, "failed": 0}
        assert json.loads(reply.text.splitlines()[-1]) == last
        ids = [f"fat{n}" for n in range(3)]
        assert client.delete("/v1/indexes/docs/documents", params={"id": ids}).status_code == 200


def test_settings_that_pack_the_index_again_share_few_copies(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[tuple[float, int | None]] = []
    alive: WeakSet[RepackedLists] = WeakSet()
    most = 0

    def counting(reader: Any, recipe: Recipe) -> RepackedLists:
        nonlocal most
        found = made(reader, recipe)
        packed.append((recipe.power, recipe.document_cap))
        alive.add(found)
        most = max(most, len(alive))
        return found

    made = RepackedLists.of
    monkeypatch.setattr(RepackedLists, "of", staticmethod(counting))

    def ask(**settings: Any) -> httpx.Response:
        return client.post(SEARCH, json={"query": "yeast dough", "settings": settings})

    encoder = SlowEncoder()
    with serving([place], encoder=encoder) as client, ThreadPoolExecutor(8) as pool:
        own = ask().json()["hits"]
        with Index.open(place, encoder=TinyEncoder(), lexicon=small.lexicon()) as index:
            found = index.searcher.retuned({"power": 0.9, "k1": 2}).search_many(["yeast dough"], k=10)[0]
            wanted = [hit.score for hit in found]
            del found
        packed.clear()
        gc.collect()
        most = len(alive)
        alike = list(pool.map(lambda k1: ask(power=0.9, k1=k1), range(1, 7)))
        assert packed == [(0.9, None)]
        assert [hit["score"] for hit in alike[1].json()["hits"]] == pytest.approx(wanted)
        assert ask(power=0.9, document_cap=3).status_code == ask(document_cap=3).status_code == 200
        assert most == 2
        encoder.going.clear()
        replies = [
            pool.submit(client.post, SEARCH, json={"query": f"new {n}", "settings": {"power": 1 + n / 10}})
            for n in range(6)
        ]
        until(lambda: sum(one.done() for one in replies) == 4)
        encoder.going.set()
        assert sorted(one.result().status_code for one in replies) == [200] * 2 + [429] * 4
        for one in replies:
            assert one.result().status_code == 200 or "power" in is_problem(one.result(), 429)["detail"]
        assert most == 2
        assert ask().json()["hits"] == own


def test_the_rate_of_a_key_is_limited(place: Path) -> None:
    settings = Settings(rate_limit=0.001, keys=Keys(write=WRITE, read=READ))
    with serving([place], settings) as client:
        for headers in ({"X-API-Key": READ}, {"X-API-Key": WRITE}, {}, {"X-API-Key": "guessed"}):
            reply = client.get("/v1/indexes", headers=headers)
            if headers == {"X-API-Key": "guessed"}:  # from the address of the one without a key
                is_problem(reply, 429)
                continue
            assert reply.status_code == (200 if headers else 401)
            again = client.get("/v1/indexes", headers=headers)
            assert "0.001 requests a second" in is_problem(again, 429)["detail"]
            assert 900 < int(again.headers["retry-after"]) <= 1000
        assert client.get("/health").status_code == 200


def test_a_rate_is_that_of_each_second_and_few_clients_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexent.server.rate_limit.MAX_CLIENTS", 2)
    limit = RateLimit(4)
    for now, allowed in ((0.0, 4), (0.0, 0), (0.5, 2), (10.0, 4), (10.0, 0)):
        for _ in range(allowed):
            limit.take("a", now)
        with pytest.raises(ServerError, match="4 requests a second; try again in 1 s"):
            limit.take("a", now)
    limit.take("b", 10.0)
    limit.take("c", 10.0)
    limit.take("a", 10.0)  # forgotten
    for rate in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="rate_limit is"):
            Settings(rate_limit=rate)


def test_too_many_at_once_are_told_to_come_back(place: Path) -> None:
    encoder = SlowEncoder()
    limits = Limits(concurrency=3)
    with serving([place], Settings(limits=limits), encoder=encoder) as client, ThreadPoolExecutor(8) as pool:
        encoder.going.clear()
        replies = [pool.submit(client.post, SEARCH, json={"query": f"zebra {n}"}) for n in range(8)]
        until(lambda: sum(one.done() for one in replies) == 5)
        refused = [one.result() for one in replies if one.done()]
        encoder.going.set()
        found = [one.result(timeout=30) for one in replies]
        assert sorted(one.status_code for one in found) == [200] * 3 + [429] * 5
        assert len(refused) == 5
        for one in refused:
            assert "try again" in is_problem(one, 429)["detail"]
            assert int(one.headers["retry-after"]) >= 1
        assert client.post(SEARCH, json={"query": "zebra"}).status_code == 200


def test_what_takes_too_long_is_told_so_and_keeps_its_place(place: Path) -> None:
    encoder = SlowEncoder()
    limits = Limits(concurrency=1, seconds=0.2)
    with serving([place], Settings(limits=limits), encoder=encoder) as client:
        encoder.going.clear()
        assert "--max-seconds" in is_problem(client.post(SEARCH, json={"query": "slow"}), 504)["detail"]
        is_problem(client.post(SEARCH, json={"query": "slow"}), 429)  # it is still being worked on
        encoder.going.set()
        until(lambda: client.app.state.workers.busy == 0)  # type: ignore[attr-defined]
        assert client.post(SEARCH, json={"query": "slow"}).status_code == 200


def test_before_it_is_ready_a_server_says_so(place: Path) -> None:
    from starlette.testclient import TestClient

    from lexent.server.app import make

    encoder = SlowEncoder()
    encoder.going.clear()
    said = threading.Event()
    app = make([place], encoder=encoder, lexicon=small.lexicon(), ready=said.set)
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/health").status_code == 200
        for reply in (client.get("/ready"), client.get("/v1/indexes"), client.post(SEARCH, json={"query": "a"})):
            assert reply.status_code == 503
            assert reply.headers["retry-after"] == "1"
        encoder.going.set()
        assert said.wait(30)
        assert client.get("/ready").status_code == 200
        assert client.get("/v1/indexes").status_code == 200


# --- encoding ----------------------------------------------------------------------------------------------------


def test_queries_that_come_together_are_encoded_together() -> None:
    slow = SlowEncoder()
    seen: list[int] = []
    batcher = MicroBatcher()
    shared = SharedEncoder(slow, batcher, observe=lambda size, _: seen.append(size))
    plain = TinyEncoder()

    def one(text: str) -> Any:
        (_, states), *_ = shared.batches([text], kind="query")
        return states.numpy()

    slow.going.clear()
    texts = [f"zebra number {n}" for n in range(12)]
    with ThreadPoolExecutor(16) as pool:
        first = pool.submit(one, "alone")
        until(lambda: slow.sizes == [1])
        futures = [pool.submit(one, text) for text in [*texts, texts[0]]]
        until(lambda: batcher.waiting == 13)
        slow.going.set()
        found = [future.result() for future in futures]
        assert first.result().shape == (1, 32)
    assert seen == [1, 12]  # one of them was asked for twice
    for text, states in zip([*texts, texts[0]], found, strict=True):
        (_, wanted), *_ = plain.batches([text], kind="query")
        np.testing.assert_array_equal(states, wanted.numpy())
    one(texts[3])
    assert seen == [1, 12]  # remembered
    batcher.close()


def test_codes_that_are_made_together_are_those_that_are_made_alone() -> None:
    plain, encoder = Lexicon.random(TinyEncoder(), size=5000, k=8), TinyEncoder()  # as wide as the 8-bit product needs
    batcher = MicroBatcher()
    shared = SharedLexicon(plain, batcher)
    states = [next(encoder.batches([" ".join(["zebra", "light", "dough"] * n)], kind="query"))[1] for n in range(1, 9)]
    held = threading.Event()
    with ThreadPoolExecutor(10) as pool:
        busy = pool.submit(batcher.run, None, lambda given: [held.wait(20) for _ in given], urgent=True)
        futures = [pool.submit(shared.codes, one, k=8) for one in states]
        until(lambda: batcher.waiting == 8)
        held.set()
        assert busy.result()
        found = [future.result() for future in futures]
    for one, codes in zip(states, found, strict=True):
        wanted = plain.codes(one, k=8)
        np.testing.assert_array_equal(codes.ids, wanted.ids)
        np.testing.assert_allclose(codes.values, wanted.values, rtol=1e-5)
        np.testing.assert_array_equal(codes.offsets, wanted.offsets)
    assert isinstance(shared.renamed(plain.concepts), SharedLexicon)
    assert shared.hash == plain.hash
    batcher.close()


def test_queries_go_before_documents_that_are_added() -> None:
    order: list[str] = []

    class Watched(TinyEncoder):
        def batches(self, texts: Any, *, kind: Any, level: Any = "tokens", specials: bool = True) -> Any:
            order.append(kind)
            yield from super().batches(texts, kind=kind, level=level, specials=specials)

    batcher = MicroBatcher()
    shared = SharedEncoder(Watched(), batcher)
    begun = threading.Event()

    def add() -> int:
        count = 0
        with batcher.low_priority():
            for rows, states in shared.batches(["some words"] * 400, kind="document"):
                begun.set()
                count += len(rows)
                assert len(states.offsets) == len(rows) + 1
        return count

    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(add)
        assert begun.wait(10)
        list(shared.batches(["a query"], kind="query"))
        assert adding.result() == 400
    assert 0 < order.index("query") < 50  # it did not wait for all 50 steps
    batcher.close()


def test_an_error_reaches_the_one_who_asked() -> None:
    class Broken(TinyEncoder):
        def batches(self, texts: Any, *, kind: Any, level: Any = "tokens", specials: bool = True) -> Any:
            if "bad" in texts:
                raise ValueError("bad text")
            yield from super().batches(texts, kind=kind, level=level, specials=specials)

    batcher = MicroBatcher()
    shared = SharedEncoder(Broken(), batcher)
    with pytest.raises(ValueError, match="bad text"):
        list(shared.batches(["bad"], kind="query"))
    assert list(shared.batches(["good"], kind="query"))
    batcher.close()
