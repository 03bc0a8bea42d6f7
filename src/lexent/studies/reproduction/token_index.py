"""Sections about the index of token codes: exact and fast search, growth, and what building and adding cost."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from lexent.evaluation import cached_vectors
from lexent.evaluation.systems import packed
from lexent.search.modes import Fast, Mode
from lexent.studies.analyses.table import Column, Table, measured
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.encoded_corpus import quality, speed
from lexent.studies.reproduction.section import Figure, Result, Section, first_measure
from lexent.studies.reproduction.study import Study

CANDIDATES = (2000, 500, 100, 30)
"""The paper's, and fewer for collections that are no larger than that."""
FRACTIONS = (0.125, 0.25, 0.5, 1.0)
TIMED_HITS = 10
"""Hits of a search that is timed."""
MAX_INDEXED_DOCUMENTS = 300
"""Documents that are indexed anew, at most: coding them takes longest."""


def _modes(study: Study) -> Result:
    chosen, collection = study.matches[0], study.collection
    found = chosen.scorer(collection)
    queries = chosen.queries(collection, found.document_scorer)
    modes: dict[str, Mode] = {"exact": "exact"}
    modes |= {f"fast, {most:,} candidates": Fast(candidates=most) for most in CANDIDATES}
    best = found.top(queries, TIMED_HITS, mode="exact").positions.tolist()
    wanted = [{*positions} - {-1} for positions in best]
    rows = []
    for name, mode in modes.items():
        positions = found.top(queries, TIMED_HITS, mode=mode).positions.tolist()
        hits = sum(len(there & {*mine}) for there, mine in zip(wanted, positions, strict=True))
        scores = quality(found, queries, collection, measures=study.measures, mode=mode)
        recall = hits / max(sum(map(len, wanted)), 1)
        timed = speed(found, queries, k=TIMED_HITS, mode=mode)
        rows.append({"name": name, "values": scores.means, "recall": recall, **timed})
    seconds: dict[str, float] = {}
    with _timed(seconds, "brute"):
        for query in queries:
            found.scores(query)
    brute = 1000 * seconds["brute"] / max(len(queries), 1)
    return {"rows": rows, "brute_ms": brute, "documents": len(collection.documents), "queries": len(queries)}


def _show_modes(result: Result) -> list[Table]:
    exact = result["rows"][0]["ms"]
    columns: list[Column] = [
        ("search", "name"),
        ("scored", "{scored:,.0f}"),
        ("ms", "{ms:.2f}"),
        ("ms, 95 %", "{ms_p95:.2f}"),
        ("faster", lambda row: f"{exact / row['ms']:.1f}x" if row["ms"] else ""),
        (f"recall@{TIMED_HITS}", "{recall:.3f}"),
        *measured(result["rows"][0]["values"]),
    ]
    note = (
        f"{result['documents']:,} documents, {result['queries']:,} queries; scored: documents, the mean; ms: the "
        f"median search for {TIMED_HITS} hits on one thread, the query already coded; recall: of the exact "
        f"{TIMED_HITS} best; every document scored, without lists and bounds: {result['brute_ms']:.2f} ms"
    )
    return [Table.of("exact search (ssr) and fast search (ssr++)", result["rows"], columns, note)]


def _growth(study: Study) -> Result:
    chosen, collection = study.matches[0], study.collection
    store = cached_vectors.token_codes(collection.texts, chosen.pipeline)
    places = collection.positions
    rows = {}  # relevant documents are always there, so small shares may be alike
    for share in FRACTIONS:
        n = max(round(share * len(places)), 1)
        some = collection.sampled(documents=n, seed=0, queries=len(collection.queries))
        taken = store.take(np.array([places[document.id] for document in some.documents], np.int64))
        found = packed(taken, chosen.lexicon, chosen.recipe)
        queries = chosen.queries(some, found.document_scorer)
        scores = quality(found, queries, some, measures=study.measures)
        timed = {mode: speed(found, queries, k=TIMED_HITS, mode=mode) for mode in ("exact", "fast")}
        rows[len(some.documents)] = {"documents": len(some.documents), "values": scores.means, **timed}
    return {"rows": list(rows.values())}


def _show_growth(result: Result) -> list[Table | Figure]:
    rows, measure = result["rows"], first_measure(result)
    columns: list[Column] = [
        ("documents", "{documents:,}"),
        *measured(rows[0]["values"]),
        ("exact, ms", "{exact[ms]:.2f}"),
        ("scored", "{exact[scored]:,.0f}"),
        ("fast, ms", "{fast[ms]:.2f}"),
        ("scored", "{fast[scored]:,.0f}"),
    ]
    note = "parts of the collection; all documents that answer a query are in each, so that only others are added"
    times = {mode: [(row["documents"], row[mode]["ms"]) for row in rows] for mode in ("exact", "fast")}
    values = {measure: [(row["documents"], row["values"][measure]) for row in rows]}
    drawn = plots.panels([("ms a search", times), (measure, values)], x_label="documents")
    return [
        Table.of("as the collection grows", rows, columns, note),
        Figure(drawn, "Latency and quality against the size of the collection"),
    ]


