"""What the benchmark of the index prints and writes: recorded runs, and the pages rendered from all of them.

A run is recorded in a JSON file beside the page, under the instruction set that its kernels were compiled for. A new
run replaces the recorded one of the same instruction set and leaves the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import charts, report

Run = dict[str, Any]
Runs = dict[str, Run]
"""Recorded runs by instruction set."""
ORDER = ("AVX2", "AVX-512")
"""The instruction sets in the order in which the pages show them; any other comes after these."""
WORKLOADS = {"top 10": "top 10", "top 1000": "k = 1,000", "500 latents": "500 latents"}
ABOUT = """\
## Beside other engines

One thread on one core, exact top-k. Lexent's kernels are compiled for the instruction set of the processor, so each \
instruction set has a run of its own. In a run each peer is asked the same queries as Lexent, in rounds that alternate \
between the two. Each query's median over the rounds counts. *x* is the peer's mean time divided by that of Lexent in \
the same rounds: above 1 Lexent is faster. *right* is the share of queries whose answer equals the exhaustive one in \
float64 over the weights that the system keeps (for Lexent: the same documents in the same order with the same \
scores). For an approximate system it is the recall (R). It is the lowest of the three workloads. Lexent's index is on \
disk and memory-mapped.
"""
SUMMARY = """\
Lexent's mean time, *x* of the fastest exact peer, and p99 divided by the mean:
"""


# --- recorded runs -------------------------------------------------------------------------------------------------


def record(path: Path, run: Run) -> Runs:
    """Adds a run to the recorded ones, in place of that of the same instruction set, and gives them all."""
    runs = {**recorded(path), str(run["instructions"]): run}
    runs = {name: runs[name] for name in sorted(runs, key=_place)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(runs, indent=1) + "\n")
    return runs


def recorded(path: Path) -> Runs:
    found: Runs = json.loads(path.read_text()) if path.exists() else {}
    return found


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER)), name


# --- pages ---------------------------------------------------------------------------------------------------------


def write(page: Path, run: Run, *, readme: Path | None = None) -> None:
    """Records a run beside the page and renders all recorded runs: the page, its plot, and the README's table."""
    runs = record(page.with_suffix(".json"), run)
    page.with_name(f"{page.stem}-latency.svg").write_text(plot(runs))
    report.replace(page, "engine", page_text(runs, plot_name=f"{page.stem}-latency.svg"))
    if readme is not None:
        report.replace(readme, "engine", readme_text(runs))


def page_text(runs: Runs, *, plot_name: str) -> str:
    parts = [ABOUT + f"\n![mean latency]({plot_name})", SUMMARY + "\n" + summary(runs)]
    for name, run in runs.items():
        parts += [f"### {name}: {processor(run)}", run_text(run)]
    return "\n\n".join(parts)


def summary(runs: Runs) -> str:
    """One row for each size and workload, three columns for each run."""
    head = ["", *(f"{name} {figure}" for name in runs for figure in ("mean ms", "x", "p99/mean"))]
    rows = []
    for documents in _sizes(runs):
        for workload, label in WORKLOADS.items():
            cells = [cell for run in runs.values() for cell in _summary_cells(run, documents, workload)]
            if any(cells):
                rows.append([f"{documents:,} documents, {label}", *cells])
    return report.table(head, rows)


def _summary_cells(run: Run, documents: int, workload: str) -> list[str]:
    size = _size(run, documents)
    times = size["lexent"]["workloads"].get(workload) if size else None
    if size is None or times is None:
        return ["", "", ""]
    best = fastest(size, workload)
    ratio = f"{best['workloads'][workload]['ratio']:.1f} ({_brief(best['name'])})" if best else ""
    return [f"{times['mean']:.3g}", ratio, f"{times['tail']:.1f}"]


def readme_text(runs: Runs) -> str:
    """Mean milliseconds of the top 10 and *x* of each peer, for each run and size."""
    columns = [
        (f"{name}, {documents:,}", _size(run, documents)) for documents in _sizes(runs) for name, run in runs.items()
    ]
    columns = [(head, size) for head, size in columns if size is not None]
    names = {peer["name"] for _, size in columns for peer in size["peers"] if peer["exact"] and "workloads" in peer}
    rows = [["**lexent**"]]
    for _, size in columns:
        rows[0].append(f"**{size['lexent']['workloads']['top 10']['mean']:.2g}**")
    rows[0].append(f"**{columns[0][1]['lexent']['bytes_a_posting']:.2f}**")
    for name in sorted(names, key=lambda name: _mean(columns[0][1], name)):
        cells, weight = [], ""
        for _, size in columns:
            peer = next((one for one in size["peers"] if one["name"] == name and "workloads" in one), None)
            top = peer["workloads"]["top 10"] if peer else None
            cells.append(f"{top['mean']:.3g} ({top['ratio']:.1f}x)" if top else "")
            weight = weight or (f"{peer['bytes_a_posting']:.0f}" if peer else "")
        rows.append([_brief(name), *cells, weight])
    head = ["mean ms a query (x lexent)", *(head for head, _ in columns), "bytes a posting"]
    fastest_text = "; ".join(
        f"{name} " + " and ".join(_fastest_text(run, size["documents"]) for size in run["sizes"])
        for name, run in runs.items()
    )
    machines = "; ".join(f"{name}: {processor(run)}, {run['date']}" for name, run in runs.items())
    return f"{report.table(head, rows)}\n\nTimes as fast as the fastest exact peer: {fastest_text}. ({machines}.)"


def _fastest_text(run: Run, documents: int) -> str:
    size = _size(run, documents)
    best = fastest(size, "top 10") if size else None
    return f"{best['workloads']['top 10']['ratio']:.1f} at {documents:,}" if best else f"no exact peer at {documents:,}"


