"""What the MaxSim benchmark prints, and the page that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import charts, report
from benchmarks.maxsim_data import HELD_OUT, TokenStates

COMMAND = "make bench-maxsim TEXTS=folder-of-texts"
ABOUT = """# MaxSim, beside other engines

Every figure on this page is written by the command that stands below.

All engines get the same token states. PLAID and TACHIOM index the states themselves; Lexent codes them with its \
lexicon and indexes the codes, in exact mode and in fast mode (SSR++). Each peer runs in a process and an environment \
of its own, on the same core and with one thread, and is asked in rounds that alternate with Lexent's; each query's \
median over the rounds counts. A peer is asked with the states of a query. So Lexent's time stands there twice: *mean* \
is the search, *with coding* has the coding of the query's states as well, and the ratios are of that. *recall* is the \
share of the ten best by brute force that are found: over the codes for Lexent, over the states for all. *nDCG* and \
*R* say how well a title finds the passages of its own text.

![mean latency](maxsim-latency.svg)
"""


def setting(passages: TokenStates, asked: Sequence[int]) -> dict[str, Any]:
    """What a figure depends on besides the code."""
    n, tokens = len(passages), int(passages.offsets[-1])
    data = (
        f"{n:,} passages of up to three sentences and 90 words from abstracts ({tokens:,} tokens, {tokens / n:.0f} a "
        f"passage, {passages.values.shape[1]} numbers each, all-MiniLM-L6-v2, unit length, 16 bits), and {len(asked)} "
        f"titles as queries, from every {HELD_OUT}th line of the files"
    )
    found: dict[str, Any] = report.setting(COMMAND)
    return {**found, "data": data, "documents": n, "tokens": tokens, "queries": len(asked)}


def text(found: dict[str, Any]) -> str:
    """For the terminal and for the page."""
    parts = [
        "\n".join(f"- {name}: {found[name]}" for name in ("command", "data", "machine", "date")),
        _searches(found),
        "\n".join(f"- {line}" for line in _ratios(found)),
        _builds(found),
        "\n".join(f"- {line}" for line in _notes(found)),
    ]
    return "\n\n".join(parts)


def write(page: Path, found: dict[str, Any]) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    bars = [
        charts.Bar(f"Lexent, {mode}, with coding", found["lexent"]["modes"][mode]["with_coding"], ours=True)
        for mode in ("fast", "exact")
    ]
    bars += [charts.Bar(point["label"], point["mean"]) for peer in found["peers"] for point in peer["points"]]
    title = f"{found['documents']:,} passages, top 10, one thread"
    panel = [(title, sorted(bars, key=lambda bar: bar.value))]
    page.with_name("maxsim-latency.svg").write_text(
        charts.bars(panel, unit="ms", label="mean latency of MaxSim search")
    )
    page.write_text(f"{ABOUT}\n{text(found)}\n")


def _searches(found: dict[str, Any]) -> str:
    head = [
        "",
        "mean ms",
        "with coding",
        "p50",
        "p99",
        "recall, codes",
        "recall, states",
        "nDCG@10",
        "R@10",
        "exact x",
        "fast x",
    ]
    modes, rows = found["lexent"]["modes"], []
    for mode in ("exact", "fast"):
        one = modes[mode]
        times = [_ms(one["mean"]), _ms(one["with_coding"]), _ms(one["p50"]), _ms(one["p99"])]
        rows.append([f"**Lexent, {mode}**", *times, f"{one['recall']:.3f}", *_found(one), "", ""])
    for peer in found["peers"]:
        for one in peer["points"]:
            times = [_ms(one["mean"]), "", _ms(one["p50"]), _ms(one["p99"])]
            ratios = [f"{one['ratios'][mode]:.1f}" for mode in ("exact", "fast")]
            rows.append([one["label"], *times, "", *_found(one), *ratios])
    states, codes = found["brute"]["states"], found["brute"]["codes"]
    rows.append(["brute force, codes", _ms(codes["mean"]), *[""] * 3, "1.000", *[""] * 5])
    rows.append(["brute force, states", _ms(states["mean"]), *[""] * 4, "1.000", *_quality(states), "", ""])
    return report.table(head, rows)


def _ratios(found: dict[str, Any]) -> list[str]:
    """How many times as long each peer takes; above 1 Lexent is the faster."""
    lines, modes = [], found["lexent"]["modes"]
    for peer in found["peers"]:
        if not peer["points"]:
            continue
        own = {mode: [point["ratios"][mode] for point in peer["points"]] for mode in ("exact", "fast")}
        bare = {mode: [point["search_ratios"][mode] for point in peer["points"]] for mode in ("exact", "fast")}
        said = (
            f"{mode} mode {min(own[mode]):.1f} to {max(own[mode]):.1f} times as fast "
            f"({min(bare[mode]):.1f} to {max(bare[mode]):.1f} without the coding of queries)"
            for mode in ("exact", "fast")
        )
        label = peer["points"][0]["label"].split(",")[0]
        lines.append(f"Beside {label}: {', '.join(said)}; nDCG@10 {_span(peer['points'], 'nDCG@10')}.")
    exact, fast, codes = modes["exact"], modes["fast"], found["brute"]["codes"]
    same, checked = codes["same"], codes["checked"]
    lines.append(
        f"Exact mode: the passages, order and scores of brute force over the codes for {same:.1%} of {checked} "
        f"queries, recall {exact['recall']:.4f}, nDCG@10 {exact['nDCG@10']:.4f}."
    )
    lines.append(
        f"Fast mode: recall {fast['recall']:.4f}, nDCG@10 {fast['nDCG@10']:.4f}, {exact['mean'] / fast['mean']:.1f} "
        "times as fast as exact mode."
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
        label = POINT_NAMES[peer["name"]]
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


POINT_NAMES = {"plaid": "PLAID", "tachiom": "TACHIOM"}


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
            lines.append(f"{POINT_NAMES[peer['name']]} failed: {peer['failed']}.")
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
        lines.append(f"{POINT_NAMES[peer['name']]}'s settings: {settings}.")
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
    return [f"{one['nDCG@10']:.4f}", f"{one['R@10']:.4f}"]


def _span(points: Sequence[dict[str, Any]], name: str) -> str:
    values = [point[name] for point in points]
    return f"{min(values):.4f} to {max(values):.4f}"


def _ms(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
