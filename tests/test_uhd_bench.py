"""The benchmark of counting: its passages and queries, the codes that it keeps, its report."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1]))  # benchmarks/ is no part of the package

from benchmarks import uhd_data, uhd_report
from benchmarks.maxsim_data import HELD_OUT
from lexent.indexing.postings import quantisation
from lexent.types import SparseVectors


def texts(folder: Path, n: int) -> None:
    for name in ("acl-abstracts", "pubmed-abstracts", "wikipedia-summaries"):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt") as file:
            for row in range(n):
                words = f"Text {row} in {name} says " + "a thing or two " * 30
                file.write(json.dumps({"title": f"A title about row {row} of {name}", "text": words}) + "\n")


def test_queries_are_titles_of_held_out_abstracts(tmp_path: Path) -> None:
    texts(tmp_path, 2 * HELD_OUT)
    passages, queries, answers = uhd_data.passages(tmp_path, 10_000)
    assert len(passages) == len(set(passages)) == 6 * HELD_OUT
    assert max(len(passage.split()) for passage in passages) == 90
    assert len(queries) == 4  # two lines of each file of abstracts
    for title, answer in zip(queries, answers, strict=True):
        row, name = title.split()[4], title.split()[6]
        assert (int(row) + 1) % HELD_OUT == 0
        assert passages[answer].startswith(f"Text {row} in {name} says")
    fewer = uhd_data.passages(tmp_path, 100)
    assert fewer[0] == passages[:100]
    assert fewer[1] == queries[: len(fewer[1])]


def test_codes_are_made_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uhd_data, "SHARD", 2)
    made: list[str] = []

    def code(some: list[str]) -> SparseVectors:
        made.extend(some)
        ids = np.arange(3 * len(some), dtype=np.int32) % 3
        return SparseVectors(ids, np.full(len(ids), 0.1117, np.float32), np.arange(0, len(ids) + 1, 3), 3)

    for kind, names in (("document", "passages"), ("query", "queries")):
        for _ in range(2):
            parts = list(uhd_data.shards(["a", "b", "c"], tmp_path, kind=kind, code=code))  # type: ignore[arg-type]
            assert [len(part) for part in parts] == [2, 1]
        assert made == ["a", "b", "c"]
        made.clear()
        assert sorted(path.name for path in tmp_path.glob(f"{names}*")) == [f"{names}-000.npz", f"{names}-001.npz"]
        exact = kind == "query"
        expected = (
            np.float32(0.1117)
            if exact
            else np.float32(quantisation.CODE_VALUES[quantisation.encode(np.float32([0.1117]))[0]])
        )
        assert (parts[0].values == expected).all()
    assert parts[0].below(2).ids.tolist() == [0, 1, 0, 1]
    assert parts[0].below(2).offsets.tolist() == [0, 2, 4]
    with pytest.raises(SystemExit, match="has 1 texts, not 2"):
        list(uhd_data.shards(["a", "b", "c", "d"], tmp_path, kind="document", code=code))


def test_made_up_codes_find_their_documents() -> None:
    from benchmarks.uhd import quality

    passages, queries, answers = uhd_data.synthetic(300, size=2000, latents=120, queries=5)
    assert len(passages) == 300
    assert 60 < len(passages.ids) / 300 < 140

    def best(row: int) -> list[int]:
        own = queries.ids[queries.offsets[row] : queries.offsets[row + 1]]
        shared = np.add.reduceat(np.isin(passages.ids, own), passages.offsets[:-1])
        return np.argsort(-shared)[:10].tolist()

    assert quality(best, answers)["nDCG@10"] > 0.9
    assert quality(lambda row: [-1, answers[row]], answers)["nDCG@10"] == pytest.approx(1 / np.log2(3))


def test_the_page_says_which_targets_are_met(tmp_path: Path) -> None:
    one = {"mean": 0.1, "p50": 0.1, "p99": 0.2, "nDCG@10": 0.5, "R@10": 0.6, "build_s": 1.0}
    one |= {"bytes": 110, "postings": 100, "postings_a_query": 10, "latents_a_query": 5, "tokenising_ms": one}
    systems = {name: dict(one) for name in uhd_report.NAMES}
    found = {**uhd_report.setting(["a b c d"], ["e"], cap=100), "lexicon": "x", "systems": systems, "same": 1.0}
    uhd_report.write(tmp_path / "page.md", found)
    page = (tmp_path / "page.md").read_text()
    assert "no slower than bm25s" in page
    assert "1.100 bytes a posting" in page
    systems["bm25s, numba"]["mean"], systems["counts"]["bytes"] = 0.05, 140
    assert "slower than bm25s with its Numba backend (0.50 times as fast" in uhd_report.text(found)
    assert "at most 1.3 were to be reached: no" in uhd_report.text(found)
