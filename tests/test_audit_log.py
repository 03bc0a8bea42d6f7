"""The audit log of a server: each change has a line before it and one after it, or is not made."""

from __future__ import annotations

import json
import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import small
from lexent.errors import InputError
from lexent.server import audit_log
from lexent.server.audit_log import AuditLog, Caller
from lexent.server.keys import Keys
from lexent.server.settings import Limits, Settings
from serving import is_problem, serving

ANNA, IMPORT = "a" * 20, "i" * 20
DOCUMENTS = "/v1/indexes/docs/documents"
LABEL = "/v1/indexes/docs/concepts/7/label"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def client(tmp_path: Path, log: Path) -> Iterator[httpx.Client]:
    small.build(tmp_path / "docs.lexent").close()
    keys = Keys(write=f"anna:{ANNA},import:{IMPORT}")
    settings = Settings(audit_log=str(log), keys=keys, limits=Limits(batch=3))
    with serving([tmp_path / "docs.lexent"], settings) as found:
        found.headers["Authorization"] = f"Bearer {ANNA}"
        yield found


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def rows(*ids: str, text: str = "zebra") -> list[dict[str, Any]]:
    return [{"id": id, "text": text, "metadata": {"n": 100}} for id in ids]


def test_each_change_says_who_what_and_when(client: httpx.Client, log: Path) -> None:
    begun = client.post(DOCUMENTS, json={"documents": rows("x", "y")}).json()["generation"]
    client.post(DOCUMENTS, json={"documents": rows("y"), "upsert": True}, headers={"Authorization": f"Bearer {IMPORT}"})
    client.delete(DOCUMENTS, params={"id": ["x"]})
    client.delete(DOCUMENTS, params={"filter": '{"n": {"gte": 100}}'})
    client.put(LABEL, json={"label": "mine"})
    client.delete(LABEL)
    client.post("/v1/indexes/docs/search", json={"query": "zebra"})
    found = lines(log)
    assert [line["event"] for line in found] == ["begin", "end"] * 6
    for first, last in zip(found[::2], found[1::2], strict=True):
        assert first["time"] <= last["time"]
        assert last["time"].endswith("Z")
        assert {name: last[name] for name in ("change", "who", "address", "index", "what")} == {
            name: first[name] for name in ("change", "who", "address", "index", "what")
        }
        assert (first["address"], first["index"], last["outcome"]) == ("127.0.0.1", "docs", "done")
        assert last["seconds"] >= 0
    assert len({line["change"] for line in found}) == 6
    assert [line["what"] for line in found[::2]] == ["add", "upsert", "delete", "delete", "rename", "rename"]
    assert [line["who"] for line in found[::2]] == ["anna", "import", *["anna"] * 4]
    assert [line.get("ids") for line in found[::2]] == [["x", "y"], ["y"], ["x"], None, None, None]
    assert (found[0]["documents"], found[1]["added"], found[1]["generation"]) == (2, 2, begun)
    assert (found[3]["added"], found[3]["replaced"], found[5]["deleted"], found[7]["deleted"]) == (1, 1, 1, 1)
    assert json.loads(found[6]["filter"]) == {"n": {"gte": 100}}
    assert [(line["concept"], line["label"]) for line in found[8::2]] == [(7, "mine"), (7, None)]
    text = log.read_text()
    assert not [secret for secret in (ANNA, IMPORT, "zebra") if secret in text]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_refused_change_has_its_outcome(client: httpx.Client, log: Path) -> None:
    assert client.post(DOCUMENTS, json={"documents": rows("d0")}).status_code == 422
    assert client.delete(DOCUMENTS, params={"id": "nothing"}).status_code == 404
    outcomes = [(line["outcome"], line["error"]) for line in lines(log)[1::2]]
    assert outcomes == [("refused", "input"), ("refused", "not-found")]
    assert (
        client.post(DOCUMENTS, json={"documents": rows("z")}, headers={"Authorization": "Bearer x"}).status_code == 401
    )
    assert len(lines(log)) == 4


def test_each_batch_of_a_bulk_add_is_a_change(client: httpx.Client, log: Path) -> None:
    content = "\n".join(json.dumps(row) for row in rows(*(f"b{n}" for n in range(7))))
    client.post(f"{DOCUMENTS}/bulk", content=content, headers={"content-type": "application/x-ndjson"})
    found = lines(log)
    assert [line["documents"] for line in found[::2]] == [3, 3, 1]
    assert [id for line in found[::2] for id in line["ids"]] == [f"b{n}" for n in range(7)]
    assert [(line["outcome"], line["added"]) for line in found[1::2]] == [("done", 3), ("done", 3), ("done", 1)]


