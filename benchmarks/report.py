"""What the index benchmarks print, and the page that they write: tables and plots between markers."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import charts

PAGE = """# Benchmarks of the index engine

Every figure on this page is written by the command that stands beside it.

<!-- engine -->
<!-- /engine -->

<!-- growth -->
<!-- /growth -->
"""
DATA = (
    "120,000 three-sentence passages as Latent Terms vectors (all-MiniLM-L6-v2, 32,768 latents, 249.5 a passage), and "
    "titles as queries (86.7 latents each). More documents are made of these: each new one has the even latents of one "
    "and the odd latents of another"
)


def setting(command: str) -> dict[str, str]:
    """What a figure depends on besides the code."""
    from lexent.indexing.bits import SHUFFLES, WIDE

    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    can = "AVX-512 VBMI2" if WIDE else "AVX2" if SHUFFLES else "neither AVX2 nor AVX-512"
    room = f"{os.cpu_count()} cores, {_memory():.0f} GB"
    machine = f"{_cpu()} ({can}), {room}, Python {platform.python_version()}, {libraries}"
    return {"command": command, "data": DATA, "machine": machine, "date": date.today().isoformat()}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that reads well as Markdown and as text: the first column is left-aligned."""
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        return "| " + " | ".join([cells[0].ljust(widths[0]), *padded[1:]]) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


# --- Lexent and its peers ------------------------------------------------------------------------------------------


def engine_text(found: dict[str, Any]) -> str:
    """For the terminal and for the page."""
    sizes = found["sizes"]
    parts = [_setting(found), *(_size(size) for size in sizes), _sums(sizes)]
    notes = {peer["name"]: peer["note"] for size in sizes for peer in size["peers"] if peer["note"]}
    parts.append("\n".join(f"- {name}: {note}." for name, note in notes.items()))
    return "\n\n".join(part for part in parts if part)


def write_engine(page: Path, found: dict[str, Any]) -> None:
    plot = page.with_name("benchmarks-latency.svg")
    panels = []
    for size in found["sizes"]:
        done = [peer for peer in size["peers"] if "workloads" in peer]
        rows = [charts.Bar(peer["name"], peer["workloads"]["top 10"]["mean"]) for peer in done]
        rows.append(charts.Bar("Lexent", size["lexent"]["workloads"]["top 10"]["mean"], ours=True))
        panels.append((f"{size['documents']:,} documents, top 10", sorted(rows, key=lambda bar: bar.value)))
    plot.write_text(charts.bars(panels, unit="ms", label="mean milliseconds a query of Lexent and its peers"))
    about = (
        "## Beside other engines\n\n"
        "One run, one core. Each peer is asked the same queries as Lexent in rounds that alternate between the two; "
        "each query's median over the rounds counts, and *x* is how many times as long the peer took as Lexent beside "
        "it. "
        "*right* is the share of queries whose answer equals the exhaustive one in float64 over the weights that the "
        "system keeps (for Lexent: the same documents in the same order with the same scores); for an approximate "
        "system it is the recall (R). The lowest of the three kinds of query stands there. "
        f"Lexent's index lies on disk and is mapped.\n\n![mean latency]({plot.name})"
    )
    _replace(page, "engine", f"{about}\n\n{engine_text(found)}")


def _setting(found: dict[str, Any]) -> str:
    return "\n".join(
        f"- {key}: {f'`{found[key]}`' if key == 'command' else found[key]}"
        for key in ("command", "data", "machine", "date")
    )


def _size(size: dict[str, Any]) -> str:
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
    text = f"**{n:,} documents, {size['postings'] / 1e6:,.1f} M postings**\n\n{table(head, rows)}\n\n"
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


