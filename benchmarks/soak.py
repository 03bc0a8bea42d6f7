"""Changes, searches and kills on one index for a while: is all that was acknowledged still there, is memory flat?

    python -m benchmarks.soak [--minutes 30] [--docs docs/reliability.md]

Two servers and processes of the command line work on one index, with the tiny encoder, so that the index is what is
tried. One server and some of the processes are killed (SIGKILL) at random moments. Each writer has documents and a
concept of its own, and compares them with what is on the disk after each change. A change that was killed must be there
as a whole or not at all. Exit code 1 where anything was lost, hung, or failed.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

import numpy as np

from benchmarks.report import replace, setting, table
from benchmarks.serving import memory, serving
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.indexing.manifest import verify
from lexent.lexicon import Lexicon, user_labels
from lexent.types import Document

WORDS = [
    "flour",
    "yeast",
    "dough",
    "oven",
    "telescope",
    "galaxy",
    "orbit",
    "light",
    "pawn",
    "bishop",
    "rook",
    "castle",
    "dream",
]
RECORD = "reliability-soak.json"
STEADY, IDS_OF_WRITER = 200, 150
"""Documents that nobody changes, and that each writer may have."""
REQUEST_SECONDS, COMMAND_SECONDS = 60, 120
"""What takes longer hangs."""
WARM_SHARE, WINDOW_SHARE = 0.2, 0.1
"""Shares of the run: what comes before memory is compared, and the two windows whose means are compared."""


class HangError(Exception):
    """Something did not answer in time."""


def text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=1 + chance.randrange(40)))


@dataclass
class Owner:
    """A writer's part of the index: its documents by id, and the name of its concept, as they were acknowledged."""

    name: str
    concept: int
    chance: random.Random
    documents: dict[str, str] = field(default_factory=dict)
    label: str = ""

    def next(self) -> tuple[str, dict[str, str], list[str]]:
        """A change: its kind, documents to put and ids to delete."""
        ids = [f"{self.name}-{number}" for number in range(IDS_OF_WRITER)]
        kind = self.chance.choice(["upsert", "upsert", "delete", "rename"])
        if kind == "delete" and self.documents:
            some = self.chance.sample(sorted(self.documents), min(len(self.documents), 1 + self.chance.randrange(6)))
            return kind, {}, some
        if kind == "rename":
            return kind, {}, []
        return "upsert", {id: text(self.chance) for id in self.chance.sample(ids, 1 + self.chance.randrange(6))}, []


class Soak:
    """What the threads of a run share."""

    def __init__(self, root: Path, seconds: float) -> None:
        self.root, self.path, self.seconds = root, root / "soak.lexent", seconds
        self.lexicon = Lexicon.random(TinyEncoder(), size=96)
        self.end, self.began = threading.Event(), monotonic()
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.lock = threading.Lock()
        self.steady = self.killed = 0
        """Ports of the server that lives as long as the run, and of the one that is killed; 0 while it is down."""

    def count(self, name: str, more: int = 1) -> None:
        with self.lock:
            self.counts[name] += more

    def fault(self, kind: str, detail: str) -> None:
        """Notes what must not happen."""
        self.count(kind)
        with self.lock:
            self.faults.append(f"{kind}: {detail}")
        print(f"{monotonic() - self.began:.0f} s  {kind}: {detail}", file=sys.stderr, flush=True)

    def started(self, work: Callable[[], None]) -> threading.Thread:
        """Repeats something in a thread until the end."""

        def repeat() -> None:
            while not self.end.is_set():
                try:
                    work()
                except HangError as error:
                    self.fault("hangs", str(error))
                except Exception:
                    self.fault("failures", traceback.format_exc())
                    sleep(1)

        thread = threading.Thread(target=repeat, name=getattr(work, "__name__", "work"), daemon=True)
        thread.start()
        return thread

    def held(self, owner: Owner) -> tuple[dict[str, str], str]:
        """An owner's documents and the name of its concept, as they are on the disk."""
        with Index.open(self.path, encoder=TinyEncoder(), lexicon=self.lexicon) as index:
            reader = index.documents
            there = reader.positions([f"{owner.name}-{number}" for number in range(IDS_OF_WRITER)])
            texts = [document.text for document in reader.at(list(there.values()))]
            concept = index.lexicon.concepts[owner.concept]
            label = concept.label if concept.source == user_labels.SOURCE else ""
            return dict(zip(there, texts, strict=True)), label

    def settle(self, owner: Owner, change: dict[str, str | None], label: str | None, done: bool | None) -> None:
        """Compares an owner's part with what it should be. done: None where nobody knows, as the writer was killed."""
        before = (owner.documents, owner.label)
        merged = {**owner.documents, **change}
        after = ({id: given for id, given in merged.items() if given is not None}, label or owner.label)
        allowed = {True: [after], False: [before], None: [before, after]}[done]
        found = self.held(owner)
        if found not in allowed:
            self.fault("lost", f"{owner.name} {change} {label} {done}: found {found}, allowed {allowed}")
        elif done is None:
            self.count("killed changes that were there" if found == after else "killed changes that were not")
        owner.documents, owner.label = found