def test_lines_are_bounded_and_hold_no_control_characters(
    client: httpx.Client, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MAX_IDS", 2)
    odd = "new\nline\x1b[2J\x7f\x9b\u2028" + "é" * 300
    client.post(DOCUMENTS, json={"documents": rows(odd, "x", "y")})
    assert log.read_bytes().count(b"\n") == 2
    assert not [byte for byte in log.read_bytes() if byte >= 0x7F or (byte < 0x20 and byte != 0x0A)]
    first = lines(log)[0]
    assert (first["documents"], first["ids"]) == (3, [f"{odd[:200]}…", "x"])


def test_without_its_log_nothing_changes(client: httpx.Client, log: Path, tmp_path: Path) -> None:
    client.post(DOCUMENTS, json={"documents": rows("x")})
    log.rename(tmp_path / "old.jsonl")
    log.mkdir()
    before = client.get("/v1/indexes/docs").json()
    requests = {
        "POST": (DOCUMENTS, {"documents": rows("y")}),
        "PUT": (LABEL, {"label": "mine"}),
        "DELETE": (f"{DOCUMENTS}?id=x", None),
    }
    for method, (path, body) in requests.items():
        assert "audit log" in is_problem(client.request(method, path, json=body), 503)["detail"]
    content, kind = json.dumps(rows("y")[0]), {"content-type": "application/x-ndjson"}
    last = json.loads(client.post(f"{DOCUMENTS}/bulk", content=content, headers=kind).text.splitlines()[-1])
    assert (last["done"], last["uncommitted"], "audit log" in last["error"]) == (False, 1, True)
    assert client.get("/v1/indexes/docs").json() == before
    assert client.get(f"{DOCUMENTS}?id=x").status_code == 200
    log.rmdir()
    assert client.post(DOCUMENTS, json={"documents": rows("y")}).status_code == 200
    assert [line["event"] for line in lines(log)] == ["begin", "end"]


def test_a_log_that_was_rotated_is_begun_anew(client: httpx.Client, log: Path, tmp_path: Path) -> None:
    for number in range(3):
        client.post(DOCUMENTS, json={"documents": rows(f"x{number}")})
        log.rename(tmp_path / f"audit.{number}")
    assert [lines(tmp_path / f"audit.{number}")[0]["ids"] for number in range(3)] == [["x0"], ["x1"], ["x2"]]
    log.write_text("")  # as logrotate's "create" does
    client.post(DOCUMENTS, json={"documents": rows("y")})
    os.truncate(log, 0)  # as its "copytruncate" does
    client.post(DOCUMENTS, json={"documents": rows("z")})
    assert [line["event"] for line in lines(log)] == ["begin", "end"]


def change(log: AuditLog, id: str) -> None:
    with log.change(Caller("anna", "192.0.2.1"), "docs", "add", **audit_log.named([id])):
        pass


def test_a_line_that_was_cut_off_does_not_damage_the_next(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_text('{"event":"beg')
    made = AuditLog(log)
    change(made, "x")
    whole, write = [], os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:20]))
        with pytest.raises(Exception, match="audit log cannot be written"):
            change(made, "y")
    change(made, "z")
    made.close()
    cut = 0
    for line in log.read_text().splitlines():
        try:
            whole.append(json.loads(line))
        except json.JSONDecodeError:
            cut += 1
    assert cut == 2
    assert [line.get("ids") for line in whole] == [["x"], None, ["z"], None]


def test_a_full_disk_refuses_and_an_unwritten_outcome_is_logged(
    log: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = AuditLog(log)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with made.change(Caller(), "docs", "add"):  # which is made, and so is not refused any more
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 10, before[1]))
    try:
        assert "the outcome of change" in caplog.text
        with pytest.raises(Exception, match="audit log cannot be written"):
            change(made, "y")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(Exception, match="audit log cannot be written"):
        change(made, "z")
    made.close()


def test_a_line_is_on_the_disk_before_its_change(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, synced = AuditLog(log), []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(len(log.read_text().splitlines())))
    with made.change(Caller(), "docs", "add"):
        assert synced == [1]
    assert synced == [1, 2]
    with pytest.raises(ZeroDivisionError), made.change(Caller(), "docs", "add"):
        _ = 1 / 0
    assert (lines(log)[-1]["outcome"], lines(log)[-1]["error"]) == ("failed", "unexpected")
    made.close()


def test_several_writers_share_a_log(log: Path) -> None:
    logs = [AuditLog(log), AuditLog(log)]

    def work(number: int) -> None:
        for each in range(50):
            change(logs[number % 2], f"{number}-{each}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = lines(log)
    assert len(found) == 400
    assert len({line["change"] for line in found}) == 200
    for made in logs:
        made.close()


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path, tmp_path / "nothing" / "audit.jsonl", tmp_path / "link", tmp_path / "pipe"):
        with pytest.raises(InputError, match="--audit-log FILE"):
            AuditLog(bad)
