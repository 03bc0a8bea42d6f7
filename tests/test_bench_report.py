"""The report of the index benchmark: recorded runs, and the pages rendered from them."""

from __future__ import annotations

import copy
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # benchmarks/ is no part of the package

from benchmarks import engine, engine_report, report

ROOT = Path(__file__).parents[1]


def shipped() -> engine_report.Runs:
    return engine_report.recorded(ROOT / "docs" / "benchmarks.json")


def between(page: Path, name: str) -> str:
    return page.read_text().split(f"<!-- {name} -->\n")[1].split(f"\n<!-- /{name} -->")[0]


def run_of(instructions: str, mean: float) -> dict[str, Any]:
    """A recorded run as if measured with other instructions: its figures are marked by one mean."""
    run = copy.deepcopy(next(iter(shipped().values())))
    run["instructions"] = instructions
    run["sizes"][0]["lexent"]["workloads"]["top 10"]["mean"] = mean
    return run


def test_pages_are_those_of_the_recorded_runs() -> None:
    runs = shipped()
    docs = ROOT / "docs"
    assert between(docs / "benchmarks.md", "engine") == engine_report.page_text(
        runs, plot_name="benchmarks-latency.svg"
    )
    assert between(ROOT / "README.md", "engine") == engine_report.readme_text(runs)
    assert (docs / "benchmarks-latency.svg").read_text() == engine_report.plot(runs)


def test_a_run_replaces_that_of_its_instruction_set_alone(tmp_path: Path) -> None:
    page, readme = tmp_path / "page.md", tmp_path / "README.md"
    readme.write_text("before\n<!-- engine -->\n<!-- /engine -->\nafter\n")
    for instructions, mean in (("AVX-512", 0.111), ("AVX2", 0.222), ("AVX-512", 0.333)):
        engine_report.write(page, run_of(instructions, mean), readme=readme)
    runs = engine_report.recorded(tmp_path / "page.json")
    assert list(runs) == ["AVX2", "AVX-512"]
    first = engine_report.summary(runs).splitlines()
    assert [cell.strip() for cell in first[0].split("|")[2:-1]] == [
        f"{name} {figure}" for name in ("AVX2", "AVX-512") for figure in ("mean ms", "x", "p99/mean")
    ]
    assert [cell.strip() for cell in first[2].split("|")][2:6:3] == ["0.222", "0.333"]
    whole = page.read_text()
    assert "0.111" not in whole
    assert whole.index("### AVX2: ") < whole.index("### AVX-512: ")
    assert "0.22" in readme.read_text()
    assert readme.read_text().startswith("before\n")
    assert readme.read_text().endswith("after\n")
    plot = (tmp_path / "page-latency.svg").read_text()
    assert "120,000 documents, top 10, AVX2" in plot
    assert "120,000 documents, top 10, AVX-512" in plot


def test_summary_leaves_blank_what_a_run_does_not_have() -> None:
    small = run_of("AVX2", 0.5)
    del small["sizes"][1]
    rows = engine_report.summary({"AVX2": small, "AVX-512": run_of("AVX-512", 0.6)}).splitlines()
    assert [cell.strip() for cell in rows[-1].split("|")[2:5]] == ["", "", ""]
    assert rows[-1].split("|")[5].strip()


def test_setting_names_the_instructions_that_kernels_are_compiled_for() -> None:
    from lexent.indexing.postings import simd

    found = report.setting("make bench-index")
    assert found["instructions"] == ("AVX-512" if simd.AVX512 else "AVX2" if simd.AVX2 else "no AVX2")


def test_without_avx512_turns_off_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    import llvmlite.binding

    host = dict(llvmlite.binding.get_host_cpu_features())
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: host | {"avx512f": True, "avx512bw": True})
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "")
    engine.without_avx512()
    features = os.environ["NUMBA_CPU_FEATURES"].split(",")
    assert "-avx512f" in features
    assert "-avx512bw" in features
    assert {feature[1:] for feature in features if feature[0] == "+"} == {
        name for name, has in host.items() if has and not name.startswith("avx512")
    }
