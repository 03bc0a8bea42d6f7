"""What an adapter costs a query: beside plain dense search, PRF-DIME, Search-Adaptor and Hypencoder, at growing sizes.

    python -m benchmarks.adapters --docs docs/adapt.md

Latency does not depend on what was learned, so the networks are random. Vectors are drawn at random too: all of these
methods look at every number of every document.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read when NumPy is first imported, which timing does
    os.environ[_name] = "1"

from benchmarks.timing import Times, one_core, run_queries  # noqa: E402

one_core()

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from benchmarks.report import setting, table  # noqa: E402

SIZES = (5_000, 66_000, 1_000_000)
DIM, K = 384, 10
ROUNDS = 5
LIMIT = 3.0
"""The adapter's closed form is to stay within so many times plain dense search."""

Search = Callable[[NDArray[np.float32]], Any]


def vectors(n: int, seed: int) -> NDArray[np.float32]:
    """float32[n, DIM], unit rows."""
    rows = np.random.default_rng(seed).standard_normal((n, DIM), np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def systems(documents: NDArray[np.float32]) -> dict[str, Search]:
    """Every method over the same documents, by name; each gives the K best."""
    import torch

    from lexent.adapters import Adapter, AdapterConfig, AdapterInfo, TrainSettings
    from lexent.adapters.baselines import Hypencoder, HypencoderSearch, ResidualSearch, SearchAdaptor
    from lexent.adapters.corpus import AdaptedCorpus, best
    from lexent.adapters.dime import Dime
    from lexent.adapters.network import Network

    torch.manual_seed(0)
    torch.set_num_threads(1)

    def adapter(**form: Any) -> AdaptedCorpus:
        config = AdapterConfig(DIM, DIM, **form)
        network = Network(config, TrainSettings(), np.eye(DIM, dtype=np.float32))
        tensors = network.tensors(documents[:1])
        random = np.random.default_rng(0)
        tensors = {
            name: tensor if name == "projector" else random.standard_normal(tensor.shape, np.float32) * np.float32(0.05)
            for name, tensor in tensors.items()
        }
        # The projector stays the identity here, so that one matrix of documents serves all methods in memory.
        return AdaptedCorpus(Adapter(config, tensors, AdapterInfo("benchmark", "none", "none")), documents)

    whole, alone = adapter(), adapter(feedback="none")
    low = adapter(mode="lowrank", feedback="none")
    full = adapter(mode="full", feedback="none", hidden=32)
    dime, residual = Dime(documents, removed=0.4), ResidualSearch(SearchAdaptor(DIM).eval(), documents)
    found: dict[str, Search] = {
        "dense": lambda query: best(documents @ query, K),
        "imrnn diag": lambda query: alone.search(query, K),
        "imrnn diag, with feedback": lambda query: whole.search(query, K),
        "imrnn lowrank": lambda query: low.search(query, K),
        "imrnn diag, 100 ranked again": lambda query: whole.rerank(query, 100),
        "imrnn full, 100 ranked again": lambda query: full.rerank(query, 100),
        "prf-dime-40": lambda query: dime.search(query, K),
        "search-adaptor": lambda query: residual.search(query, K),
    }
    for layers in (2, 4, 6, 8):
        model = HypencoderSearch.of(Hypencoder(DIM, layers=layers).eval(), documents)
        found[f"hypencoder, {layers} layers"] = lambda query, own=model: own.search(query, K)
    return found


def measure(n: int) -> dict[str, Any]:
    """Rounds of the same queries, all methods in turn within a round."""
    documents = vectors(n, 0)
    queries = vectors(max(4, min(40, 600_000 // n)), 1)
    methods = systems(documents)
    for search in methods.values():
        search(queries[0])
    taken: dict[str, list[NDArray[np.float64]]] = {name: [] for name in methods}
    for _ in range(ROUNDS):
        for name, search in methods.items():
            taken[name].append(run_queries(lambda at, search=search: search(queries[at]), len(queries)))
    times = {name: Times.of(rounds) for name, rounds in taken.items()}
    ratios = {
        name: float(np.median([mine.mean() / dense.mean() for mine, dense in zip(rounds, taken["dense"], strict=True)]))
        for name, rounds in taken.items()
    }
    return {
        "vectors": n,
        "methods": {name: {**each.as_dict(), "x": round(ratios[name], 2)} for name, each in times.items()},
    }


def text(found: dict[str, Any]) -> str:
    """For the terminal and for the page."""
    facts = "\n".join(
        f"- {key}: {f'`{found[key]}`' if key == 'command' else found[key]}"
        for key in ("command", "data", "machine", "date")
    )
    head = ["ms a query, top 10"]
    for size in found["sizes"]:
        head += [f"{size['vectors']:,}", "x"]
    rows = []
    for name in found["sizes"][0]["methods"]:
        row = [name]
        for size in found["sizes"]:
            row += [f"{size['methods'][name]['mean']:.3g}", f"{size['methods'][name]['x']:.2f}"]
        rows.append(row)
    worst = max(size["methods"]["imrnn diag"]["x"] for size in found["sizes"])
    kept = "within" if worst <= LIMIT else "NOT within"
    said = (
        f"The closed form of `diag` over all documents takes at most {worst:.2f} times plain dense search: {kept} "
        f"{LIMIT:.0f} times."
    )
    return f"{facts}\n\n{table(head, rows)}\n\n{said}"


def write(page: Path, shown: str) -> None:
    """Puts the figures between the markers of the page."""
    start, stop = "<!-- latency -->", "<!-- /latency -->"
    whole = page.read_text()
    page.write_text(f"{whole.split(start)[0]}{start}\n{shown}\n{stop}{whole.split(stop)[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="the page to write the figures into, between its markers")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of vectors, with commas")
    parser.add_argument("--json", type=Path, help="also write all values there")
    given = parser.parse_args()
    data = (
        f"random unit vectors of {DIM} numbers, float32; one thread; the mean over queries of each query's median over "
        f"{ROUNDS} rounds, methods in turn within a round; x: times plain dense search (NumPy's product, the 10 best)"
    )
    found = {**setting("make bench-adapt"), "data": data, "sizes": [measure(int(n)) for n in given.sizes.split(",")]}
    print(text(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    if given.docs:
        write(given.docs, text(found))


if __name__ == "__main__":
    main()
