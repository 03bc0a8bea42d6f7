"""The MaxSim benchmark: its passages and queries, its brute force, its report."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1]))  # benchmarks/ is no part of the package

from benchmarks import maxsim_report
from benchmarks.maxsim_data import HELD_OUT, TokenStates, collection
from benchmarks.maxsim_exact import best


def texts(folder: Path, n: int) -> None:
    for name in ("acl-abstracts", "pubmed-abstracts"):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt") as file:
            for row in range(n):
                sentences = [f"Sentence {part} of text {row} in {name} says a thing or two." for part in range(7)]
                title = f"A title about row {row} of {name}"
                file.write(json.dumps({"title": title, "text": " ".join(sentences)}) + "\n")


def test_queries_are_held_out_titles_and_their_passages(tmp_path: Path) -> None:
    texts(tmp_path, 4 * HELD_OUT)
    found = collection(tmp_path, passages=300, queries=5)
    assert len(found.passages) >= 300
    assert len(set(found.passages)) == len(found.passages)
    assert len(found.queries) == 5
    for title, relevant in zip(found.queries, found.relevant, strict=True):
        row, name = int(title.split()[4]), title.split()[6]
        assert row % HELD_OUT == HELD_OUT - 1
        assert len(relevant) == 3  # seven sentences
        assert all(f"of text {row} in {name} says" in found.passages[place] for place in relevant)
    assert found.fingerprint == collection(tmp_path, passages=300, queries=5).fingerprint


def test_brute_force_is_the_sum_of_the_highest_products() -> None:
    draw = np.random.default_rng(0)
    counts = draw.integers(1, 9, 300)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    values = draw.standard_normal((offsets[-1], 8)).astype(np.float16)
    zeros = np.zeros(offsets[-1])
    states = TokenStates(values, zeros.astype(np.float32), zeros.astype(np.int64), offsets)
    queries = [draw.standard_normal((n, 8)).astype(np.float16) for n in (3, 5)]
    ids, milliseconds = best(states, queries, k=7)
    assert milliseconds > 0
    for row, query in enumerate(queries):
        scores = [
            (query.astype(np.float64) @ states.of(place).astype(np.float64).T).max(axis=1).sum() for place in range(300)
        ]
        assert ids[row].tolist() == np.argsort(-np.array(scores))[:7].tolist()


@pytest.mark.parametrize(("sample", "seconds"), [(1000, 100 + 40 * 3), (4000, None)])
def test_what_a_larger_sample_would_take(sample: int, seconds: float | None) -> None:
    peer = {"cpu_s": 100.0, "clustering_cpu_s": 40.0, "sample": sample, "own_sample": 4000}
    assert maxsim_report.own_sample_s(peer) == seconds
