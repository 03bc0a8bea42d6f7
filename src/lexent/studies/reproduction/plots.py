"""The plots of a report, from plain values to SVG.

One look for all of them: the page's own font and colours, so that they follow light and dark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from lexent.errors import MissingExtraError

INK, MUTED, LINE, PAPER = "#1a2b00", "#1a2b01", "#1a2b02", "#1a2b03"
SERIES = tuple(f"#1a2b1{number}" for number in range(7))
"""Stand-ins that no plot would use by itself: the page's stylesheet defines them."""

BLUE, RED, GREEN, PURPLE, ORANGE, SKY, GREY = SERIES
NAMED = {
    "dense": GREY, "bm25": ORANGE, "words": ORANGE, "latent-terms": GREEN, "clsr": BLUE, "clsr-efficient": SKY,
    "uhd": PURPLE, "uhd-real": SKY,
}  # fmt: skip
"""A system has the same colour in every plot."""

PAGE_WIDTH_INCHES = 8.6
"""The width of the page's column."""

STYLE: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.titlecolor", "legend.labelcolor"), INK),
    **dict.fromkeys(("axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), MUTED),
    **dict.fromkeys(("axes.edgecolor", "grid.color", "xtick.color", "ytick.color"), LINE),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("axes.axisbelow", "axes.grid"), True),
    **dict.fromkeys(("font.size", "axes.titlesize"), 10.5),
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "svg.fonttype": "none",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}


def require_matplotlib() -> None:
    """Name the extra to install where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", extra="report", purpose="a report with plots") from error


def colour(name: str, place: int = 0) -> str:
    """Of a system by its name; of any other by its place."""
    return NAMED.get(name, (PURPLE, RED, BLUE, GREEN, SKY, ORANGE)[place % 6])


class Sheet:
    """A figure to draw on; use as a context, and take `svg()` at its end."""

    def __init__(self, height: float, *, rows: int = 1, columns: int = 1, share_y: bool = False) -> None:
        import matplotlib
        from matplotlib.figure import Figure

        self._context = matplotlib.rc_context(STYLE)
        self._context.__enter__()
        self.figure: Any = Figure(figsize=(PAGE_WIDTH_INCHES, height), layout="constrained")
        self.figure.patch.set_visible(False)
        grid = self.figure.subplots(rows, columns, squeeze=False, sharey="row" if share_y else False)
        self.axes: list[Any] = list(grid.flat)
        for axes in self.axes:
            axes.patch.set_visible(False)
            axes.tick_params(length=0)

    def __enter__(self) -> Sheet:
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    def svg(self, label: str, *, legend: int = 6) -> str:
        """The figure as an element of a page. legend: columns of the one above all panels, each name once; 0: none."""
        found: dict[str, Any] = {}
        for axes in self.axes:
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                found.setdefault(name, handle)
        if found and legend:
            self.figure.legend(
                list(found.values()), list(found), loc="outside upper left", ncols=min(legend, len(found))
            )
        out = io.StringIO()
        self.figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
        return inline(out.getvalue(), label)


def inline(svg: str, label: str) -> str:
    """Without what a page has already, with the page's colours, and with ids that no other plot has."""
    from hashlib import sha256
    from html import escape

    mark = "p" + sha256((label + svg).encode()).hexdigest()[:8]
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{mark}-\1)", svg)
    svg = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{mark}-\1"', svg)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    wide = float(size[1]) if size else 600.0
    head = f'<svg role="img" aria-label="{escape(label)}" style="width:{wide:.0f}pt" '
    svg = re.sub(r'<svg (xmlns:xlink="[^"]*" )?width="[^"]*" height="[^"]*" ', head, svg, count=1)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"| version="1.1"', "", svg).replace(INK, "currentColor")
    names = {MUTED: "muted", LINE: "line", PAPER: "paper", **{ink: f"c{n}" for n, ink in enumerate(SERIES)}}
    for stand_in, name in names.items():
        svg = svg.replace(stand_in, f"var(--{name})")
    return svg


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
