"""What the MaxSim benchmark prints, and the page that it writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import maxsim_compare, report
from benchmarks.maxsim_compare import NAMES, ms
from benchmarks.maxsim_data import HELD_OUT, TokenStates

COMMAND = "make bench-maxsim TEXTS=folder-of-texts"
TITLE = "# MaxSim, beside other engines"
WRITTEN = "Every figure on this page is written by the command that stands below."
ABOUT = """
All engines get the same token states. PLAID and TACHIOM index the states themselves. Lexent codes them with its \
lexicon and indexes the codes. Its exact mode is one point; its fast mode (SSR++) has a point for each setting, named \
*concepts of a query token x candidates scored*. Each peer has several points too, so that engines can be compared at \
equal quality. Each peer runs in a process and an environment of its own, on the same core and with one thread, and is \
asked in rounds that alternate with Lexent's. Each query's median over the rounds counts. A peer is asked with the \
states of a query, so Lexent has two times: *mean* is the search, *with coding* adds the coding of the query's states. \
*x* is a peer's mean time divided by Lexent's time with coding in the same rounds: above 1 Lexent is faster. *recall* \
is the share of the ten best by brute force that are found: over the codes for Lexent, over the states for all. *nDCG* \
and *R* say how well a title finds the passages of its own text.

![quality against time](maxsim-quality.svg)
"""


def setting(passages: TokenStates, query_numbers: Sequence[int], more: str = "") -> dict[str, Any]:
    """What a figure depends on besides the code; more: further options of the command."""
    n, tokens = len(passages), int(passages.offsets[-1])
    data = (
        f"{n:,} passages of up to three sentences and 90 words from abstracts ({tokens:,} tokens, {tokens / n:.0f} a "
        f"passage, {passages.values.shape[1]} numbers each, all-MiniLM-L6-v2, unit length, 16 bits), and "
        f"{len(query_numbers)} titles as queries, from every {HELD_OUT}th line of the files"
    )
    found: dict[str, Any] = report.setting(COMMAND + more)
    return {**found, "data": data, "documents": n, "tokens": tokens, "queries": len(query_numbers)}


def text(found: dict[str, Any]) -> str:
    """For the terminal and for the page."""
    parts = [report.setting_text(found)]
    if any(peer["points"] for peer in found["peers"]):
        parts += [
            "## At equal quality",
            "\n".join(f"- {line}" for line in maxsim_compare.sentences(found)),
            "Each point of a peer, and the quickest setting of Lexent with at least its nDCG@10:",
            maxsim_compare.peers_matched(found),
            "Each setting of Lexent that no other of its settings beats, and the quickest point of each peer with at "
            "least its nDCG@10:",
            maxsim_compare.lexent_matched(found),
        ]
    parts += ["## All points", _searches(found), "\n".join(f"- {line}" for line in _exactness(found))]
    parts += ["## Indexes", _builds(found), "\n".join(f"- {line}" for line in _notes(found))]
    return "\n\n".join(parts)


def write(page: Path, found: dict[str, Any]) -> None:
    """The page and its plot, with the run beside them as JSON."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    page.with_name("maxsim-quality.svg").write_text(maxsim_compare.plot(found))
    page.write_text(page_text(found))


def page_text(found: dict[str, Any]) -> str:
    """The page of a run; a run that was recorded otherwise says so in its note."""
    note = found.get("note", WRITTEN)
    return f"{TITLE}\n\n{note}\n{ABOUT}\n{text(found)}\n"


def _searches(found: dict[str, Any]) -> str:
    head = ["", "mean ms", "with coding", "p50", "p99", "recall, codes", "recall, states", "nDCG@10", "R@10"]
    rows = []
    for one in found["lexent"]["points"]:
        times = [ms(one["mean"]), ms(one["with_coding"]), ms(one["p50"]), ms(one["p99"])]
        label = f"**Lexent, {one['label']}**" + (" (default)" if one["default"] else "")
        rows.append([label, *times, f"{one['recall']:.3f}", *_found(one)])
    for peer in found["peers"]:
        for one in peer["points"]:
            rows.append([one["label"], ms(one["mean"]), "", ms(one["p50"]), ms(one["p99"]), "", *_found(one)])
    states, codes = found["brute"]["states"], found["brute"]["codes"]
    rows.append(["brute force, codes", ms(codes["mean"]), *[""] * 3, "1.000", "", *_quality(codes)])
    rows.append(["brute force, states", ms(states["mean"]), *[""] * 4, "1.000", *_quality(states)])
    return report.table(head, rows)


