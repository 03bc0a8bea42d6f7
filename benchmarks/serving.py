"""The server under load from a second process: throughput, latency, HTTP beside the library, adding while searching.

    python -m benchmarks.serving COLLECTION [--index DIR] [--seconds 60] [--minutes 5] [--json] [--docs docs/serving.md]

COLLECTION: a BEIR folder, SciFact for the page. Its index is built once and kept at --index.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.serving_load import Log, Request, client, exchange, load
from lexent.engine import Index
from lexent.evaluation.collections import load as load_collection

K = 10
CLIENTS = (1, 8, 32)
MIXED_CLIENTS = 4
PAUSE = 0.5
"""Seconds from one add to the next while searching."""
ROUNDS = 400
"""Requests that the HTTP overhead is the median of."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collection", type=Path)
    parser.add_argument("--index", type=Path, help="where the collection's index is, or is to be kept")
    parser.add_argument("--seconds", type=float, default=60, help="of each number of clients")
    parser.add_argument("--minutes", type=float, default=5, help="of adding and searching")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--docs", type=Path, help="the page to write")
    given = parser.parse_args()
    collection = load_collection(str(given.collection), split="test")
    queries = list(collection.queries.values())
    place = given.index or Path(tempfile.gettempdir()) / f"lexent-serving-{collection.name.replace('/', '-')}.lexent"
    if not place.exists():
        print(f"building {place}", file=sys.stderr)
        Index.build(collection.documents, out=place, extras=["dense", "lexical"])
    found: dict[str, Any] = report.setting("make bench-serve COLLECTION=path/to/scifact")
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "served.lexent"
        shutil.copytree(place, own)  # what is added goes to a copy
        found["documents"] = len(collection.documents)
        found["library_ms"], found["recipe"] = library(own, queries)
        with serving(own) as (port, process):
            found["http"] = overhead(port, queries)
            request = distinct(queries)
            found["load"] = [reported(load(port, request, clients=n, seconds=given.seconds)) for n in CLIENTS]
            found["mixed"] = reported(mixed(port, process, request, minutes=given.minutes))
    print(json.dumps(found) if given.json else text(found))
    if given.docs:
        given.docs.write_text(page(found))


def reported(found: dict[str, Any]) -> dict[str, Any]:
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


@contextmanager
def serving(path: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """`lexent serve` in a process of its own, ready."""
    from lexent.server.app import listen

    with listen("127.0.0.1", 0, others=False) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "lexent", "serve", str(path), "--port", str(port)]
    process = subprocess.Popen(command, env={**os.environ, "LEXENT_PROGRESS": "0"})
    try:
        for _ in range(600):
            sleep(0.2)
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
                    break
            except OSError:
                continue
        yield port, process
    finally:
        process.terminate()
        process.wait(timeout=60)


def distinct(queries: list[str]) -> Request:
    """Queries that are never the same twice, so that each is encoded."""
    numbers = count()

    def request(_: int) -> tuple[str, Any]:
        number = next(numbers)
        return "/v1/indexes/served/search", {"query": f"{queries[number % len(queries)]} {number}", "k": K}

    return request


# --- HTTP beside the library -------------------------------------------------------------------------------------


def library(path: Path, queries: list[str]) -> tuple[float, str]:
    """Milliseconds of a search with explanations by the Python API, for queries whose vectors are known; the recipe."""
    with Index.open(path) as index:
        some = queries[:20]
        for query in some:
            index.search(query, k=K)
        taken = []
        for number in range(ROUNDS):
            began = perf_counter()
            for hit in index.search(some[number % len(some)], k=K):
                hit.explain()
            taken.append(perf_counter() - began)
        recipe = index.recipe.name
    return float(np.median(taken) * 1e3), recipe


