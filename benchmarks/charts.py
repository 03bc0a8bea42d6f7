"""Small plots as SVG, drawn by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
    'font-family="ui-sans-serif,system-ui,sans-serif" role="img" aria-label="{label}">\n'
    "<style>.t{{font-size:15px;font-weight:600;fill:#1f2328}}.s{{font-size:12px;fill:#57606a}}"
    ".ours{{fill:#0969da}}.peer{{fill:#afb8c1}}.grid{{stroke:#d0d7de;stroke-width:1}}"
    ".line{{fill:none;stroke:#0969da;stroke-width:2.2}}.rule{{fill:none;stroke:#8c959f;stroke-width:1.2;"
    "stroke-dasharray:5 4}}</style>\n"
    '<rect width="100%" height="100%" fill="#fff"/>\n'
)


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    value: float
    ours: bool = False


def bars(panels: Sequence[tuple[str, Sequence[Bar]]], *, unit: str, label: str) -> str:
    """Panels of horizontal bars, one below the other, each on its own scale from 0."""
    width, left, right, step = 760, 250, 90, 24
    height = sum(46 + step * len(found) for _, found in panels) + 6
    parts, y = [HEAD.format(width=width, height=height, label=label)], 0
    for title, found in panels:
        parts.append(f'<text class="t" x="14" y="{y + 26}">{title}</text>')
        y += 38
        most = max((bar.value for bar in found), default=1.0)
        for bar in found:
            long = max((width - left - right) * bar.value / most, 1)
            parts.append(f'<text class="s" x="{left - 8}" y="{y + 14}" text-anchor="end">{bar.label}</text>')
            kind = "ours" if bar.ours else "peer"
            parts.append(f'<rect class="{kind}" x="{left}" y="{y + 2}" width="{long:.1f}" height="16" rx="2"/>')
            parts.append(f'<text class="s" x="{left + long + 6:.1f}" y="{y + 14}">{_short(bar.value)} {unit}</text>')
            y += step
        y += 8
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class Line:
    """Points on logarithmic axes, or against a plain axis from 0."""

    title: str
    points: Sequence[tuple[float, float]]
    logarithmic: bool = True
    rule: str = ""
    """What the dashed line is called: growth in proportion (logarithmic), or the limit (plain)."""
    limit: float | None = None


def lines(panels: Sequence[Line], *, x_label: str, label: str) -> str:
    """Panels side by side, with a logarithmic horizontal axis."""
    wide, height = 400, 300
    parts = [HEAD.format(width=wide * len(panels), height=height, label=label)]
    for number, panel in enumerate(panels):
        parts.append(f'<g transform="translate({wide * number} 0)">{_panel(panel, wide, height, x_label)}</g>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Line, width: int, height: int, x_label: str) -> str:
    left, right, top, bottom = 56, 24, 44, 48
    xs, ys = [x for x, _ in panel.points], [y for _, y in panel.points]
    x_low, x_high = math.log10(min(xs)), math.log10(max(xs)) or 1.0
    ruled = [(xs[0], ys[0]), (xs[-1], ys[0] * xs[-1] / xs[0])] if panel.logarithmic else []
    if panel.limit is not None:
        ruled = [(xs[0], panel.limit), (xs[-1], panel.limit)]
    every = [*ys, *(y for _, y in ruled)]
    if panel.logarithmic:
        low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
        ticks = [10.0**power for power in range(low, high + 1)]
    else:
        step = _step(max(every))
        low, high = 0, math.ceil(max(every) * 1.08 / step)
        ticks = [step * number for number in range(high + 1)]

    def place(x: float, y: float) -> tuple[float, float]:
        at = math.log10(y) if panel.logarithmic else y / step
        return (
            left + (width - left - right) * (math.log10(x) - x_low) / ((x_high - x_low) or 1),
            height - bottom - (height - top - bottom) * (at - low) / ((high - low) or 1),
        )

    def path(points: Sequence[tuple[float, float]]) -> str:
        return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in (place(*point) for point in points))

    parts = [f'<text class="t" x="14" y="24">{panel.title}</text>']
    for tick in ticks:
        y = place(xs[0], tick)[1]
        parts.append(f'<path class="grid" d="M{left} {y:.1f} H{width - right}"/>')
        parts.append(f'<text class="s" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(tick)}</text>')
    for x in xs:
        at = place(x, ys[0])[0]
        parts.append(f'<text class="s" x="{at:.1f}" y="{height - bottom + 18}" text-anchor="middle">{_short(x)}</text>')
    parts.append(
        f'<text class="s" x="{(left + width - right) / 2}" y="{height - 10}" text-anchor="middle">{x_label}</text>'
    )
    if ruled:
        parts.append(f'<path class="rule" d="{path(ruled)}"/>')
        x, y = place(*ruled[-1])
        parts.append(f'<text class="s" x="{x:.1f}" y="{max(y - 6, 38):.1f}" text-anchor="end">{panel.rule}</text>')
    parts.append(f'<path class="line" d="{path(panel.points)}"/>')
    for point in panel.points:
        x, y = place(*point)
        parts.append(f'<circle class="ours" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>')
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one system: (time, quality). A line joins those that no other point of it beats in both."""

    label: str
    points: Sequence[tuple[float, float]]
    ours: bool = False