def plot(runs: Runs) -> str:
    """Mean time of the top 10: a panel for each size and run."""
    panels = []
    for documents in _sizes(runs):
        for name, run in runs.items():
            size = _size(run, documents)
            if size is None:
                continue
            done = [peer for peer in size["peers"] if "workloads" in peer]
            bars = [charts.Bar(peer["name"], peer["workloads"]["top 10"]["mean"]) for peer in done]
            bars.append(charts.Bar("Lexent", size["lexent"]["workloads"]["top 10"]["mean"], ours=True))
            panels.append((f"{documents:,} documents, top 10, {name}", sorted(bars, key=lambda bar: bar.value)))
    return charts.bars(panels, unit="ms", label="mean milliseconds a query of Lexent and its peers")


def fastest(size: dict[str, Any], workload: str) -> dict[str, Any] | None:
    """The exact peer with the lowest ratio to Lexent."""
    exact = [peer for peer in size["peers"] if peer["exact"] and workload in peer.get("workloads", {})]
    return min(exact, key=lambda peer: peer["workloads"][workload]["ratio"], default=None)


def processor(run: Run) -> str:
    return str(run["machine"]).split(" (", maxsplit=1)[0].replace("(R)", "").split(", ", maxsplit=1)[0]


def _sizes(runs: Runs) -> list[int]:
    return sorted({size["documents"] for run in runs.values() for size in run["sizes"]})


def _size(run: Run, documents: int) -> dict[str, Any] | None:
    return next((size for size in run["sizes"] if size["documents"] == documents), None)


def _mean(size: dict[str, Any], name: str) -> float:
    found = (peer["workloads"] for peer in size["peers"] if peer["name"] == name and "workloads" in peer)
    return float(next((times["top 10"]["mean"] for times in found), float("inf")))


def _brief(name: str) -> str:
    return name.split(",", maxsplit=1)[0]


# --- one run -------------------------------------------------------------------------------------------------------


def terminal_text(run: Run) -> str:
    return f"{run_text(run)}\n\n{SUMMARY}\n{summary({str(run['instructions']): run})}"


def run_text(run: Run) -> str:
    """A run by itself: what it was measured with, and the table of each size."""
    sizes = run["sizes"]
    notes = {peer["name"]: peer["note"] for size in sizes for peer in size["peers"] if peer["note"]}
    lines = [_growth(sizes), *(f"- {name}: {note}." for name, note in notes.items())]
    lines += [f"- {run['note']}."] if run.get("note") else []
    parts = [report.setting_text(run), *(_size_text(size) for size in sizes), "\n".join(filter(None, lines))]
    return "\n\n".join(parts)


def _size_text(size: dict[str, Any]) -> str:
    ours, n = size["lexent"], size["documents"]
    head = (
        "",
        "mean ms",
        "p50",
        "p99",
        "x",
        "right",
        "k=1000 ms",
        "x",
        "500 latents ms",
        "x",
        "bytes/posting",
        "build s",
    )
    done = [peer for peer in size["peers"] if "workloads" in peer]
    rows = [_row("**Lexent**", ours)]
    rows += [_row(peer["name"], peer) for peer in sorted(done, key=lambda peer: peer["workloads"]["top 10"]["mean"])]
    left_out = [f"{peer['name']}: {peer['skipped']}." for peer in size["peers"] if "skipped" in peer]
    shares = [found["right"] for found in ours["workloads"].values()]
    text = f"**{n:,} documents, {size['postings'] / 1e6:,.1f} M postings**\n\n{report.table(head, rows)}\n\n"
    text += (
        f"Lexent: {ours['postings_per_s'] / 1e6:.1f} M postings/s to build, {ours['bytes'] / 2**20:,.0f} MB on disk, "
        f"opened in {ours['open_ms']:.0f} ms in a fresh process with a cold page cache (and {ours['first_ms']:.0f} ms "
        f"to its first answer), exact for {min(shares, default=0):.1%} of the queries of every kind."
    )
    return text + (f" Left out: {' '.join(left_out)}" if left_out else "")


def _row(name: str, found: dict[str, Any]) -> list[str]:
    top, deep, long = (found["workloads"].get(kind, {}) for kind in ("top 10", "top 1000", "500 latents"))

    def ms(times: dict[str, float], figure: str = "mean") -> str:
        return f"{times[figure]:.3g}" if times else ""

    def ratio(times: dict[str, float]) -> str:
        return f"{times.get('ratio', 1):.1f}" if times else ""

    kept = [found["workloads"][kind]["right"] for kind in found["workloads"]]
    right = f"{'R ' if found.get('recall') else ''}{min(kept):.1%}" if kept else ""
    return [
        name,
        *(ms(top, figure) for figure in ("mean", "p50", "p99")),
        ratio(top),
        right,
        ms(deep),
        ratio(deep),
        ms(long),
        ratio(long),
        f"{found['bytes_a_posting']:.3f}",
        f"{found['build_s']:.1f}" if found["build_s"] >= 0.1 else "",
    ]


def _growth(sizes: Sequence[dict[str, Any]]) -> str:
    """How much longer a query takes over the largest size than over the smallest."""
    first, last = sizes[0], sizes[-1]
    if len(sizes) < 2 or not all("top 10" in size["lexent"]["workloads"] for size in sizes):
        return ""
    slower = last["lexent"]["workloads"]["top 10"]["mean"] / first["lexent"]["workloads"]["top 10"]["mean"]
    return (
        f"- From {first['documents']:,} to {last['documents']:,} documents "
        f"({last['documents'] / first['documents']:.0f} times as many) a query takes {slower:.1f} times as long."
    )
