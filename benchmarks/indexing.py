"""How long from text to a searchable index, beside sentence-transformers encoding the same texts in float32.

    python benchmarks/indexing.py [TEXTS] [--documents 300] [--rounds 3] [--json]

TEXTS is any corpus that `lexent index` reads; by default the SciFact abstracts of the evaluation collections where they
are found (LEXENT_DATA), else the docstrings of Python's standard library. Both sides have their models loaded and have
run once before they are timed; they take turns, and the median of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from datetime import date
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="?", help="a corpus that lexent index reads")
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    name, documents = corpus(given.texts, given.documents)

    import torch
    from sentence_transformers import SentenceTransformer

    from lexent.encoders.sentence import embedded_model
    from lexent.engine import Index
    from lexent.lexicon import load as load_lexicon
    from lexent.models import load_encoder

    texts = [document.content for document in documents]
    peer = SentenceTransformer(str(embedded_model()), device="cpu")
    encoder, lexicon = load_encoder(), load_lexicon()
    tokens = sum(len(found) for found in encoder.tokenize(texts, kind="document"))

    def encode_only() -> None:
        peer.encode(texts, batch_size=32, show_progress_bar=False)

    def whole_way() -> None:
        with tempfile.TemporaryDirectory() as folder:
            Index.build(documents, out=Path(folder) / "bench.lexent", encoder=encoder, lexicon=lexicon)

    def states_only() -> None:
        for _ in encoder.batches(texts, kind="document"):
            pass

    runs = {"sentence-transformers, float32, encode only": encode_only, "lexent: encode, code, index": whole_way}
    runs["lexent: encode only"] = states_only
    warm = documents[:64]
    peer.encode([document.content for document in warm], show_progress_bar=False)
    with tempfile.TemporaryDirectory() as folder:
        Index.build(warm, out=Path(folder) / "warm.lexent", encoder=encoder, lexicon=lexicon)
    seconds: dict[str, list[float]] = {label: [] for label in runs}
    for _ in range(given.rounds):
        for label, run in runs.items():
            began = time.perf_counter()
            run()
            seconds[label].append(time.perf_counter() - began)
    median = {label: statistics.median(times) for label, times in seconds.items()}
    base = median["sentence-transformers, float32, encode only"]
    report = {
        "command": "python " + " ".join(sys.argv),
        "data": f"{name}: {len(texts)} documents, {tokens} tokens",
        "machine": f"{_cpu()}, {os.cpu_count()} cores, torch {torch.__version__}, {torch.get_num_threads()} threads",
        "encoder": f"{encoder.id} in {encoder.model.dtype}",
        "date": date.today().isoformat(),
        "documents_per_second": {label: round(len(texts) / time_, 1) for label, time_ in median.items()},
        "tokens_per_second": {label: round(tokens / time_) for label, time_ in median.items()},
        "ratio": {label: round(base / time_, 2) for label, time_ in median.items()},
    }
    if given.json:
        print(json.dumps(report))
        return
    for key in ("command", "data", "machine", "encoder", "date"):
        print(f"{key:9} {report[key]}")
    print(f"\n{'':46} {'documents/s':>12} {'tokens/s':>10} {'ratio':>7}")
    for label, time_ in median.items():
        print(f"{label:46} {len(texts) / time_:12.1f} {tokens / time_:10,.0f} {base / time_:7.2f}")


def corpus(source: str | None, most: int) -> tuple[str, list]:
    from itertools import islice

    from lexent.corpus import read
    from lexent.demo.docstrings import collect

    data = Path(os.environ.get("LEXENT_DATA", "../shared/data")) / "scifact"
    if source is None and data.is_dir():
        source = str(data)
    if source is None:
        return "standard-library docstrings", collect(limit=most)
    return Path(source).name, list(islice(read(source), most))


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