COLOURS = ("#cf222e", "#9a6700", "#1a7f37", "#8250df", "#57606a")
OURS = "#0969da"


def frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other beats in both, by ascending time: each is better than every quicker one."""
    found: list[tuple[float, float]] = []
    for time, quality in sorted(points, key=lambda point: (point[0], -point[1])):
        if not found or quality > found[-1][1]:
            found.append((time, quality))
    return found


def trade_off(series: Sequence[Series], *, title: str, x_label: str, y_label: str, label: str) -> str:
    """Quality against time: a logarithmic horizontal axis, a plain vertical one that does not begin at 0."""
    width, height, left, right, top, bottom = 760, 440, 64, 24, 44, 52
    times = [time for one in series for time, _ in one.points]
    qualities = [quality for one in series for _, quality in one.points]
    first, last = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    last = max(last, first + 1)
    step = _step((max(qualities) - min(qualities)) or 0.01)
    low, high = math.floor(min(qualities) / step), math.ceil(max(qualities) / step)
    low, high = (low - 1, high + 1) if low == high else (low, high)

    def place(time: float, quality: float) -> tuple[float, float]:
        return (
            left + (width - left - right) * (math.log10(time) - first) / (last - first),
            height - bottom - (height - top - bottom) * (quality / step - low) / (high - low),
        )

    parts = [HEAD.format(width=width, height=height, label=label), f'<text class="t" x="14" y="24">{title}</text>']
    for number in range(low, high + 1):
        y = place(1.0, number * step)[1]
        parts.append(f'<path class="grid" d="M{left} {y:.1f} H{width - right}"/>')
        parts.append(f'<text class="s" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{number * step:.4g}</text>')
    for power in range(first, last + 1):
        x = place(10.0**power, low * step)[0]
        parts.append(f'<path class="grid" d="M{x:.1f} {top} V{height - bottom}"/>')
        shown = _short(10.0**power)
        parts.append(f'<text class="s" x="{x:.1f}" y="{height - bottom + 18}" text-anchor="middle">{shown}</text>')
    middle = (left + width - right) / 2
    parts.append(f'<text class="s" x="{middle}" y="{height - 10}" text-anchor="middle">{x_label}</text>')
    parts.append(f'<text class="s" x="14" y="{top - 6}">{y_label}</text>')
    colours = iter(COLOURS * (1 + len(series) // len(COLOURS)))
    for number, one in enumerate(series):
        colour = OURS if one.ours else next(colours)
        front = " L".join(f"{x:.1f} {y:.1f}" for x, y in (place(*point) for point in frontier(one.points)))
        parts.append(f'<path fill="none" stroke="{colour}" stroke-width="2" d="M{front}"/>')
        for point in one.points:
            x, y = place(*point)
            parts.append(f'<circle fill="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="{4 if one.ours else 3.5}"/>')
        y = height - bottom - 14 - 18 * (len(series) - 1 - number)
        parts.append(f'<circle fill="{colour}" cx="{width - right - 190}" cy="{y - 4}" r="4"/>')
        parts.append(f'<text class="s" x="{width - right - 180}" y="{y}">{one.label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _step(most: float) -> float:
    """A round distance between some five ticks."""
    rough = most / 4
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
