"""Sections about the index of token codes: exact and fast search, growth, and what building and adding cost."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import TracebackType
from typing import Any

import numpy as np

from lexent.evaluation import latent
from lexent.pipeline import Pipeline
from lexent.search.modes import Fast, Mode
from lexent.studies.analyses.table import Table
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.held import packed, quality, speed
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study
from lexent.studies.sampling import sampled

CANDIDATES = (2000, 500, 100, 30)
"""The paper's, and fewer for collections that are no larger than that."""
FRACTIONS = (0.125, 0.25, 0.5, 1.0)
TIMED_HITS = 10
"""Hits of a search that is timed."""
MAX_INDEXED_DOCUMENTS = 300
"""Documents that are indexed anew, at most: coding them takes longest."""


def _modes(study: Study) -> Result:
    chosen, collection = study.matches[0], study.collection
    found = chosen.scorer(collection, progress=study.progress)
    asked = chosen.queries(collection, found.document_scorer, progress=study.progress)
    modes: dict[str, Mode] = {"exact": "exact"}
    modes |= {f"fast, {most:,} candidates": Fast(candidates=most) for most in CANDIDATES}
    best = found.top(asked, TIMED_HITS, mode="exact").positions
    rows = []
    for name, mode in modes.items():
        there = found.top(asked, TIMED_HITS, mode=mode).positions
        wanted = (best >= 0).sum()
        hits = sum(
            len(set(mine) & set(theirs) - {-1}) for mine, theirs in zip(there.tolist(), best.tolist(), strict=True)
        )
        scores = quality(found, asked, collection, measures=study.measures, mode=mode)
        recall = hits / max(int(wanted), 1)
        rows.append(
            {"name": name, "values": scores.means, "recall": recall, **speed(found, asked, k=TIMED_HITS, mode=mode)}
        )
    start = perf_counter()
    for query in asked:
        found.scores(query)
    brute = 1000 * (perf_counter() - start) / max(len(asked), 1)
    return {"rows": rows, "brute_ms": brute, "documents": len(collection.documents), "queries": len(asked)}


def _mode_tables(result: Result) -> list[Table]:
    measures = tuple(result["rows"][0]["values"])
    exact = result["rows"][0]["ms"]
    rows = tuple(
        (
            row["name"],
            f"{row['scored']:,.0f}",
            f"{row['ms']:.2f}",
            f"{row['ms_p95']:.2f}",
            f"{exact / row['ms']:.1f}x" if row["ms"] else "",
            f"{row['recall']:.3f}",
            *row["values"].values(),
        )
        for row in result["rows"]
    )
    note = (
        f"{result['documents']:,} documents, {result['queries']:,} queries; scored: documents, the mean; ms: the "
        f"median search for {TIMED_HITS} hits on one thread, the query already coded; recall: of the exact "
        f"{TIMED_HITS} best; every document scored, without lists and bounds: {result['brute_ms']:.2f} ms"
    )
    head = ("search", "scored", "ms", "ms, 95 %", "faster", f"recall@{TIMED_HITS}", *measures)
    return [Table("exact search (ssr) and fast search (ssr++)", head, rows, note)]


def _growth(study: Study) -> Result:
    chosen, collection, rows = study.matches[0], study.collection, []
    pipeline = Pipeline(study.encoder, chosen.lexicon, chosen.recipe)
    store = latent.token_codes(collection.texts, pipeline, progress=study.progress)
    places = {document.id: at for at, document in enumerate(collection.documents)}
    for share in FRACTIONS:
        some = sampled(
            collection, documents=max(round(share * len(places)), 1), seed=0, queries=len(collection.queries)
        )
        taken = store.take(np.array([places[document.id] for document in some.documents], np.int64))
        found = packed(taken, chosen.lexicon, chosen.recipe)
        asked = chosen.queries(some, found.document_scorer)
        scores = quality(found, asked, some, measures=study.measures)
        timed = {mode: speed(found, asked, k=TIMED_HITS, mode=mode) for mode in ("exact", "fast")}
        rows.append({"documents": len(some.documents), "values": scores.means, **timed})
    unique = {
        row["documents"]: row for row in rows
    }  # relevant documents are always there, so small shares may be alike
    return {"rows": list(unique.values())}


def _growth_tables(result: Result) -> list[Table]:
    measures = tuple(result["rows"][0]["values"])
    rows = tuple(
        (
            f"{row['documents']:,}",
            *row["values"].values(),
            f"{row['exact']['ms']:.2f}",
            f"{row['exact']['scored']:,.0f}",
            f"{row['fast']['ms']:.2f}",
            f"{row['fast']['scored']:,.0f}",
        )
        for row in result["rows"]
    )
    head = ("documents", *measures, "exact, ms", "scored", "fast, ms", "scored")
    note = "parts of the collection; all documents that answer a query are in each, so that only others are added"
    return [Table("as the collection grows", head, rows, note)]


