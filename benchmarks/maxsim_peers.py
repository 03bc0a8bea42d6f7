"""Peers of the MaxSim benchmark, in a process and an environment of their own; nothing of Lexent is imported here.

    python benchmarks/maxsim_peers.py PEER STATES QUERIES FOLDER

One JSON object a line on standard input asks, one a line on standard output answers: `build` makes the index from the
states of the first documents (or opens the one in the folder), `run_queries` answers queries and reports how long each
took.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np


class States:
    """The token states that benchmarks/maxsim_data.py has written, mapped."""

    def __init__(self, place: Path, n: int) -> None:
        self.offsets = np.load(place / "offsets.npy")[: n + 1]
        end = int(self.offsets[-1])
        self.values = np.load(place / "values.npy", mmap_mode="r")[:end]
        self.tokens = np.load(place / "tokens.npy")[:end]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, text: int) -> Any:
        return self.values[self.offsets[text] : self.offsets[text + 1]]


class Plaid:
    """The original PLAID in PyTorch and C++, as PyLate keeps it; asked without PyLate's table of names.

    Its k-means runs on a sample of the passages, nearly all of them here (16 times the root of 120 times their number):
    hours on a CPU. It is smaller where `sample` says so, and the report works out what the whole would take.
    """

    package = "pylate"

    def prepare(self) -> None:
        """Compiles its C++, which is not timed."""
        from pylate.indexes.stanford_nlp.search.index_storage import IndexScorer
        from pylate.indexes.stanford_nlp.search.strided_tensor import StridedTensor

        IndexScorer.try_load_torch_extensions(use_gpu=False)
        StridedTensor.try_load_torch_extensions(use_gpu=False)

    def build(self, states: States, folder: Path, *, sample: int | None = None) -> dict[str, Any]:
        from pylate.indexes.stanford_nlp.indexing.collection_indexer import CollectionIndexer as Indexer

        seconds, chosen, train = (
            {"clustering_s": 0.0, "clustering_cpu_s": 0.0},
            Indexer._sample_pids,
            Indexer._train_kmeans,
        )

        def timed(indexer: Any, rows: Any, shared: Any) -> Any:
            began, cpu = time.perf_counter(), time.process_time()
            centroids = train(indexer, rows, shared)
            seconds["clustering_s"] = time.perf_counter() - began
            seconds["clustering_cpu_s"] = time.process_time() - cpu
            seconds["centroids"] = len(centroids)
            return centroids

        def sampled(indexer: Any) -> Any:
            passages = sorted(chosen(indexer))
            taken = np.random.default_rng(0).permutation(passages)[:sample].tolist()
            seconds["sample"], seconds["own_sample"] = len(taken), len(passages)
            return set(taken)

        Indexer._train_kmeans, Indexer._sample_pids = timed, sampled
        index = self._index(folder, override=True, dim=states.values.shape[1])
        names = [str(number) for number in range(len(states))]
        index.add_documents(documents_ids=names, documents_embeddings=[states.of(text) for text in range(len(states))])
        self.searcher = index._index.searcher
        return seconds

    def open(self, folder: Path, dim: int) -> None:
        self.searcher = self._index(folder, override=False, dim=dim)._index.searcher

    def _index(self, folder: Path, *, override: bool, dim: int) -> Any:
        from pylate import indexes

        return indexes.PLAID(
            index_folder=str(folder),
            index_name="plaid",
            override=override,
            use_fast=False,
            nbits=4,
            embedding_size=dim,
            show_progress=False,
        )

    def searching(self, queries: States, k: int, settings: dict[str, Any]) -> Any:
        import torch

        query_states = [torch.from_numpy(np.asarray(queries.of(text), np.float32)) for text in range(len(queries))]
        self.searcher.configure(**settings)

        def search(number: int) -> Any:
            return self.searcher.search(query_states[number], k=k)

        return search

    def ids(self, answer: Any) -> list[int]:
        return [int(number) for number in answer[0]]


class Tachiom:
    """Token-aware clustering, product quantisation and a graph over the centroids, in Rust."""

    package = "tachiom"
    settings: ClassVar = {
        "tac_n_iter": 10,
        "pq_n_iter": 10,
        "pq_sample_size": 500_000,
        "hnsw_m": 32,
        "ef_construction": 1500,
    }
    """As PyLate builds it, but for the sample that codes are trained on: it takes all tokens, and 16 GB for those."""

    def prepare(self) -> None:
        pass

    def build(self, states: States, folder: Path) -> dict[str, Any]:
        import tachiom

        tokens = states.tokens.astype(np.uint32)
        settings = tachiom.auto_build_params(tokens)
        names = "total_centroids", "tac_micro_threshold", "tac_small_threshold"
        self.index = tachiom.Tachiom.build_from_arrays(
            np.asarray(states.values).view(np.uint16),
            tokens,
            np.diff(states.offsets).astype(np.int32),
            **{name: settings[name] for name in names},
            **self.settings,
        )
        self.index.save(str(folder / "tachiom.bin"))
        return {"centroids": int(self.index.n_centroids)}

    def open(self, folder: Path, dim: int) -> None:
        import tachiom

        self.index = tachiom.Tachiom.load(str(folder / "tachiom.bin"))

    def searching(self, queries: States, k: int, settings: dict[str, Any]) -> Any:
        query_states = [np.ascontiguousarray(queries.of(text), np.float32) for text in range(len(queries))]

        def search(number: int) -> Any:
            return self.index.search(query_states[number], k=k, **settings)

        return search

    def ids(self, answer: Any) -> list[int]:
        return [int(number) for number in answer[1]]


PEERS: dict[str, Any] = {"plaid": Plaid, "tachiom": Tachiom}
NOTE = "built.json"


class Server:
    def __init__(self, peer: str, states: Path, queries: Path, folder: Path) -> None:
        self.peer, self.states, self.queries, self.folder = PEERS[peer](), states, queries, folder
        self.searches: dict[str, Any] = {}

    def build(self, *, documents: int, again: bool = False, **settings: Any) -> dict[str, Any]:
        """The index: opened where the folder has it. How long it took to make is kept beside it."""
        note = self.folder / NOTE
        states = States(self.states, documents)
        self.peer.prepare()
        if again or not note.is_file():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            began, cpu = time.perf_counter(), time.process_time()
            more = self.peer.build(states, self.folder, **settings)
            found = {**more, "build_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
            found |= {"date": time.strftime("%Y-%m-%d"), "threads": int(os.environ.get("OMP_NUM_THREADS", "0"))}
            found |= {"version": version(self.peer.package), "peak_gb": _peak() / 2**30}
            note.write_text(json.dumps(found))
        else:
            self.peer.open(self.folder, states.values.shape[1])
            found = json.loads(note.read_text()) | {"kept": True}
        files = [path for path in self.folder.rglob("*") if path.is_file() and path.name != NOTE]
        return {**found, "bytes": sum(path.stat().st_size for path in files)}

    def run_queries(self, *, settings: dict[str, Any], k: int, numbers: list[int]) -> dict[str, Any]:
        """Answers and times of some queries."""
        key = json.dumps([settings, k], sort_keys=True)
        if key not in self.searches:
            known = len(np.load(self.queries / "offsets.npy")) - 1
            self.searches = {key: self.peer.searching(States(self.queries, known), k, settings)}
        search, taken, answers, cpu = self.searches[key], [], [], time.process_time()
        for number in numbers:
            began = time.perf_counter()
            answer = search(number)
            taken.append((time.perf_counter() - began) * 1e3)
            answers.append(self.peer.ids(answer))
        return {"ms": taken, "ids": answers, "cpu_s": time.process_time() - cpu}


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main() -> None:
    peer, *places = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the peers print is talk
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    if "plaid" in peer:
        import torch

        torch.set_num_threads(threads)
    server = Server(peer, *map(Path, places))
    for line in sys.stdin:
        given = json.loads(line)
        try:
            answer = getattr(server, given.pop("do"))(**given)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
