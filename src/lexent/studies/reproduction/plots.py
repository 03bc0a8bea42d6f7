"""The plots of a report, from plain values to SVG."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lexent.studies.reproduction.drawing import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PAPER, RED, Sheet, colour, spread

Points = Sequence[tuple[float, float]]
MARKERS = "osD^vP"
PAGE_WIDTH_INCHES = 8.6
"""Inches: the width of the page's column."""

KINDS = {"lexical": BLUE, "narrow": GREEN, "broad": ORANGE}
"""Of concepts; others are grey."""

ORDERS = {
    "explained": ("strongest first", BLUE, "-", 2.4),
    "random": ("random order", GREY, "--", 1.6),
    "any": ("any concepts of the text", ORANGE, ":", 1.8),
    "weakest": ("weakest first", RED, "-.", 1.6),
}


def bars(values: Mapping[str, float], *, label: str, ours: Collection[str] = ()) -> str:
    """A bar a system, with its value."""
    with Sheet(PAGE_WIDTH_INCHES, 0.5 + 0.36 * len(values)) as sheet:
        axes = sheet.axes[0]
        names = list(values)[::-1]
        axes.barh(names, [values[name] for name in names], color=[colour(name) for name in names], height=0.62)
        for place, name in enumerate(names):
            weight = "bold" if name in ours else "normal"
            _beside(axes, f"{values[name]:.3f}", (values[name], place), weight=weight)
        axes.set_xlim(0, max(values.values(), default=1.0) * 1.12 or 1)
        axes.set_xlabel(label)
        axes.grid(axis="y", visible=False)
        _words(axes)
        return sheet.svg(label)


def groups(names: Sequence[str], values: Mapping[str, Sequence[float]], *, label: str) -> str:
    """Groups of bars, one of each system in every group."""
    with Sheet(PAGE_WIDTH_INCHES, 3.1) as sheet:
        axes = sheet.axes[0]
        thick = 0.8 / max(len(values), 1)
        for place, (system, heights) in enumerate(values.items()):
            left = [at - 0.4 + (place + 0.5) * thick for at in range(len(heights))]
            axes.bar(left, heights, thick * 0.9, color=colour(system, place), label=system)
        axes.set_xticks(range(len(names)), names)
        axes.set_ylabel(label)
        axes.grid(axis="x", visible=False)
        sheet.legend()
        return sheet.svg(label)


def scatter(points: Mapping[str, tuple[float, float]], *, x_label: str, y_label: str) -> str:
    """A point a system, with its name beside it."""
    with Sheet(PAGE_WIDTH_INCHES, 3.2) as sheet:
        axes = sheet.axes[0]
        _plain_log(axes)
        for place, (name, (x, y)) in enumerate(points.items()):
            axes.plot([x], [y], MARKERS[place % len(MARKERS)], color=colour(name, place), markersize=8)
            _beside(axes, name, (x, y), weight="normal")
        low, high = min(x for x, _ in points.values()), max(x for x, _ in points.values())
        axes.set_xlim(low / 1.6, high * 3.5)
        axes.set_ylim(*spread([y for _, y in points.values()]))
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        return sheet.svg(f"{y_label} against {x_label}")


def lines(
    found: Mapping[str, Points],
    *,
    x_label: str,
    y_label: str,
    levels: Mapping[str, float] | None = None,
    log: bool = True,
) -> str:
    """A line a system; dotted levels where something has no place on the axis."""
    with Sheet(PAGE_WIDTH_INCHES, 3.2) as sheet:
        axes = sheet.axes[0]
        _lines(axes, found, log=log)
        for place, (name, value) in enumerate((levels or {}).items()):
            axes.axhline(value, color=colour(name, place), linestyle=":", linewidth=1.2)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        sheet.legend()
        return sheet.svg(f"{y_label} against {x_label}")


def panels(found: Sequence[tuple[str, Mapping[str, Points]]], *, x_label: str) -> str:
    """Lines in panels side by side, each with its own axis."""
    with Sheet(PAGE_WIDTH_INCHES, 3.2, columns=max(len(found), 1)) as sheet:
        for axes, (title, several) in zip(sheet.axes, found, strict=True):
            _lines(axes, several, log=True)
            axes.set_title(title)
            axes.set_xlabel(x_label)
        sheet.legend(columns=3)
        return sheet.svg(", ".join(title for title, _ in found))


def trends(found: Mapping[str, Points], *, x_label: str, y_label: str) -> str:
    """A line a series where both axes are logarithmic."""
    from matplotlib.ticker import LogLocator

    with Sheet(PAGE_WIDTH_INCHES, 3.2) as sheet:
        axes = sheet.axes[0]
        for place, (name, points) in enumerate(found.items()):
            mark = f"-{MARKERS[place % len(MARKERS)]}"
            axes.plot(*zip(*sorted(points), strict=True), mark, color=colour(name, place), label=name)
        _plain_logs(axes)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        sheet.legend()
        return sheet.svg(f"{y_label} against {x_label}")


def histogram(found: Mapping[str, Points], *, x_label: str, y_label: str) -> str:
    """A stepped line a series: where each bar begins, and its height."""
    with Sheet(PAGE_WIDTH_INCHES, 3.0) as sheet:
        axes = sheet.axes[0]
        for place, (name, points) in enumerate(found.items()):
            axes.step(*zip(*points, strict=True), where="post", color=colour(name, place), label=name)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_ylim(bottom=0)
        sheet.legend()
        return sheet.svg(f"{y_label} by {x_label}")