def _exactness(found: dict[str, Any]) -> list[str]:
    """What the exact mode promises, and what the default of the fast mode gives up."""
    points, codes = found["lexent"]["points"], found["brute"]["codes"]
    exact = next(point for point in points if point["label"] == "exact")
    lines = [
        f"Exact mode: the passages, order and scores of brute force over the codes for {codes['same']:.1%} of "
        f"{codes['checked']} queries, recall {exact['recall']:.4f}, nDCG@10 {exact['nDCG@10']:.4f}."
    ]
    for fast in (point for point in points if point["default"]):
        lines.append(
            f"Fast mode, as it is by default ({fast['label'].removeprefix('fast ')}): recall {fast['recall']:.4f}, "
            f"nDCG@10 {fast['nDCG@10']:.4f}, {exact['mean'] / fast['mean']:.1f} times as fast as exact mode without "
            "the coding of queries."
        )
    return lines


def _builds(found: dict[str, Any]) -> str:
    head = ["", "CPU s to build", "x", "wall s", "MB", "bytes/token", "centroids", "version", "built"]
    ours, rows = found["lexent"], []
    sizes = [f"{ours['bytes'] / 1e6:,.0f}", f"{ours['bytes'] / found['tokens']:.1f}"]
    rows.append(
        [
            "**Lexent**, coding included",
            f"{ours['cpu_s']:,.0f}",
            "1.0",
            f"{ours['build_s']:,.0f}",
            *sizes,
            "",
            "",
            found["date"],
        ]
    )
    for peer in found["peers"]:
        if "cpu_s" not in peer:
            continue
        label = NAMES[peer["name"]]
        sizes = [f"{peer['bytes'] / 1e6:,.0f}", f"{peer['bytes'] / found['tokens']:.1f}", f"{peer['centroids']:,}"]
        took = [f"{peer['cpu_s']:,.0f}", f"{peer['cpu_s'] / ours['cpu_s']:.1f}", f"{peer['build_s']:,.0f}"]
        rows.append([label, *took, *sizes, peer["version"], peer["date"]])
        whole = own_sample_s(peer)
        if whole is not None:
            took = [f"about {whole:,.0f}", f"{whole / ours['cpu_s']:.1f}"]
            rows.append([f"{label}, clustering its own sample (worked out)", *took, *[""] * 6])
    size = found["tokens"] * 384 * 2
    rows.append(["the states themselves, 16 bits", "", "", "", f"{size / 1e6:,.0f}", "768.0", "", "", ""])
    return report.table(head, rows)


def own_sample_s(peer: dict[str, Any]) -> float | None:
    """What PLAID would take with the sample that it takes itself: a pass of k-means costs the same for each token."""
    if peer.get("sample", 0) >= peer.get("own_sample", 0):
        return None
    more = float(peer["own_sample"] / peer["sample"] - 1)
    return float(peer["cpu_s"]) + float(peer["clustering_cpu_s"]) * more


def _notes(found: dict[str, Any]) -> list[str]:
    lexicon = found["lexent"]["lexicon"]
    lines = [
        f"Lexent: lexicon {lexicon['name']} ({lexicon['size']:,} concepts), at most {found['lexent']['k']} concepts a "
        f"token; sizes without the texts ({found['lexent']['text_bytes'] / 1e6:.0f} MB), which the peers do not keep."
    ]
    if lexicon["stand_in"]:
        lines.append(
            "No lexicon for the recipe ssr is there: the one of latent-terms stands in, not trained for MaxSim."
        )
    else:
        lines.append(
            "The shipped lexicon's pairs for training leave out the lines that the queries come from. Other lines of "
            "the same files are among them, while the states of the peers come from the encoder as it is."
        )
    for peer in found["peers"]:
        if "failed" in peer:
            lines.append(f"{NAMES[peer['name']]} failed: {peer['failed']}.")
            continue
        if peer["name"] == "plaid":
            sample = f"k-means on {peer['sample']:,} passages"
            if peer["sample"] < peer["own_sample"]:
                sample += f" (its own rule takes {peer['own_sample']:,}, in proportion longer)"
            lines.append(
                f"PLAID: PyLate's, in PyTorch and C++ on the CPU; 4 bits a residual, {sample}; asked directly, without "
                "PyLate's table of names. fast-plaid is left out: its wheels are for other versions of PyTorch."
            )
        else:
            lines.append(
                "TACHIOM: 32 codes of 8 bits a token, the only number that its wheel has, so 12 numbers share a code; "
                "codes are trained on 500,000 tokens; otherwise built as PyLate does."
            )
        settings = ", ".join(f"{one['label'].split(', ')[1]}: {_said(one['settings'])}" for one in peer["points"])
        lines.append(f"{NAMES[peer['name']]}'s settings: {settings}.")
    lines.append(
        "CPU s to build: of one thread, so what it takes alone on a core; wall s: what it took, perhaps beside other "
        "work; x: as many times as Lexent."
    )
    return lines


def _said(settings: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _found(one: dict[str, Any]) -> list[str]:
    return [f"{one['recall_states']:.3f}", *_quality(one)]


def _quality(one: dict[str, Any]) -> list[str]:
    return [f"{one['nDCG@10']:.4f}", f"{one['R@10']:.4f}"] if "R@10" in one else ["", ""]
