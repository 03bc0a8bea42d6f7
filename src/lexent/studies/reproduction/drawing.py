"""One look for all plots: matplotlib's SVG with the page's own font and colours, so that it follows light and dark."""

from __future__ import annotations

import io
import re
from typing import Any

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
