"""Exact top-k over sparse latent vectors: Lexent and its peers, side by side in one run on one core.

    python -m benchmarks.engine VECTORS [--copies 1,5] [--peers numba,sindi,...] [--json] [--docs docs/benchmarks.md]
                                [--readme README.md] [--without-avx512]

Lexent's index is written to disk and mapped, as users have it. Each peer is built in its turn and asked the same
queries as Lexent, in rounds that alternate between the two, so that both see the same machine; each query's median
counts. All that is exact is checked against the scores of every document in float64. `--docs` records the run beside
the page, in place of the recorded run of the same instruction set, and renders the page from all recorded runs.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.timing import Times, one_core, run_queries

VECTORS = Path("../shared/bench")


def main() -> None:
    given = arguments()
    one_core()
    if given.without_avx512:
        without_avx512()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # some peers print as they build
    from benchmarks import engine_report, report

    more = " ARGS=--without-avx512" if given.without_avx512 else ""
    found: dict[str, Any] = report.setting(f"make bench-index VECTORS=folder-of-vectors{more}")
    found["sizes"] = [measure(given, copies) for copies in given.copies]
    print(json.dumps(found) if given.json else engine_report.terminal_text(found), file=out, flush=True)
    if given.docs:
        engine_report.write(given.docs, found, readme=given.readme)


def without_avx512() -> None:
    """Has Numba compile for this processor without its AVX-512 instructions. Peers in C++ and Rust still choose theirs.

    To be called before Numba is imported, here and in the processes that inherit the environment.
    """
    import llvmlite.binding

    features = llvmlite.binding.get_host_cpu_features()
    kept = {name: has and not name.startswith("avx512") for name, has in features.items()}
    os.environ["NUMBA_CPU_FEATURES"] = ",".join(f"{'+' if has else '-'}{name}" for name, has in kept.items())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vectors", nargs="?", type=Path, default=VECTORS, help="folder of lt120k-*.npz")
    parser.add_argument("--copies", type=_numbers, default=[1, 5], help="times as many documents as the vectors have")
    parser.add_argument("--documents", type=int, help="take only so many, for a trial")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--fewer", type=int, default=40, help="queries with k = 1,000, and of 500 latents")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--peers",
        type=lambda text: text.split(","),
        default=["numba", "sindi", "qdrant", "bm25s", "bmp", "scipy"],
        help="some of numba,sindi,qdrant,bm25s,bmp,scipy,seismic; seismic, which is approximate, is not run unasked: "
        "at 120,000 documents it built for over 4 minutes on one core",
    )
    parser.add_argument(
        "--patience", type=float, default=240, help="seconds; a peer that would take longer is left out"
    )
    parser.add_argument(
        "--seconds", type=float, default=15, help="for each kind of query; a slow peer gets fewer rounds"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--docs", type=Path, help="the page to render; the runs are recorded beside it, as .json")
    parser.add_argument("--readme", type=Path, help="the README whose table is rendered too")
    parser.add_argument("--without-avx512", action="store_true", help="compile for AVX2 on a processor with AVX-512")
    return parser.parse_args()


@dataclass(frozen=True, slots=True)
class Workload:
    """Queries and how many documents each asks for."""

    name: str
    queries: list[Any]
    k: int


_rates: dict[str, float] = {}
"""Seconds a document that each peer took, built and asked."""


def measure(given: argparse.Namespace, copies: int) -> dict[str, Any]:
    """All systems at one size."""
    from benchmarks.systems import PEERS, Lexent
    from benchmarks.vectors import bake, load, longer, synthetic

    real, queries = load(given.vectors)
    documents = synthetic(real, 0, (given.documents or len(real)) * copies)
    baked = bake(documents)
    workloads = [
        Workload("top 10", queries[: given.queries], 10),
        Workload("top 1000", queries[: given.fewer], 1000),
        Workload("500 latents", longer(queries, given.fewer, 500), 10),
    ]
    _say(f"{baked.n_documents:,} documents, {baked.n_postings:,} postings")
    with tempfile.TemporaryDirectory() as folder:
        race = Race(given, baked, workloads, Lexent(documents), Path(folder))
        del real, documents
        for name in given.peers:
            race.run(PEERS[name]())
        return race.report()


class Race:
    """Lexent against one peer after the other, on the same documents and queries."""

    def __init__(
        self, given: argparse.Namespace, baked: Any, workloads: list[Workload], lexent: Any, folder: Path
    ) -> None:
        from benchmarks import fresh

        self.given, self.baked, self.workloads, self.lexent, self.folder = given, baked, workloads, lexent, folder
        self.truths: dict[tuple[bool, str], Any] = {}
        self.times: dict[str, list[Any]] = {workload.name: [] for workload in workloads}
        self.peers: list[dict[str, Any]] = []
        _warm_packing()
        self.build_s = self._built(lexent)
        lexent.pooled = None
        fresh.note(lexent.folder, lexent.n_documents, lexent.length_units)
        self.opened = sorted(
            (fresh.call("open", given.vectors.resolve(), lexent.folder) for _ in range(5)), key=_open_ms
        )[2]
        lexent.open()
        rows = lexent.stored(baked)
        columns = rows.tocsc()
        self.exact = {workload.name: self._lexent_exact(workload, rows, columns) for workload in workloads}
        del rows, columns
        _say(f"Lexent: built in {self.build_s:.1f} s, exact {self.exact}")

    def run(self, peer: Any) -> None:
        """Builds a peer, checks it and times it, in turn with Lexent."""
        found: dict[str, Any] = {
            "name": peer.name,
            "exact": peer.exact,
            "recall": peer.judged_by_recall,
            "note": peer.note,
        }
        self.peers.append(found)
        if peer.package and importlib.util.find_spec(peer.package) is None:
            found["skipped"] = "not installed"
        elif (expected := _rates.get(peer.name, 0) * self.baked.n_documents) > self.given.patience:
            found["skipped"] = f"would take about {expected:.0f} s"
        else:
            began = time.perf_counter()
            try:
                found |= self._measured(peer)
            except Exception as error:
                found["skipped"] = f"failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            _rates[peer.name] = (time.perf_counter() - began) / self.baked.n_documents
        _say(f"{peer.name}: {found.get('skipped') or found['workloads']}")
        gc.collect()

    def report(self) -> dict[str, Any]:
        n, lexent = self.baked.n_postings, self.lexent
        times = {name: Times.of(rounds) for name, rounds in self.times.items() if rounds}
        return {
            "documents": self.baked.n_documents,
            "postings": n,
            "lexent": {
                "build_s": round(self.build_s, 2),
                "postings_per_s": round(n / self.build_s),
                "bytes": lexent.bytes(),
                "bytes_a_posting": round(lexent.mapped / n, 3),
                "open_ms": round(self.opened["open_ms"], 1),
                "first_ms": round(self.opened["first_ms"], 1),
                "workloads": {
                    name: found.as_dict() | {"tail": round(found.p99 / found.mean, 2), "right": self.exact[name]}
                    for name, found in times.items()
                },
            },
            "peers": self.peers,
        }

    def _built(self, system: Any) -> float:
        folder = self.folder / f"{len(self.peers)}"
        folder.mkdir()
        began = time.perf_counter()
        system.build(self.baked, folder)
        return time.perf_counter() - began

    def _measured(self, peer: Any) -> dict[str, Any]:
        seconds = self._built(peer)
        size = peer.bytes()
        return {
            "build_s": round(seconds, 2),
            "bytes": size,
            "bytes_a_posting": round(size / self.baked.n_postings, 3),
            "workloads": {workload.name: self._timed(peer, workload) for workload in self.workloads},
        }

    def _timed(self, peer: Any, workload: Workload) -> dict[str, Any]:
        n = len(workload.queries)
        theirs, ours = peer.searching(workload.queries, workload.k), self.lexent.searching(workload.queries, workload.k)
        right = self._right(peer, workload, theirs)  # and all is warm
        run_queries(ours, min(n, 20))
        pace = float(run_queries(theirs, min(n, 20)).mean()) / 1e3 * n
        rounds = max(1, min(self.given.rounds, round(self.given.seconds / pace)))
        taken = [(run_queries(ours, n), run_queries(theirs, n)) for _ in range(rounds)]
        self.times[workload.name] += [one for one, _ in taken]
        lexent, found = (Times.of(side) for side in zip(*taken, strict=True))
        return found.as_dict() | {
            "lexent": round(lexent.mean, 4),
            "ratio": round(found.mean / lexent.mean, 2),
            "right": right,
        }

    def _right(self, peer: Any, workload: Workload, search: Any) -> float:
        """The share of queries that a peer answers rightly, or its recall where it cannot be held to that."""
        truth, numbers = self._truth(peer, workload), range(len(workload.queries))
        judge = truth.recall if peer.judged_by_recall else truth.holds
        return float(sum(judge(number, peer.ids(search(number))) for number in numbers) / len(numbers))

    def _truth(self, peer: Any, workload: Workload) -> Any:
        """The best scores over the weights that a system keeps; those of the peers in float32 are the same."""
        import numpy as np

        from benchmarks.exhaustive import Truth
        from benchmarks.vectors import Query

        stored = peer.stored(self.baked)
        shared = stored is self.baked.rows
        if shared and (truth := self.truths.get((peer.unit_queries, workload.name))) is not None:
            return truth
        queries = workload.queries
        if peer.unit_queries:
            queries = [Query(query.ids, np.ones_like(query.values)) for query in queries]
        truth = Truth(stored, self.baked.columns if shared else stored.tocsc(), queries, workload.k)
        if shared:
            self.truths[peer.unit_queries, workload.name] = truth
        return truth

    def _lexent_exact(self, workload: Workload, rows: Any, columns: Any) -> float:
        """The share of queries whose documents and scores are those of all documents scored, ties in document order.

        The scores of all documents come from the engine's own integers and, within rounding, from float64 sums
        over the weights that its files stand for.
        """
        import numpy as np

        from benchmarks.exhaustive import Truth
        from benchmarks.vectors import Query

        scorer, right = self.lexent.document_scorer, 0
        weighted = [scorer.query_weights(query.vectors).of(0) for query in workload.queries]
        truth = Truth(rows, columns, [Query(*pair) for pair in weighted], workload.k)
        search = self.lexent.searching(workload.queries, workload.k)
        for number, (ids, weights) in enumerate(weighted):
            answer, (scores, matched) = search(number), scorer.scores(ids, weights)
            last = np.partition(scores, -workload.k)[-workload.k]
            hits = np.flatnonzero(matched & (scores >= last))
            best = hits[np.lexsort((hits, -scores[hits]))][: workload.k]
            same = np.array_equal(answer.positions[0], best) and np.array_equal(answer.scores[0], scores[best])
            close = np.allclose(answer.scores[0], truth.best[number], rtol=1e-5, atol=0)
            right += same and close and truth.holds(number, answer.positions[0])
        return right / len(weighted)


def _warm_packing() -> None:
    """Compiles what building needs, so that it is not timed."""
    import numpy as np

    from benchmarks.vectors import RECIPE, SIZE
    from lexent.indexing.codes import Codes
    from lexent.indexing.segment import Segment

    Segment.pack(Codes(np.zeros(1, np.int32), np.ones(1, np.uint8), np.array([0, 1])), size=SIZE, recipe=RECIPE)


def _open_ms(found: dict[str, Any]) -> float:
    return float(found["open_ms"])


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _say(line: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
