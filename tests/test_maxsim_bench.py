"""The MaxSim benchmark: its passages and queries, its brute force, its report."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1]))  # benchmarks/ is no part of the package

from benchmarks import charts, maxsim, maxsim_compare, maxsim_report
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


def point(label: str, ms: float, quality: float, **more: object) -> dict[str, object]:
    return {"label": label, "mean": ms, "with_coding": ms, "nDCG@10": quality, **more}


def measured() -> dict[str, object]:
    """Lexent at two settings and one that they beat; a peer that it meets twice and misses once, one that it beats."""
    ratios = {"fast": 4.0, "beaten": 2.0, "exact": 1.5}
    peer = [
        point(label, ms, quality, ratios=ratios, search_ratios=ratios)
        for label, ms, quality in (("PLAID, low", 8, 0.60), ("PLAID, equal", 9, 0.65), ("PLAID, high", 90, 0.70))
    ]
    other = [point("TACHIOM, only", 3, 0.50, ratios=ratios, search_ratios=ratios)]
    ours = [point("exact", 6, 0.65), point("fast", 2, 0.62), point("beaten", 4, 0.61)]
    return {
        "documents": 20_000,
        "lexent": {"points": ours},
        "peers": [{"name": "plaid", "points": peer}, {"name": "tachiom", "points": other}],
        "brute": {"states": {"mean": 900.0, "nDCG@10": 0.71}, "codes": {"mean": 30.0, "nDCG@10": 0.65}},
    }


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_a_peers_point_stands_beside_the_quickest_setting_that_is_as_good() -> None:
    rows = {row[0]: row[3:7] for row in cells(maxsim_compare.peers_matched(measured()))}
    assert rows["PLAID, low"] == ["fast", "0.6200", "2", "4.0"]
    assert rows["PLAID, equal"] == ["exact", "0.6500", "6", "1.5"]
    assert rows["PLAID, high"] == ["not reached", "", "", ""]


def test_lexents_settings_stand_beside_the_quickest_points_that_are_as_good() -> None:
    rows = cells(maxsim_compare.lexent_matched(measured()))
    assert [row[0] for row in rows] == ["fast", "exact"]  # not the one that is beaten in both
    assert rows[0][3:] == ["equal", "9", "4.0", "not reached", "", ""]


def test_what_is_not_reached_is_said() -> None:
    said = " ".join(maxsim_compare.sentences(measured()))
    assert "Lexent reaches the nDCG@10 of 2 of PLAID's 3 points, and PLAID takes 1.5 to 4.0 times as long" in said
    assert "PLAID reaches what Lexent does not: 0.7000, where Lexent's best is 0.6500 (exact, 6 ms)" in said
    assert "Lexent reaches what TACHIOM does not: 0.6500, where TACHIOM's best is 0.5000" in said
    assert "TACHIOM reaches what Lexent does not" not in said


def test_plot_has_every_point_of_every_system() -> None:
    plot = maxsim_compare.plot(measured())
    systems = ["Lexent, with coding", "PLAID", "TACHIOM", "brute force over the states", "brute force over the codes"]
    assert all(f">{name}</text>" in plot for name in systems)
    assert plot.count("<circle") == 3 + 3 + 1 + 1 + 1 + len(systems)  # points, and the legend


def test_frontier_leaves_out_what_is_slower_and_no_better() -> None:
    assert charts.frontier([(4, 0.61), (2, 0.62), (6, 0.65), (2, 0.5)]) == [(2, 0.62), (6, 0.65)]


def test_benchmark_runs_without_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts(tmp_path, 2 * HELD_OUT)
    page = tmp_path / "docs" / "maxsim.md"
    given = f"maxsim {tmp_path} --passages 140 --queries 3 --peers= --cache {tmp_path} --docs {page}"
    monkeypatch.setattr(sys, "argv", given.split())
    monkeypatch.setattr(maxsim, "one_core", lambda **_: None)  # this process runs other tests too
    maxsim.main()
    found = json.loads(page.with_suffix(".json").read_text())
    assert [one["label"] for one in found["lexent"]["points"]] == list(maxsim.LEXENT)
    assert sum(one["default"] for one in found["lexent"]["points"]) == 1
    exact = found["lexent"]["points"][0]
    assert exact["recall"] == 1.0
    assert exact["nDCG@10"] == found["brute"]["codes"]["nDCG@10"]
    assert found["command"].endswith('ARGS="--passages 140"')
    assert "| **Lexent, exact** " in page.read_text()
    assert page.with_name("maxsim-quality.svg").is_file()


def test_page_is_that_of_the_recorded_run() -> None:
    docs = Path(__file__).parents[1] / "docs"
    found = json.loads((docs / "maxsim.json").read_text())
    assert (docs / "maxsim.md").read_text() == maxsim_report.page_text(found)
    assert (docs / "maxsim-quality.svg").read_text() == maxsim_compare.plot(found)
