"""The two engines of the embedded encoder: how soon one is ready, a query's time, texts a second, and how far apart.

    python -m benchmarks.encoding [--texts COLLECTION] [--threads 1]

Each engine is measured in processes of its own; the medians of some runs are shown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

QUERY = "do statins prevent dementia in older adults?"
RUNS, QUERIES, TEXTS = 3, 100, 100
CODE = """
import json, sys
from time import perf_counter
start = perf_counter()
from lexent.models import load_encoder
encoder = load_encoder(engine={engine!r})
ready = perf_counter() - start
list(encoder.batches([{query!r}], kind="query"))
first = perf_counter() - start
def seconds(work):
    start = perf_counter()
    work()
    return perf_counter() - start
spent = sorted(seconds(lambda: list(encoder.batches([{query!r}], kind="query"))) for _ in range({queries}))
texts = json.loads(sys.stdin.read())
list(encoder.batches(texts[:2], kind="document"))
bulk = seconds(lambda: list(encoder.batches(texts, kind="document"))) if texts else 0.0
query, rate = 1e3 * spent[len(spent) // 2], len(texts) / max(bulk, 1e-9)
print(json.dumps({{"ready": ready, "first": first, "query": query, "texts": rate}}))
"""


def measured(engine: str, texts: list[str], *, threads: int) -> dict[str, float]:
    """One process. Compiled kernels are in the cache from the second on."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads)), "HF_HUB_OFFLINE": "1"}
    environment |= {"LEXENT_KERNELS": "compiled"}
    code = CODE.format(engine=engine, query=QUERY, queries=QUERIES)
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(texts), capture_output=True, text=True, check=True,
        env=environment,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def distance(texts: list[str]) -> tuple[float, float]:
    """The largest difference of any number of a state: from torch in float32, and the cosine to torch as it is used."""
    import numpy as np
    from sentence_transformers import SentenceTransformer

    from lexent.encoders.encoder import encode
    from lexent.encoders.sentence import embedded_model
    from lexent.models import load_encoder

    light = encode(load_encoder(engine="light"), texts, kind="document")
    model = SentenceTransformer(str(embedded_model()), device="cpu", local_files_only=True).float()
    wanted = np.concatenate([rows.numpy() for rows in model.encode(texts, output_value="token_embeddings")])
    used = encode(load_encoder(engine="torch", device="cpu"), texts, kind="document").numpy()
    mine = light.numpy()
    lengths = np.linalg.norm(mine, axis=1) * np.linalg.norm(used, axis=1)
    return float(np.abs(mine - wanted).max()), float(((mine * used).sum(axis=1) / lengths).mean())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=Path, default=Path("../shared/data/scifact"), help="a BEIR folder")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()

    from lexent.evaluation import collections

    texts = collections.load(given.texts, split="train").texts[:TEXTS]
    print("| engine | ready, s | first query, s | a query, ms | texts/s |\n|---|---|---|---|---|")
    for engine in ("light", "torch"):
        measured(engine, [], threads=given.threads)  # compiles what is not compiled
        runs = [measured(engine, texts, threads=given.threads) for _ in range(RUNS)]
        ready, first, query, rate = (median(run[name] for run in runs) for name in ("ready", "first", "query", "texts"))
        print(f"| {engine} | {ready:.2f} | {first:.2f} | {query:.2f} | {rate:.1f} |", flush=True)
    apart, cosine = distance(texts[:40])
    print(
        f"\nlight and torch in float32: at most {apart:.1e} apart; light and torch as it is used: cosine {cosine:.5f}"
    )


if __name__ == "__main__":
    main()