class Memory:
    """The most memory that the process takes while this is open, above what it took before."""

    def __init__(self) -> None:
        self.before = self.most = self._now()
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Memory:
        self._watch.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._watch.join()

    @property
    def peak(self) -> float | None:
        """In MB; None where the system does not report it."""
        return None if self.most is None or self.before is None else self.most - self.before

    def _look(self) -> None:
        while self.most is not None and not self._stop.wait(0.02):
            self.most = max(self.most, self._now() or 0.0)

    @staticmethod
    def _now() -> float | None:
        try:
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        except (OSError, ValueError):  # no Linux
            return None


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Puts the seconds that the block takes under this name."""
    start = perf_counter()
    yield
    seconds[name] = perf_counter() - start


def _building(study: Study) -> Result:
    from lexent.engine import Index

    chosen = study.matches[0]
    most = min(study.sizes.tokens, MAX_INDEXED_DOCUMENTS)
    documents = study.collection.sampled(documents=most, seed=0).documents[:most]
    n_new = max(1, round(len(documents) / 100))
    texts = [document.content for document in documents]
    list(study.encoder.batches(texts[:1], kind="document"))  # loaded before it is timed
    seconds: dict[str, float] = {}
    with _timed(seconds, "encoding"):
        rows = sum(len(states.values) for _, states in study.encoder.batches(texts, kind="document"))
    with TemporaryDirectory() as folder:
        place = Path(folder) / "index"
        with Memory() as memory, _timed(seconds, "building"):
            given: Any = {"encoder": study.encoder, "lexicon": chosen.lexicon, "recipe": chosen.recipe}
            index = Index.build(documents[:-n_new], out=place, **given)
        sizes = _sizes(place)
        with _timed(seconds, "adding"):
            index.add(documents[-n_new:])
        grown = sum(_sizes(place).values()) - sum(sizes.values())
        with _timed(seconds, "deleting"):
            index.delete([documents[0].id])
        with _timed(seconds, "compacting"):
            index.compact()
        index.close()
    width = study.encoder.dim
    return {
        "documents": len(documents) - n_new,
        "tokens": rows,
        "seconds": seconds,
        "new": n_new,
        "grown": grown,
        "sizes": sizes,
        "states": {
            "token states, 16 bits": rows * width * 2,
            "one vector a document, 32 bits": len(documents) * width * 4,
        },
        "peak_mb": memory.peak,
    }


def _sizes(place: Path) -> dict[str, int]:
    """Bytes on the disk by what they are for."""
    found = {"lists": 0, "token codes": 0, "texts and the rest": 0}
    for path in place.rglob("*"):
        if path.is_file():
            tokens, array = path.name.startswith("tokens-"), path.suffix == ".npy"
            name = "token codes" if tokens else "lists" if array else "texts and the rest"
            found[name] += path.stat().st_size
    return found


def _show_building(result: Result) -> list[Table]:
    seconds, n, new = result["seconds"], result["documents"], result["new"]
    times = (
        ("index them", n, seconds["building"]),
        ("of that, encode", n, seconds["encoding"] * n / (n + new)),
        (f"add {new} (1 %)", new, seconds["adding"]),
        ("delete one", 1, seconds["deleting"]),
        ("compact", n + new - 1, seconds["compacting"]),
    )
    sizes = [(name, size, n) for name, size in result["sizes"].items()]
    sizes += [(f"for comparison: {name}", size, n + new) for name, size in result["states"].items()]
    peak = f"; at most {result['peak_mb']:,.0f} MB more memory than before" if result["peak_mb"] is not None else ""
    return [
        Table(
            f"{n:,} documents of {result['tokens'] / (n + new):,.0f} tokens",
            ("what", "documents", "seconds", "ms a document"),
            tuple((name, count, f"{took:.3f}", f"{1000 * took / count:.2f}") for name, count, took in times),
            f"the rest of indexing is coding and packing; an add writes a segment of its own and touches nothing "
            f"else, {result['grown'] / 1024:,.0f} KB here{peak}",
        ),
        Table(
            "the index on the disk",
            ("what", "MB", "KB a document"),
            tuple((name, f"{size / 2**20:.2f}", f"{size / count / 1024:.2f}") for name, size, count in sizes),
        ),
    ]


SECTIONS = (
    Section(
        "modes",
        "Exact and fast",
        "How many documents are scored, how long does it take, and what does the fast mode lose?",
        _modes,
        _show_modes,
        reading="Exact search leaves documents out by proved bounds and gives what scoring every one gives. The fast "
        "mode is approximate: it scores so many candidates at most, and ends sooner where no more of them is likely to "
        "be among the best.",
        papers=("ssr",),
    ),
    Section(
        "growth",
        "Quality and latency against the size of the collection",
        "What does a larger collection cost?",
        _growth,
        _show_growth,
        papers=("ssr",),
    ),
    Section(
        "index",
        "Indexing: time, size, memory, updates",
        "What do building an index and adding to it cost?",
        _building,
        _show_building,
        reading="Nothing is clustered, so nothing is trained before documents can be added. Times are of this machine.",
        papers=("ssr",),
        sizes=("tokens",),
    ),
)
