"""How latency, size and building grow with the collection, up to ten million synthetic documents.

    python -m benchmarks.growth VECTORS [--sizes 120000,600000,...] [--memory 2] [--json] [--docs docs/benchmarks.md]

Each index is built in a process of its own within bounded memory, and opened and searched in another.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import fresh, report
from benchmarks.timing import one_core

VECTORS = Path("../shared/bench")
SIZES = [120_000, 600_000, 1_200_000, 2_400_000, 4_800_000, 10_000_000]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vectors", nargs="?", type=Path, default=VECTORS, help="folder of lt120k-*.npz")
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=SIZES)
    parser.add_argument("--memory", type=float, default=2, help="GB that building may take")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--scratch", type=Path, help="where to put the indexes meanwhile")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--docs", type=Path, help="the page to write the table and the plot into")
    given = parser.parse_args()
    one_core()
    found: dict[str, Any] = report.setting("make bench-growth VECTORS=folder-of-vectors")
    found["memory"] = int(given.memory * 2**30)
    found["sizes"] = [measure(given, n_documents, found["memory"]) for n_documents in given.sizes]
    print(json.dumps(found) if given.json else report.growth_text(found))
    if given.docs:
        report.write_growth(given.docs, found)


def measure(given: argparse.Namespace, n_documents: int, memory: int) -> dict[str, Any]:
    """One size: built, opened, asked."""
    vectors = given.vectors.resolve()
    folder = Path(tempfile.mkdtemp(dir=given.scratch))
    try:
        began = time.perf_counter()
        built = fresh.call("build", vectors, folder, n_documents, memory)
        taken = time.perf_counter() - began
        opened = fresh.call("open", vectors, folder, given.queries)
        size = sum(path.stat().st_size for path in folder.iterdir())
    finally:
        shutil.rmtree(folder)
    found = {"documents": n_documents, "whole_build_s": taken, "bytes": size}
    found |= {**opened, **built}
    print(f"[{time.strftime('%H:%M:%S')}] {n_documents:,} documents: {json.dumps(found)}", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