def _growth_figures(result: Result) -> list[Figure]:
    measure = next(iter(result["rows"][0]["values"]))
    lines = {mode: [(row["documents"], row[mode]["ms"]) for row in result["rows"]] for mode in ("exact", "fast")}
    grade = {measure: [(row["documents"], row["values"][measure]) for row in result["rows"]]}
    draw = partial(plots.panels, [("ms a search", lines), (measure, grade)], x_label="documents")
    return [Figure(draw, "Latency and quality against the size of the collection")]


class Memory:
    """The most memory that the process takes while this is open, above what it took before."""

    def __init__(self) -> None:
        self.before = self.most = self._now()
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Memory:
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._watch.join()

    @property
    def peak(self) -> float | None:
        """In MB; None where the system does not say."""
        return None if self.most is None or self.before is None else self.most - self.before

    def _look(self) -> None:
        while self.most is not None and not self._stop.wait(0.02):
            self.most = max(self.most, self._now() or 0.0)

    @staticmethod
    def _now() -> float | None:
        import os

        try:
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        except (OSError, ValueError):  # no Linux
            return None


def _building(study: Study) -> Result:
    from lexent.engine import Index

    chosen = study.matches[0]
    most = min(study.sizes.tokens, MAX_INDEXED_DOCUMENTS)
    documents = sampled(study.collection, documents=most, seed=0).documents[:most]
    n_new = max(1, round(len(documents) / 100))
    given: Any = {"encoder": study.encoder, "lexicon": chosen.lexicon, "recipe": chosen.recipe}
    list(study.encoder.batches([documents[0].content], kind="document"))  # loaded before it is timed
    start = perf_counter()
    rows, width = 0, study.encoder.dim
    for _, states in study.encoder.batches([document.content for document in documents], kind="document"):
        rows += len(states.values)
    encoding = perf_counter() - start
    with TemporaryDirectory() as folder:
        place = Path(folder) / "index"
        with Memory() as memory:
            start = perf_counter()
            index = Index.build(documents[:-n_new], out=place, **given)
            building = perf_counter() - start
        sizes = _sizes(place)
        before = sum(sizes.values())
        start = perf_counter()
        index.add(documents[-n_new:])
        adding = perf_counter() - start
        grown = sum(_sizes(place).values()) - before
        start = perf_counter()
        index.delete([documents[0].id])
        deleting = perf_counter() - start
        start = perf_counter()
        index.compact()
        compacting = perf_counter() - start
        index.close()
    return {
        "documents": len(documents) - n_new,
        "tokens": rows,
        "seconds": {"building": building, "encoding": encoding, "adding": adding, "deleting": deleting}
        | {"compacting": compacting},
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


def _building_tables(result: Result) -> list[Table]:
    seconds, n, new = result["seconds"], result["documents"], result["new"]
    shown = [
        ("index them", n, seconds["building"]),
        ("of that, encode", n, seconds["encoding"] * n / (n + new)),
        (f"add {new} (1 %)", new, seconds["adding"]),
        ("delete one", 1, seconds["deleting"]),
        ("compact", n + new - 1, seconds["compacting"]),
    ]
    times = tuple((name, count, f"{took:.3f}", f"{1000 * took / count:.2f}") for name, count, took in shown)
    peak = f"; at most {result['peak_mb']:,.0f} MB more memory than before" if result["peak_mb"] is not None else ""
    sizes = tuple(
        (name, f"{size / 2**20:.2f}", f"{size / count / 1024:.2f}")
        for name, size, count in (
            *((name, size, n) for name, size in result["sizes"].items()),
            *((f"for comparison: {name}", size, n + new) for name, size in result["states"].items()),
        )
    )
    return [
        Table(
            f"{n:,} documents of {result['tokens'] / (n + new):,.0f} tokens",
            ("what", "documents", "seconds", "ms a document"),
            times,
            f"the rest of indexing is coding and packing; an add writes a segment of its own and touches nothing "
            f"else, {result['grown'] / 1024:,.0f} KB here{peak}",
        ),
        Table("the index on the disk", ("what", "MB", "KB a document"), sizes),
    ]


SECTIONS = (
    Section(
        "modes",
        "Exact and fast",
        "How many documents are scored, how long does it take, and what does the fast mode lose?",
        _modes,
        _mode_tables,
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
        _growth_tables,
        _growth_figures,
        papers=("ssr",),
    ),
    Section(
        "index",
        "Indexing: time, size, memory, updates",
        "What do building an index and adding to it cost?",
        _building,
        _building_tables,
        reading="Nothing is clustered, so nothing is trained before documents can be added. Times are of this machine.",
        papers=("ssr",),
        sizes=("tokens",),
    ),
)