# --- who works on it ---------------------------------------------------------------------------------------------


def call(port: int, method: str, target: str, body: Any = None) -> int | None:
    """The status of an answer; None where the connection broke."""
    made = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_SECONDS)
    headers = {} if body is None else {"Content-Type": "application/json"}
    try:
        made.request(method, target, None if body is None else json.dumps(body), headers)
        reply = made.getresponse()
        reply.read()
        return reply.status
    except TimeoutError as error:
        raise HangError(f"{method} {target} after {REQUEST_SECONDS} s") from error
    except (OSError, http.client.HTTPException):
        return None
    finally:
        made.close()


BASE = "/v1/indexes/soak"


def over_http(soak: Soak, owner: Owner, port: Callable[[], int]) -> None:
    """One change over HTTP."""
    kind, puts, gone = owner.next()
    label = f"{owner.name} name {soak.counts['changes over HTTP']}" if kind == "rename" else None
    if not (at := port()):
        sleep(0.1)
        return
    if label:
        status = call(at, "PUT", f"{BASE}/concepts/{owner.concept}/label", {"label": label})
    elif puts:
        documents = [{"id": id, "text": text} for id, text in puts.items()]
        status = call(at, "POST", f"{BASE}/documents", {"documents": documents, "upsert": True})
    else:
        status = call(at, "DELETE", f"{BASE}/documents?{'&'.join(f'id={quote(id)}' for id in gone)}")
    if status == 200:
        soak.count("changes over HTTP")
        soak.count(kind)
    elif status in (423, 429, 503):
        soak.count("changes refused while another process wrote")
    elif status is not None or at == soak.steady:
        soak.fault("failures", f"{kind} over HTTP: {status}")
    known = None if status is None else status == 200
    soak.settle(owner, {**puts, **dict.fromkeys(gone)}, label, known)
    sleep(0.3 * owner.chance.random())


def by_command(soak: Soak, owner: Owner) -> None:
    """One change by a process of the command line, which may be killed."""
    kind, puts, gone = owner.next()
    source = soak.root / "work" / f"{owner.name}.jsonl"
    source.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in puts.items()))
    words = ["add", str(soak.path), str(source), "--upsert"]
    if gone:
        words = ["delete", str(soak.path), *gone]
    elif kind == "rename":
        kind = owner.chance.choice(["compact", "retune", "name concepts"])
        words = {
            "compact": ["compact", str(soak.path)],
            "retune": ["retune", str(soak.path), "--k1", str(owner.chance.choice([0.8, 1.2, 2.0]))],
            "name concepts": ["concepts", "name", str(soak.path)],
        }[kind]
    code = command(soak, owner, words)
    if code == 0:
        soak.count("changes by commands")
        soak.count(kind)
    elif code == 8:
        soak.count("changes refused while another process wrote")
    elif code is not None:
        soak.fault("failures", f"{words}: exit code {code}")
    soak.settle(owner, {**puts, **dict.fromkeys(gone)}, None, None if code is None else code == 0)


