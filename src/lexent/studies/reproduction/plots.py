"""The plots of a report, from plain values to SVG."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from lexent.studies.reproduction.drawing import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PAPER, RED, Sheet, colour

Points = Sequence[tuple[float, float]]
MARKERS = "osD^vP"

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
    with Sheet(0.5 + 0.36 * len(values)) as sheet:
        axes = sheet.axes[0]
        names = list(values)[::-1]
        axes.barh(names, [values[name] for name in names], color=[colour(name) for name in names], height=0.62)
        for place, name in enumerate(names):
            _beside(axes, f"{values[name]:.3f}", (values[name], place), weight="bold" if name in ours else "normal")
        axes.set_xlim(0, max(values.values(), default=1.0) * 1.12 or 1)
        axes.set_xlabel(label)
        axes.grid(axis="y", visible=False)
        _text_axis(axes)
        return sheet.svg(label)


def groups(names: Sequence[str], values: Mapping[str, Sequence[float]], *, label: str) -> str:
    """Groups of bars, one of each system in every group."""
    with Sheet(3.1) as sheet:
        axes = sheet.axes[0]
        thick = 0.8 / max(len(values), 1)
        for place, (system, heights) in enumerate(values.items()):
            left = [at - 0.4 + (place + 0.5) * thick for at in range(len(heights))]
            axes.bar(left, heights, thick * 0.9, color=colour(system, place), label=system)
        axes.set_xticks(range(len(names)), names)
        axes.set_ylabel(label)
        axes.grid(axis="x", visible=False)
        return sheet.svg(label)


def scatter(points: Mapping[str, tuple[float, float]], *, x_label: str, y_label: str) -> str:
    """A point a system, with its name beside it; the x axis is logarithmic."""
    with Sheet(3.2) as sheet:
        axes = sheet.axes[0]
        _log(axes, "x")
        for place, (name, (x, y)) in enumerate(points.items()):
            axes.plot([x], [y], MARKERS[place % len(MARKERS)], color=colour(name, place), markersize=8)
            _beside(axes, name, (x, y), weight="normal")
        xs, ys = zip(*points.values(), strict=True)
        margin = max((max(ys) - min(ys)) * 0.12, 0.02)
        axes.set_xlim(min(xs) / 1.6, max(xs) * 3.5)
        axes.set_ylim(min(ys) - margin, max(ys) + margin)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        return sheet.svg(f"{y_label} against {x_label}")


def lines(
    found: Mapping[str, Points],
    *,
    x_label: str,
    y_label: str,
    levels: Mapping[str, float] | None = None,
    log: Literal["", "x", "xy"] = "x",
    form: Literal["marked", "plain", "steps"] = "marked",
) -> str:
    """A line a series; dotted levels where something has no place on the axis. log: the logarithmic axes."""
    with Sheet(3.2) as sheet:
        axes = sheet.axes[0]
        _lines(axes, found, log=log, form=form)
        for place, (name, value) in enumerate((levels or {}).items()):
            axes.axhline(value, color=colour(name, place), linestyle=":", linewidth=1.2)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        return sheet.svg(f"{y_label} against {x_label}")


def panels(found: Sequence[tuple[str, Mapping[str, Points]]], *, x_label: str) -> str:
    """Lines in panels side by side, each with its own axis."""
    with Sheet(3.2, columns=max(len(found), 1)) as sheet:
        for axes, (title, several) in zip(sheet.axes, found, strict=True):
            _lines(axes, several)
            axes.set_title(title)
            axes.set_xlabel(x_label)
        return sheet.svg(", ".join(title for title, _ in found), legend=3)


def shares(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Bars that sum to 1, one a row."""
    with Sheet(0.7 + 0.34 * len(rows)) as sheet:
        axes = sheet.axes[0]
        names = list(rows)[::-1]
        left = [0.0] * len(names)
        for kind in next(iter(rows.values())):
            widths = [rows[name][kind] for name in names]
            drawn = axes.barh(names, widths, left=left, color=KINDS.get(kind, GREY), label=kind, height=0.62)
            labels = [f"{width:.0%}" if width >= 0.06 else "" for width in widths]
            axes.bar_label(drawn, labels, label_type="center", fontsize=9, color=PAPER)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.set_xlim(0, 1)
        axes.xaxis.set_visible(False)
        axes.grid(visible=False)
        axes.spines[["left", "bottom"]].set_visible(False)
        _text_axis(axes)
        return sheet.svg("kinds of concepts")


