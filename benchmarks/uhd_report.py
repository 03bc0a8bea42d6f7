"""What the benchmark of counting prints, and the page that it writes."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.maxsim_data import HELD_OUT
from benchmarks.uhd_data import LONGEST

COMMAND = "make bench-uhd TEXTS=folder-of-texts"
ABOUT = """# Counting, beside weights and beside BM25

Every figure on this page is written by the command that stands below.

A binary index keeps which concepts a passage has and no weights; a passage's score is how many of the query's \
concepts it has. *Lexent, counts* is that. *Lexent, weights* has the same codes with their values in 8 bits, and \
scores by their products. bm25s searches the words of the same texts, with its Numba backend and with its default one. \
All are asked the same titles on one core with one thread, in rounds that alternate; each query's median over the \
rounds counts. Times are of the search alone: a query's concepts and its words are there already. *With coding* is the \
mean with what it takes to make a query's concepts, or to split its words, before that. *nDCG* and *R* say \
how well a title finds the one passage that it stands above.
"""
NAMES = {
    "counts": "**Lexent, counts**",
    "weights": "Lexent, weights",
    "bm25s, numba": "bm25s, Numba backend",
    "bm25s, numpy": "bm25s, its default backend",
}
LIMIT = 1.3
"""Bytes a posting that a binary index may have."""


def setting(passages: list[str], queries: list[str], *, cap: int | None) -> dict[str, Any]:
    """What a figure depends on besides the code."""
    words = sum(len(passage.split()) for passage in passages) / len(passages)
    data = (
        f"{len(passages):,} passages, the first {LONGEST} words of abstracts and summaries ({words:.0f} words on "
        f"average), and {len(queries):,} titles as queries, from every {HELD_OUT}th line of the abstracts"
    )
    found: dict[str, Any] = report.setting(COMMAND)
    found["machine"] += f", bm25s {version('bm25s')}"
    return {**found, "data": data, "cap": cap, "passages": len(passages), "queries": len(queries)}


def text(found: dict[str, Any]) -> str:
    """For the terminal and for the page."""
    head = (
        "",
        "mean ms",
        "with coding",
        "p50",
        "p99",
        "x",
        "nDCG@10",
        "R@10",
        "MB",
        "bytes/posting",
        "postings a query",
        "build s",
    )
    ours = found["systems"]["counts"]
    rows = [
        [
            NAMES[name],
            f"{one['mean']:.3g}",
            f"{one['mean'] + _coding(found, one):.3g}",
            *(f"{one[figure]:.3g}" for figure in ("p50", "p99")),
            f"{one['mean'] / ours['mean']:.2f}",
            *(f"{one[figure]:.4f}" for figure in ("nDCG@10", "R@10")),
            f"{one['bytes'] / 1e6:.1f}",
            f"{one['bytes'] / one['postings']:.3f}",
            f"{one['postings_a_query']:,.0f}",
            f"{one['build_s']:.1f}",
        ]
        for name, one in found["systems"].items()
    ]
    said = "\n".join(f"- {name}: {found[name]}" for name in ("command", "data", "lexicon", "machine", "date"))
    return "\n\n".join([said, report.table(head, rows), "\n".join(f"- {line}" for line in _notes(found))])


def _coding(found: dict[str, Any], one: dict[str, Any]) -> float:
    """Milliseconds that a system's query takes to make, before it is searched for."""
    made = one.get("tokenising_ms") or found.get("coding_ms") or {"mean": 0.0}
    return float(made["mean"])


def _notes(found: dict[str, Any]) -> list[str]:
    systems = found["systems"]
    ours, numba, default = (systems[name] for name in ("counts", "bm25s, numba", "bm25s, numpy"))
    size, own = ours["bytes"] / ours["postings"], systems["weights"]
    verdict = "no slower than" if ours["mean"] <= numba["mean"] else "slower than"
    kept = f"at most {found['cap']} concepts, those of the largest values" if found["cap"] else "all of their concepts"
    lines = [
        f"Counting is {verdict} bm25s with its Numba backend ({numba['mean'] / ours['mean']:.2f} times as fast by the "
        f"mean, {numba['p99'] / ours['p99']:.2f} by p99), and {default['mean'] / ours['mean']:.1f} times as fast as "
        f"bm25s with its default one.",
        f"Beside weights: {own['mean'] / ours['mean']:.2f} times as fast, and {ours['bytes'] / own['bytes']:.2f} of "
        f"the size.",
        f"{size:.3f} bytes a posting, with all that a search reads; at most {LIMIT} were to be reached: "
        f"{'yes' if size <= LIMIT else 'no'}. {ours['postings'] / found['passages']:,.0f} concepts a passage.",
        f"Queries have {kept} ({ours['latents_a_query']:.1f} on average), and {numba['latents_a_query']:.1f} words.",
        f"The passages, order and counts of an exhaustive count: for {found['same']:.1%} of the queries looked at.",
        f"Beside the search, a query's words take bm25s {numba['tokenising_ms']['mean']:.3g} ms to split.",
    ]
    if "coding_ms" in found:
        lines.append(f"Beside the search, a query's concepts take {found['coding_ms']['mean']:.3g} ms to make.")
    return lines


def write(page: Path, found: dict[str, Any]) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"{ABOUT}\n{text(found)}\n")
