"""A new query in a warm process: from its text to ten explained hits, beside sentence-transformers encoding it.

    python -m benchmarks.query COLLECTION TEXTS.jsonl.gz ... [--documents 100000] [--index DIR] [--docs docs/start.md]

The index holds sentences of the TEXTS, lines of {"title", "text"}; it is built once and kept at --index. The queries
are those of the train split of COLLECTION, a BEIR folder. Each is new to the process, and is asked once by each side,
in turns. The threads of both are those that they take by themselves.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks.report import replace, setting, table
from lexent.encoders.encoder import encode
from lexent.engine import Index
from lexent.evaluation.collections import load as load_collection
from lexent.types import Document

K = 10
WARM, MEASURED = 50, 500
"""Queries before the clock and on it."""
LEAST_WORDS = 8


def sentences(files: list[Path]) -> Iterator[str]:
    """Sentences of the texts, some words long."""
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                yield from (one for one in re.split(r"(?<=[.!?])\s+", row["text"]) if len(one.split()) >= LEAST_WORDS)


def documents(files: list[Path], n: int) -> list[Document]:
    """So many sentences, drawn from all."""
    found = sorted(set(sentences(files)))
    drawn = random.Random(0).sample(found, n)
    return [Document(str(number), text) for number, text in enumerate(drawn)]


def measured(place: Path, queries: list[str]) -> tuple[dict[str, list[float]], int]:
    """Milliseconds of each part, by query, and the documents of the index."""
    from sentence_transformers import SentenceTransformer

    from lexent.encoders.sentence import embedded_model

    peer = SentenceTransformer(str(embedded_model()), device="cpu")
    found: dict[str, list[float]] = {}

    def add(name: str, began: tuple[float, float]) -> None:
        found.setdefault(name, []).append((perf_counter() - began[0]) * 1e3)
        found.setdefault(f"{name}, CPU", []).append((process_time() - began[1]) * 1e3)

    def now() -> tuple[float, float]:
        return perf_counter(), process_time()

    with Index.open(place) as index:
        for number, query in enumerate(queries):
            if number == WARM:
                found.clear()
            began = now()
            hits = index.search(query, k=K)
            add("search", began)
            for hit in hits:
                hit.explain()
            add("search and explain", began)
            began = now()
            peer.encode(query)
            add("sentence-transformers, encode alone", began)
            began = now()
            encode(index.encoder, [query], kind="query")
            add("of these, encode", began)
        size = len(index)
    return found, size


def text(found: dict[str, list[float]], size: int, command: str) -> str:
    facts = setting(command)
    rows = []
    for name in ("search and explain", "search", "of these, encode", "sentence-transformers, encode alone"):
        own = np.array(found[name])
        cpu = np.median(found[f"{name}, CPU"])
        rows.append([name, f"{np.median(own):.2f}", f"{np.percentile(own, 99):.2f}", f"{cpu:.2f}"])
    about = (
        f"By `{command}` ({facts['date']}, {facts['machine']}).\n"
        f"{size:,} sentences; {len(found['search']):,} new queries, {K} hits each, all contributions of each hit."
    )
    return f"{about}\n\n{table(('', 'median ms', 'p99 ms', 'CPU ms'), rows)}"


def main() -> None:
    """Print the table, or write it to a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collection", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--index", type=Path, default=Path(tempfile.gettempdir()) / "lexent-query.lexent")
    parser.add_argument("--docs", type=Path, help="a page with marks, to be written")
    given = parser.parse_args()
    if not given.index.exists():
        Index.build(documents(given.texts, given.documents), out=given.index, progress=True)
    queries = list(islice(load_collection(str(given.collection), split="train").queries.values(), WARM + MEASURED))
    found, size = measured(given.index, queries)
    files = " ".join(file.name for file in given.texts)
    shown = text(found, size, f"python -m benchmarks.query {given.collection.name} {files}")
    if given.docs is not None:
        replace(given.docs, "query", shown)
    print(shown)


if __name__ == "__main__":
    main()