def curves(trials: Sequence[Mapping[str, Any]], at: Sequence[float], *, watched: str) -> str:
    """Deletion and insertion on both sides: the score above, one over the rank below."""
    chosen = [trial for trial in trials if trial["watched"] == watched]
    chosen.sort(key=lambda trial: (trial["way"], trial["side"] == "document"))
    scored = "cosine" if watched == "dense" else "share of score"
    with Sheet(4.6, rows=2, columns=len(chosen), share_y=True) as sheet:
        for place, trial in enumerate(chosen):
            for row, (name, label) in enumerate((("score", scored), ("place", "1 / rank"))):
                axes = sheet.axes[row * len(chosen) + place]
                for order, (shown, ink, style, width) in ORDERS.items():
                    axes.plot(at, trial["curves"][order][name], style, color=ink, linewidth=width, label=shown)
                axes.set_xlim(0, 1)
                axes.set_xticks([0, 0.5, 1], ["0", "½", "all"])
                if row == 0:
                    axes.set_title(f"{trial['way']}, {trial['side']}")
                if place == 0:
                    axes.set_ylabel(label)
        sheet.figure.supxlabel("share of the explanation's concepts", fontsize=10.5, color=MUTED)
        return sheet.svg(f"curves of {watched}")


def dots(outcomes: Sequence[Mapping[str, Any]]) -> str:
    """A test a row and judge: the value with its interval, the control, and chance."""
    judges = list(dict.fromkeys(outcome["judge"] for outcome in outcomes))
    tasks = list(dict.fromkeys(outcome["task"] for outcome in outcomes))
    with Sheet(0.9 + 0.42 * len(tasks), columns=max(len(judges), 1), share_y=True) as sheet:
        for axes, judge in zip(sheet.axes, judges, strict=True):
            for outcome in (outcome for outcome in outcomes if outcome["judge"] == judge):
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
            _text_axis(axes)
        return sheet.svg("tests of names")


def _lines(axes: Any, found: Mapping[str, Points], *, log: str = "x", form: str = "marked") -> None:
    for place, (name, points) in enumerate(found.items()):
        mark = f"-{MARKERS[place % len(MARKERS)]}" if form == "marked" else "-"
        drawn = "steps-post" if form == "steps" else "default"
        axes.plot(*zip(*sorted(points), strict=True), mark, drawstyle=drawn, color=colour(name, place), label=name)
    _log(axes, log)
    if form == "steps":
        axes.set_ylim(bottom=0)
    elif log != "xy":
        ticks = sorted({x for points in found.values() for x, _ in points})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])


def _log(axes: Any, which: str) -> None:
    """Logarithmic axes with plain numbers instead of powers."""
    for name in which:
        axes.set(**{f"{name}scale": "log"})
        getattr(axes, f"{name}axis").set_major_formatter(lambda value, _: f"{value:,g}")
    axes.minorticks_off()


def _beside(axes: Any, text: str, at: tuple[float, float], *, weight: str) -> None:
    axes.annotate(text, at, xytext=(8, 0), textcoords="offset points", va="center", fontsize=9.5, weight=weight)


def _text_axis(axes: Any) -> None:
    """Names on the left in the colour of text."""
    axes.tick_params(axis="y", labelcolor=INK)
    axes.spines["left"].set_visible(False)