def rank_frequency(found: Mapping[str, Points]) -> str:
    """A plot of frequency against rank."""
    with Sheet(PAGE_WIDTH_INCHES, 3.6) as sheet:
        axes = sheet.axes[0]
        for place, (name, points) in enumerate(found.items()):
            axes.plot(*zip(*points, strict=True), color=colour(name, place), label=name)
        _plain_logs(axes)
        axes.set_xlabel("rank of the term")
        axes.set_ylabel("documents that have it")
        sheet.legend()
        return sheet.svg("rank and frequency")


def shares(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Bars that sum to 1, one a row."""
    with Sheet(PAGE_WIDTH_INCHES, 0.7 + 0.34 * len(rows)) as sheet:
        axes = sheet.axes[0]
        names = list(rows)[::-1]
        kinds = list(next(iter(rows.values())))
        left = [0.0] * len(names)
        for kind in kinds:
            widths = [rows[name][kind] for name in names]
            axes.barh(names, widths, left=left, color=KINDS.get(kind, GREY), label=kind, height=0.62)
            for at, width in enumerate(widths):
                if width >= 0.06:
                    middle = left[at] + width / 2
                    axes.text(middle, at, f"{width:.0%}", ha="center", va="center", fontsize=9, color=PAPER)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.set_xlim(0, 1)
        axes.xaxis.set_visible(False)
        axes.grid(visible=False)
        axes.spines[["left", "bottom"]].set_visible(False)
        _words(axes)
        sheet.legend()
        return sheet.svg("kinds of concepts")


def curves(trials: Sequence[Mapping[str, Any]], at: Sequence[float], *, watched: str) -> str:
    """Deletion and insertion on both sides: the score above, one over the rank below."""
    chosen = [trial for trial in trials if trial["watched"] == watched]
    chosen.sort(key=lambda trial: (trial["way"], trial["side"] == "document"))
    scored = "cosine" if watched == "dense" else "share of score"
    with Sheet(PAGE_WIDTH_INCHES, 4.6, rows=2, columns=len(chosen), share_y=True) as sheet:
        for place, trial in enumerate(chosen):
            for row, (name, label) in enumerate((("score", scored), ("place", "1 / rank"))):
                axes = sheet.axes[row * len(chosen) + place]
                for order, (shown, ink, style, width) in ORDERS.items():
                    values = trial["curves"][order][name]
                    axes.plot(at, values, style, color=ink, linewidth=width, label=shown)
                axes.set_xlim(0, 1)
                axes.set_xticks([0, 0.5, 1], ["0", "½", "all"])
                if row == 0:
                    axes.set_title(f"{trial['way']}, {trial['side']}")
                if place == 0:
                    axes.set_ylabel(label)
        sheet.figure.supxlabel("share of the explanation's concepts", fontsize=10.5, color=MUTED)
        sheet.legend()
        return sheet.svg(f"curves of {watched}")


def dots(outcomes: Sequence[Mapping[str, Any]]) -> str:
    """A test a row and judge: the value with its interval, the control, and chance."""
    judges = list(dict.fromkeys(outcome["judge"] for outcome in outcomes))
    tasks = list(dict.fromkeys(outcome["task"] for outcome in outcomes))
    with Sheet(PAGE_WIDTH_INCHES, 0.9 + 0.42 * len(tasks), columns=max(len(judges), 1), share_y=True) as sheet:
        for axes, judge in zip(sheet.axes, judges, strict=True):
            for outcome in outcomes:
                if outcome["judge"] != judge:
                    continue
                y = len(tasks) - 1 - tasks.index(outcome["task"])
                axes.plot([outcome["low"], outcome["high"]], [y, y], color=BLUE, linewidth=3, alpha=0.35)
                axes.plot([outcome["value"]], [y], "o", color=BLUE, markersize=7, label="names")
                if outcome["control"] is not None:
                    axes.plot([outcome["control"]], [y], "D", color=RED, markersize=5, label="wrong names")
                axes.plot([outcome["chance"]] * 2, [y - 0.28, y + 0.28], color=INK, linewidth=1.2, label="chance")
            axes.set_xlim(0, 1.02)
            axes.set_ylim(-0.6, len(tasks) - 0.4)
            axes.set_yticks(range(len(tasks)), tasks[::-1])
            axes.set_title(f"judge: {judge}")
            axes.grid(axis="y", visible=False)
            _words(axes)
        sheet.legend()
        return sheet.svg("tests of names")


def _lines(axes: Any, found: Mapping[str, Points], *, log: bool) -> None:
    ticks = sorted({x for points in found.values() for x, _ in points})
    for place, (name, points) in enumerate(found.items()):
        mark = f"-{MARKERS[place % len(MARKERS)]}"
        axes.plot(*zip(*sorted(points), strict=True), mark, color=colour(name, place), label=name)
    if log:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])


def _plain_log(axes: Any) -> None:
    """A logarithmic axis with numbers as they are read."""
    from matplotlib.ticker import FuncFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.minorticks_off()


def _plain_logs(axes: Any) -> None:
    """Both axes so."""
    _plain_log(axes)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(axes.xaxis.get_major_formatter())
    axes.minorticks_off()


def _beside(axes: Any, text: str, at: tuple[float, float], *, weight: str) -> None:
    axes.annotate(text, at, xytext=(8, 0), textcoords="offset points", va="center", fontsize=9.5, weight=weight)


def _words(axes: Any) -> None:
    """Names on the left are read as text."""
    axes.tick_params(axis="y", labelcolor=INK)
    axes.spines["left"].set_visible(False)
