"""What the benchmarks share: where a figure comes from, tables, text between markers. And the growth of the index."""

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
    from lexent.indexing.postings.simd import AVX2, AVX512

    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    can = "AVX-512 VBMI2" if AVX512 else "AVX2" if AVX2 else "neither AVX2 nor AVX-512"
    instructions = "AVX-512" if AVX512 else "AVX2" if AVX2 else "no AVX2"
    room = f"{os.cpu_count()} cores, {_memory():.0f} GB"
    machine = f"{_cpu()} ({can}), {room}, Python {platform.python_version()}, {libraries}"
    today = date.today().isoformat()
    return {"command": command, "data": DATA, "instructions": instructions, "machine": machine, "date": today}


def setting_text(found: dict[str, Any]) -> str:
    return "\n".join(
        f"- {key}: {f'`{found[key]}`' if key == 'command' else found[key]}"
        for key in ("command", "data", "machine", "date")
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that reads well as Markdown and as text: the first column is left-aligned."""
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        return "| " + " | ".join([cells[0].ljust(widths[0]), *padded[1:]]) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


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
    text = f"{setting_text(found)}\n\n{table(head, rows)}"
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
    replace(page, "growth", f"{about}\n\n{growth_text(found)}")


def replace(page: Path, name: str, text: str) -> None:
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