def _sums(sizes: list[dict[str, Any]]) -> str:
    """What the tables come to: against the fastest exact peer, the tail, and growth."""
    lines = []
    for size in sizes:
        ours = size["lexent"]["workloads"]
        for kind in ours:
            rivals = [peer for peer in size["peers"] if peer["exact"] and kind in peer.get("workloads", {})]
            if not rivals:
                continue
            best = min(rivals, key=lambda peer: peer["workloads"][kind]["ratio"])
            tail = ours[kind]["p99"] / ours[kind]["mean"]
            lines.append(
                f"- {size['documents']:,} documents, {kind}: {best['workloads'][kind]['ratio']:.1f} times as fast as "
                f"the fastest exact peer ({best['name']}); p99 is {tail:.1f} times the mean."
            )
    if len(sizes) > 1 and all("top 10" in size["lexent"]["workloads"] for size in sizes):
        first, last = sizes[0], sizes[-1]
        slower = last["lexent"]["workloads"]["top 10"]["mean"] / first["lexent"]["workloads"]["top 10"]["mean"]
        lines.append(
            f"- From {first['documents']:,} to {last['documents']:,} documents "
            f"({last['documents'] / first['documents']:.0f} times as many) a query takes {slower:.1f} times as long."
        )
    return "\n".join(lines)


# --- growth --------------------------------------------------------------------------------------------------------


def growth_text(found: dict[str, Any]) -> str:
    head: tuple[str, ...] = (
        "documents",
        "M postings",
        "build s",
        "M postings/s",
        "peak GB",
        "GB on disk",
        "bytes/posting",
        "open ms",
    )
    head += ("mean ms", "p50", "p99", "cold mean ms")
    rows = []
    for size in found["sizes"]:
        warm = size["warm"]
        rows.append(
            [
                f"{size['documents'] / 1e6:.3g} M",
                f"{size['postings'] / 1e6:,.0f}",
                f"{size['build_s']:.1f}",
                f"{size['postings'] / size['build_s'] / 1e6:.1f}",
                f"{size['peak_memory'] / 2**30:.2f}",
                f"{size['bytes'] / 2**30:.2f}",
                f"{size['mapped'] / size['postings']:.3f}",
                f"{size['open_ms']:.0f}",
                *(f"{warm[figure]:.3g}" for figure in ("mean", "p50", "p99")),
                f"{size['cold']['mean']:.3g}",
            ]
        )
    wrong = [f"{size['documents']:,}" for size in found["sizes"] if not size["exact"]]
    text = f"{_setting(found)}\n\n{table(head, rows)}"
    return text + (f"\n\nNOT EXACT at {', '.join(wrong)} documents." if wrong else "")


def write_growth(page: Path, found: dict[str, Any]) -> None:
    plot = page.with_name("benchmarks-growth.svg")
    sizes = found["sizes"]
    latency = [(size["documents"] / 1e6, size["warm"]["mean"]) for size in sizes]
    weight = [(size["documents"] / 1e6, size["mapped"] / size["postings"]) for size in sizes]
    panels = [
        charts.Line("mean ms a query, top 10", latency, rule="in proportion"),
        charts.Line("bytes a posting", weight, logarithmic=False),
    ]
    plot.write_text(charts.lines(panels, x_label="million documents", label="latency and size against documents"))
    about = (
        "## How cost grows\n\n"
        "Documents are made chunk by chunk and packed to disk in a process of its own, which is told to stay within "
        f"{found['memory'] / 2**30:.0f} GB (*peak* is the whole process, "
        f"{sizes[0]['memory_before'] / 2**30:.2f} GB of it libraries and the vectors that documents are made of); "
        "*build* is packing without the making. A fresh process then opens the index with "
        "nothing of it in the page cache, asks 300 queries for their 10 best documents (*cold*), and asks them again "
        f"in three rounds, of which each query's median counts. One thread.\n\n![latency and size]({plot.name})"
    )
    _replace(page, "growth", f"{about}\n\n{growth_text(found)}")


def _replace(page: Path, name: str, text: str) -> None:
    """Puts text between the markers of a page, which is begun where there is none."""
    page.parent.mkdir(parents=True, exist_ok=True)
    whole = page.read_text() if page.exists() else PAGE
    start, stop = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, after = whole.split(start)[0], whole.split(stop)[1]
    page.write_text(f"{before}{start}\n{text}\n{stop}{after}")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