def command(soak: Soak, owner: Owner, words: list[str]) -> int | None:
    """The exit code of a verb; None where it was killed."""
    waiting = ["--wait", "30"] if words[0] != "concepts" else []
    process = subprocess.Popen(
        [sys.executable, "-m", "lexent", *words, *waiting], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        if owner.chance.random() < 0.4:
            sleep(3 * owner.chance.random())
            process.kill()
        code = process.wait(COMMAND_SECONDS)
    except subprocess.TimeoutExpired as error:
        process.kill()
        raise HangError(f"{words} after {COMMAND_SECONDS} s") from error
    if code == -signal.SIGKILL:
        soak.count("commands killed")
        return None
    return code


def search(soak: Soak, chance: random.Random) -> None:
    """A search on each server."""
    for port in (soak.steady, soak.killed):
        body = {"query": " ".join(chance.choices(WORDS, k=3)), "k": 10}
        status = call(port, "POST", f"{BASE}/search", body) if port else None
        if status == 200:
            soak.count("searches")
        elif port == soak.steady or status is not None:
            soak.fault("failures", f"a search: {status}")
    sleep(0.05)


def kill(soak: Soak, chance: random.Random) -> None:
    """Starts a server, and kills it after a while."""
    with serving(soak.path) as (port, process):
        soak.killed = port
        soak.end.wait(3 + 12 * chance.random())
        soak.killed = 0
        process.kill()
        process.wait()
    soak.count("servers killed")


def look(soak: Soak) -> None:
    """All files have the content that the manifest says, and the documents that nobody changes are there."""
    verify(soak.path)
    with Index.open(soak.path, encoder=TinyEncoder(), lexicon=soak.lexicon) as index:
        found = index.documents.positions([f"steady{number}" for number in range(STEADY)])
    if len(found) != STEADY:
        soak.fault("lost", f"{STEADY - len(found)} documents that nobody changed")
    soak.count("verifications")
    soak.end.wait(20)


# --- the run -----------------------------------------------------------------------------------------------------


def others(root: Path) -> dict[str, tuple[str, int]]:
    """The files beside the index: hash, and time of the last change."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    own = {"soak.lexent", "work", "cache"}
    kept = [path for path in paths if path.relative_to(root).parts[0] not in own]
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in kept}


def measured(root: Path, seconds: float) -> dict[str, Any]:
    soak = Soak(root, seconds)
    for name in ("work", "cache", "beside"):
        (root / name).mkdir()
    os.environ.update(LEXENT_CACHE=str(root / "cache"), LEXENT_PROGRESS="0")
    for number in range(20):
        (root / "beside" / f"{number:06d}").write_text(f"not of the index {number}")
    chance = random.Random(0)
    soak.lexicon.save(root / "lexicon")
    documents = [Document(f"steady{number}", text(chance)) for number in range(STEADY)]
    Index.build(documents, out=soak.path, encoder=TinyEncoder(), lexicon=str(root / "lexicon")).close()
    before, resident = others(root), list[float]()
    owners = [Owner(name, 3 + place, random.Random(place)) for place, name in enumerate(("http", "killed", "command"))]
    with ExitStack() as stack:
        soak.steady, process = stack.enter_context(serving(soak.path))
        threads = [
            soak.started(lambda: over_http(soak, owners[0], lambda: soak.steady)),
            soak.started(lambda: over_http(soak, owners[1], lambda: soak.killed)),
            soak.started(lambda: by_command(soak, owners[2])),
            soak.started(lambda: search(soak, chance)),
            soak.started(lambda: kill(soak, random.Random(7))),
            soak.started(lambda: look(soak)),
        ]
        soak.began = monotonic()
        while (past := monotonic() - soak.began) < seconds:
            resident.append(memory(process.pid)["VmRSS"] / 1e3)
            if len(resident) % 60 == 0:
                print(f"{past:.0f} s  {resident[-1]:.0f} MB  {dict(soak.counts)}", file=sys.stderr, flush=True)
            sleep(1)
        soak.end.set()
        for thread in threads:
            thread.join(COMMAND_SECONDS + 30)
            if thread.is_alive():
                soak.fault("hangs", f"the thread {thread.name} did not end")
    for owner in owners:
        soak.settle(owner, {}, None, True)
    look(soak)
    for touched in sorted({*before.items()} ^ {*others(root).items()}):
        soak.fault("touched", str(touched))
    return reported(soak, resident)


def reported(soak: Soak, resident: list[float]) -> dict[str, Any]:
    window = max(1, int(len(resident) * WINDOW_SHARE))
    start = int(len(resident) * WARM_SHARE)
    first, last = float(np.mean(resident[start : start + window])), float(np.mean(resident[-window:]))
    bad = {name: soak.counts[name] for name in ("lost", "touched", "hangs", "failures")}
    rest = {name: count for name, count in sorted(soak.counts.items()) if name not in bad}
    memories = {"mb_first": first, "mb_last": last, "growth": last / first - 1}
    return {"minutes": soak.seconds / 60, **bad, **memories, "counts": rest, "faults": soak.faults[:20]}


def shown(found: dict[str, Any]) -> str:
    counts = found["counts"]

    def n(name: str) -> str:
        return f"{counts.get(name, 0):,}"

    killed = (n(f"killed changes that were {end}") for end in ("there", "not"))
    rows = [
        ["changes acknowledged over HTTP", n("changes over HTTP")],
        ["changes acknowledged by commands", n("changes by commands")],
        [
            "of these: upserts, deletes, names of concepts",
            " + ".join(n(kind) for kind in ("upsert", "delete", "rename")),
        ],
        [
            "and compactions, retunes, namings anew",
            " + ".join(n(kind) for kind in ("compact", "retune", "name concepts")),
        ],
        ["searches answered", n("searches")],
        ["servers killed and started again", n("servers killed")],
        ["commands killed", n("commands killed")],
        ["killed changes: there as a whole, not there at all", " + ".join(killed)],
        ["verifications of all files meanwhile", n("verifications")],
        ["**acknowledged changes lost, or half there**", f"**{found['lost']}**"],
        ["**files touched outside of the index**", f"**{found['touched']}**"],
        ["**hangs**", f"**{found['hangs']}**"],
        ["**other failures**", f"**{found['failures']}**"],
        [
            "**resident memory of the server that lived on, after warm-up and at the end**",
            f"**{found['mb_first']:.1f} and {found['mb_last']:.1f} MB ({found['growth']:+.1%})**",
        ],
    ]
    said = f"By `{found['command']}` ({found['date']}, {found['machine']}): {found['minutes']:g} minutes."
    return f"{said}\n\n{table(('', 'count'), rows)}"


def main() -> int:
    """Print the table, or write it to a page and its JSON beside it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--docs", type=Path, help="a page with marks, to be written")
    given = parser.parse_args()
    faulthandler.dump_traceback_later(given.minutes * 60 + 600, exit=True)  # the watchdog of the watchdog
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder).resolve(), given.minutes * 60)
    facts = setting(f"make soak MINUTES={given.minutes:g}")
    found |= {name: facts[name] for name in ("command", "machine", "date")}
    if given.docs is not None:
        replace(given.docs, "soak", shown(found))
        given.docs.with_name(RECORD).write_text(json.dumps(found, indent=1) + "\n")
    print(shown(found))
    flat = abs(found["growth"]) <= 0.05
    return 0 if flat and not any(found[name] for name in ("lost", "touched", "hangs", "failures")) else 1


if __name__ == "__main__":
    raise SystemExit(main())