def overhead(port: int, queries: list[str]) -> dict[str, float]:
    """The same over HTTP, one client: the whole round trip, and what of it was not the search itself."""

    async def run() -> tuple[list[float], list[float]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        whole, inside = [], []
        for number in range(ROUNDS + 40):
            body = {"query": queries[number % 20], "k": K}
            began = perf_counter()
            _, answer = await exchange(reader, writer, "/v1/indexes/served/search", body)
            if number >= 40:
                whole.append((perf_counter() - began) * 1e3)
                inside.append(json.loads(answer)["took_ms"])
        writer.close()
        return whole, inside

    whole, inside = asyncio.run(run())
    beside = [one - own for one, own in zip(whole, inside, strict=True)]
    return {
        "round_trip_ms": float(np.median(whole)),
        "search_ms": float(np.median(inside)),
        "overhead_ms": float(np.median(beside)),
        "overhead_p99_ms": float(np.percentile(beside, 99)),
    }


# --- adding while searching --------------------------------------------------------------------------------------


def mixed(port: int, process: subprocess.Popen[bytes], request: Request, *, minutes: float) -> dict[str, Any]:
    """Some clients search, one adds a document, replaces it or deletes it; memory is read before and after.

    A first tenth of the time passes before memory is first read: caches fill once.
    """
    seconds = minutes * 60

    def change(number: int) -> tuple[str, Any]:
        document = {"id": f"added-{number % 50}", "text": f"a text about statins, dementia and the number {number}"}
        return "/v1/indexes/served/documents", {"documents": [document], "upsert": True}

    async def run() -> tuple[Log, Log, list[dict[str, int]]]:
        searches, changes, until = Log(), Log(), perf_counter() + seconds
        seen: list[dict[str, int]] = []

        async def watch() -> None:
            await asyncio.sleep(seconds / 10)
            while perf_counter() < until:
                seen.append(memory(process.pid))
                await asyncio.sleep(seconds / 100)

        jobs = [
            client(port, request, searches, first=place, step=MIXED_CLIENTS, until=until)
            for place in range(MIXED_CLIENTS)
        ]
        adding = client(port, change, changes, first=0, step=1, until=until, pause=PAUSE)
        await asyncio.gather(*jobs, adding, watch())
        return searches, changes, seen

    searches, changes, seen = asyncio.run(run())
    first, last = (np.mean([one["VmRSS"] for one in part]) for part in (seen[:5], seen[-5:]))
    return {
        "minutes": minutes,
        "clients": MIXED_CLIENTS,
        "search": searches.times(seconds),
        "change": changes.times(seconds),
        "rss_mb_first": float(first) / 1e3,
        "rss_mb_last": float(last) / 1e3,
        "rss_growth": float(last / first - 1),
    }


def memory(pid: int) -> dict[str, int]:
    """Kilobytes, as Linux counts them."""
    rows = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {row[0].rstrip(":"): int(row[1]) for row in rows if row[0] in ("VmRSS:", "RssAnon:")}


# --- the page ----------------------------------------------------------------------------------------------------


def text(found: dict[str, Any]) -> str:
    rows = [
        [str(one["clients"]), f"{one['per_s']:.1f}", f"{one['p50_ms']:.1f}", f"{one['p99_ms']:.1f}", str(one["errors"])]
        for one in found["load"]
    ]
    http, both = found["http"], found["mixed"]
    calls = [
        ["library: search and explain", f"{found['library_ms']:.2f}"],
        ["server: the same, as it times itself", f"{http['search_ms']:.2f}"],
        ["HTTP round trip", f"{http['round_trip_ms']:.2f}"],
        ["**what HTTP adds**", f"**{http['overhead_ms']:.2f}** (p99 {http['overhead_p99_ms']:.2f})"],
    ]
    parts = [
        [name, f"{one['answers']:,}", f"{one['p50_ms']:.1f}", f"{one['p99_ms']:.1f}"]
        for name, one in (("searches", both["search"]), ("changes", both["change"]))
    ]
    errors = both["search"]["errors"] + both["change"]["errors"]
    memory_ = f"{both['rss_mb_first']:,.0f} MB to {both['rss_mb_last']:,.0f} MB ({both['rss_growth']:+.1%})"
    return "\n\n".join(
        [
            "## Load",
            f"Each query is new and is encoded; {K} hits, all contributions; {found['load'][0]['seconds']:g} s a row.",
            report.table(["clients", "answers/s", "p50 ms", "p99 ms", "errors"], rows),
            "## HTTP beside the library",
            f"One client, queries whose vectors are known, so that nothing is encoded; medians of {ROUNDS} requests.",
            report.table(["", "ms"], calls),
            "## Adding while searching",
            f"{both['minutes']:g} minutes, {both['clients']} clients that search and one that adds or replaces a "
            f"document every {PAUSE} s: {errors} errors; resident memory from {memory_}.",
            report.table(["", "answers", "p50 ms", "p99 ms"], parts),
        ]
    )


def page(found: dict[str, Any]) -> str:
    facts = [
        f"- command: `{found['command']}`",
        f"- data: {found['documents']:,} documents (SciFact), default encoder and lexicon, recipe {found['recipe']}",
        f"- machine: {found['machine']}; server and clients share its cores",
        f"- date: {found['date']}",
    ]
    return f"# The server under load\n\nWritten by the command below.\n\n{chr(10).join(facts)}\n\n{text(found)}\n"


if __name__ == "__main__":
    main()
