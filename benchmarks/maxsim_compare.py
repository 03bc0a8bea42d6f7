"""MaxSim systems at equal quality: the quickest point of one that finds at least as well as a point of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks import charts, report

QUALITY = "nDCG@10"
NAMES = {"plaid": "PLAID", "tachiom": "TACHIOM"}
Point = dict[str, Any]


def quickest(points: Sequence[Point], at_least: float, *, time: str) -> Point | None:
    """The point of the shortest time among those of at least a quality; None where no point has it."""
    good = [point for point in points if point[QUALITY] >= at_least]
    return min(good, key=lambda point: float(point[time]), default=None)


def best(points: Sequence[Point]) -> Point:
    """The point of the highest quality, of equals the quickest."""
    return max(points, key=lambda point: (float(point[QUALITY]), -float(point["mean"])))


def peers_matched(found: dict[str, Any]) -> str:
    """For each point of a peer the quickest setting of Lexent that finds at least as well."""
    head = [
        "",
        QUALITY,
        "ms",
        "Lexent, quickest of at least that",
        "its " + QUALITY,
        "with coding ms",
        "x",
        "search alone x",
    ]
    rows, ours = [], found["lexent"]["points"]
    for peer in found["peers"]:
        for point in peer["points"]:
            cells = [point["label"], f"{point[QUALITY]:.4f}", ms(point["mean"])]
            match = quickest(ours, point[QUALITY], time="with_coding")
            if match is None:
                rows.append([*cells, "not reached", "", "", "", ""])
                continue
            name = match["label"]
            ratios = [
                f"{point[kind][name]:.1f}" if name in point.get(kind, {}) else ""
                for kind in ("ratios", "search_ratios")
            ]
            rows.append([*cells, name, f"{match[QUALITY]:.4f}", ms(match["with_coding"]), *ratios])
    return report.table(head, rows)


def lexent_matched(found: dict[str, Any]) -> str:
    """For each setting of Lexent that no other of its settings beats, the quickest point of each peer as good."""
    peers = [peer for peer in found["peers"] if peer["points"]]
    head = ["Lexent", QUALITY, "with coding ms"]
    for peer in peers:
        head += [f"{NAMES[peer['name']]}, quickest of at least that", "ms", "x"]
    rows, ours = [], found["lexent"]["points"]
    front = charts.frontier([(point["with_coding"], point[QUALITY]) for point in ours])
    for point in sorted(ours, key=lambda point: float(point["with_coding"])):
        if (point["with_coding"], point[QUALITY]) not in front:
            continue
        row = [point["label"], f"{point[QUALITY]:.4f}", ms(point["with_coding"])]
        for peer in peers:
            match = quickest(peer["points"], point[QUALITY], time="mean")
            row += (
                ["not reached", "", ""]
                if match is None
                else [match["label"].split(", ")[1], ms(match["mean"]), f"{match['ratios'][point['label']]:.1f}"]
            )
        rows.append(row)
    return report.table(head, rows)


def sentences(found: dict[str, Any]) -> list[str]:
    """What the two tables say: what is reached how quickly, and what is not reached."""
    lines, ours = [], found["lexent"]["points"]
    top = best(ours)
    for peer in found["peers"]:
        if not peer["points"]:
            continue
        name, points = NAMES[peer["name"]], peer["points"]
        matched = [(point, quickest(ours, point[QUALITY], time="with_coding")) for point in points]
        ratios = [point["ratios"][match["label"]] for point, match in matched if match is not None]
        if ratios:
            lines.append(
                f"Lexent reaches the {QUALITY} of {len(ratios)} of {name}'s {len(points)} points, and {name} takes "
                f"{_span(ratios)} times as long there."
            )
        missed = [point for point, match in matched if match is None]
        if missed:
            lowest = min(missed, key=lambda point: float(point[QUALITY]))
            lines.append(
                f"{name} reaches what Lexent does not: {best(missed)[QUALITY]:.4f}, where Lexent's best is "
                f"{top[QUALITY]:.4f} ({top['label']}, {ms(top['with_coding'])} ms). The first of these points is "
                f"{lowest['label'].split(', ')[1]}: {lowest[QUALITY]:.4f} in {ms(lowest['mean'])} ms."
            )
        if top[QUALITY] > best(points)[QUALITY]:
            lines.append(
                f"Lexent reaches what {name} does not: {top[QUALITY]:.4f}, where {name}'s best is "
                f"{best(points)[QUALITY]:.4f}."
            )
    return lines


def plot(found: dict[str, Any]) -> str:
    """Quality against time for all systems."""
    states, codes = found["brute"]["states"], found["brute"]["codes"]
    ours = [(point["with_coding"], point[QUALITY]) for point in found["lexent"]["points"]]
    series = [charts.Series("Lexent, with coding", ours, ours=True)]
    series += [
        charts.Series(NAMES[peer["name"]], [(point["mean"], point[QUALITY]) for point in peer["points"]])
        for peer in found["peers"]
        if peer["points"]
    ]
    series.append(charts.Series("brute force over the states", [(states["mean"], states[QUALITY])]))
    if QUALITY in codes:
        series.append(charts.Series("brute force over the codes", [(codes["mean"], codes[QUALITY])]))
    return charts.trade_off(
        series,
        title=f"{found['documents']:,} passages, top 10, one thread",
        x_label="mean ms a query",
        y_label=QUALITY,
        label="quality of MaxSim search against its mean time",
    )


def ms(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _span(ratios: Sequence[float]) -> str:
    low, high = f"{min(ratios):.1f}", f"{max(ratios):.1f}"
    return low if low == high else f"{low} to {high}"
