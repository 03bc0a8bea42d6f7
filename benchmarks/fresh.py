"""What is measured in a process of its own: building within bounded memory, and opening.

    python -m benchmarks.fresh build VECTORS FOLDER DOCUMENTS MEMORY
    python -m benchmarks.fresh open VECTORS FOLDER [QUERIES]

`build` makes synthetic documents chunk by chunk and packs them; `open` opens what was built, with nothing of it in the
page cache, and asks queries. Each prints one JSON object.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NOTE = "packed.json"
STRETCH = 16_384
"""Documents that are made at a time."""


def call(*arguments: object) -> dict[str, Any]:
    """Runs this module in a new process."""
    command = [sys.executable, "-m", "benchmarks.fresh", *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    if found.returncode:
        raise RuntimeError(f"{' '.join(command[2:])} failed:\n{found.stderr}")
    report: dict[str, Any] = json.loads(found.stdout)
    return report


def note(folder: Path, n_documents: int, length_units: int) -> None:
    """Leaves in the folder what `open` has to know, and waits until all is on the disk."""
    (folder / NOTE).write_text(json.dumps({"n_documents": n_documents, "length_units": length_units}))
    os.sync()


def build(vectors: Path, folder: Path, n_documents: int, memory: int) -> dict[str, Any]:
    from benchmarks.vectors import RECIPE, SIZE, load, squared, synthetic
    from lexent.indexing.codes import Codes
    from lexent.indexing.segment import Packer

    real, _ = load(vectors)
    warm = Packer(size=SIZE, recipe=RECIPE)
    warm.add(Codes.of(squared(synthetic(real, 0, 100)), RECIPE))
    warm.segment()
    before, packer, seconds, entries = (
        peak_memory(),
        Packer(size=SIZE, recipe=RECIPE, folder=folder, memory=memory),
        0.0,
        0,
    )
    for start in range(0, n_documents, STRETCH):
        documents = squared(synthetic(real, start, min(start + STRETCH, n_documents)))
        began = time.perf_counter()
        packer.add(Codes.of(documents, RECIPE))
        seconds += time.perf_counter() - began
        entries += len(documents.ids)
    began = time.perf_counter()
    packer.close()
    seconds += time.perf_counter() - began
    report = {"build_s": seconds, "postings": entries, "memory_before": before, "peak_memory": peak_memory()}
    note(folder, packer.n_documents, packer.length_units)
    return report


def open_(vectors: Path, folder: Path, n_queries: int = 1) -> dict[str, Any]:
    import numpy as np

    from benchmarks.timing import Times, run_queries
    from benchmarks.vectors import RECIPE, SIZE, load_queries
    from lexent.indexing.segment import Segment
    from lexent.search.document_scorer import DocumentScorer

    queries = [query.vectors for query in load_queries(vectors)[:n_queries]]
    known = json.loads((folder / NOTE).read_text())
    for path in folder.iterdir():
        forget(path)
    began = time.perf_counter()
    scorer = DocumentScorer([Segment.open(folder, size=SIZE, **known)], RECIPE, size=SIZE)
    opened = time.perf_counter()
    scorer.top(queries[0], 10, threads=1)
    answered = time.perf_counter()
    report: dict[str, Any] = {"open_ms": (opened - began) * 1e3, "first_ms": (answered - opened) * 1e3}
    segment = scorer.segments[0]
    report |= {"postings": segment.n_postings, "mapped": segment.bytes + segment.n_documents}
    if n_queries > 1:
        passes = [run_queries(lambda number: scorer.top(queries[number], 10, threads=1), n_queries) for _ in range(4)]
        report["cold"] = Times.of(passes[:1]).as_dict()
        report["warm"] = Times.of(passes[1:]).as_dict()
        report["peak_memory"] = peak_memory()
        scores, _ = scorer.scores(*scorer.query_weights(queries[0]).of(0))
        best = np.lexsort((np.arange(len(scores)), -scores))[:10]
        report["exact"] = bool((scorer.top(queries[0], 10).positions[0] == best).all())
    return report


def forget(path: Path) -> None:
    """Asks the kernel to drop a file from its page cache."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def peak_memory() -> int:
    """The most that this process has held at a time, in bytes, mapped files included."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    verb, vectors, folder, *rest = sys.argv[1:]
    run: Any = {"build": build, "open": open_}[verb]
    print(json.dumps(run(Path(vectors), Path(folder), *map(int, rest))))
