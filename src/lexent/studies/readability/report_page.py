"""The report as tables, and as a page with plots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from lexent import artifact
from lexent.artifact import lexent_version
from lexent.lexicon.evidence import Spread
from lexent.nan_safe import p_text, shown
from lexent.search.groups import SHOWN_GROUPS
from lexent.studies.analyses.table import Table
from lexent.studies.readability.name_detection import Detection
from lexent.studies.readability.readability import Mean, ReadabilityReport, Side, Support
from lexent.studies.readability.separation import REAL
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.page import Part, page
from lexent.studies.reproduction.section import Figure

SIDES = ("before", "after")
TESTED: dict[Spread, str] = {"quantiles": "held-out texts", "top": "the strongest held-out texts"}
"""What tests names, by where in a concept's range of activation it comes from."""


def tables(report: ReadabilityReport) -> list[Table]:
    """What was measured, and the queries that have no answer by kind."""
    return [_measures(report), _kinds(report)]


def _measures(report: ReadabilityReport) -> Table:
    sides = (report.before, report.after)
    rows = [
        (f"score in the first {SHOWN_GROUPS} lines", *(_mean(side.shown_share) for side in sides)),
        ("supported by words", *(_support(side.supported) for side in sides)),
        ("supported by words, wrong names", *(_wrong(side.supported) for side in sides)),
        ("supported by words or judge", *(_support(side.supported_by_judge) for side in sides)),
        ("supported by words or judge, wrong names", *(_wrong(side.supported_by_judge) for side in sides)),
        ("lines that repeat a first word", *(_mean(side.repeated_heads) for side in sides)),
        ("lines of form", *(_mean(side.form) for side in sides)),
        ("lines of a hit", *(shown(side.lines, ".1f") for side in sides)),
        ("nonsense below 95 % of real queries", *(_below(side) for side in sides)),
    ]
    notes = [
        "before: a line a concept, and the score; after: a line a group, and the strength",
        "in brackets: 95 % over queries",
        "wrong names: of lines of other queries, or of other concepts",
    ]
    for spread, found in report.detections.items():
        tested = (found.before, found.after)
        rows += [
            (f"AUC of names on {TESTED[spread]}", *(_interval(one.auc, one.low, one.high) for one in tested)),
            (f"AUC of names on {TESTED[spread]}, wrong names", *(shown(one.wrong_names, ".3f") for one in tested)),
            (f"AUC of examples on {TESTED[spread]}", *[shown(found.by_examples, ".3f")] * len(tested)),
        ]
        notes.append(f"AUC on {TESTED[spread]}: {_concepts(found.after)}, p {p_text(found.p)}")
    if report.close is not None:
        notes.append(f"judge: {report.judge}, to which words of a cosine from {report.close:.2f} on are close")
    return Table("", ("", *SIDES), tuple(row for row in rows if any(row[1:])), "; ".join(notes))


def _kinds(report: ReadabilityReport) -> Table:
    rows = []
    for kind, values in report.after.separation.values.items():
        row: list[str | int] = [kind, len(values)]
        for side in (report.before, report.after):
            below = side.separation.kinds.get(kind)
            row += [shown(side.separation.medians[kind], ".3f"), shown(below, ".3f")]
        rows.append(tuple(row))
    head = ("queries", "n", "score, median", "below", "strength, median", "below")
    ends = [f"{side.separation.threshold:.3f}" for side in (report.before, report.after)]
    note = f"below: the score {ends[0]} and the strength {ends[1]}, which 95 % of the {REAL} queries reach"
    return Table("", head, tuple(rows), note)


def _mean(value: Mean) -> str:
    return _interval(value.value, value.low, value.high)


def _interval(value: float, low: float, high: float) -> str:
    return f"{shown(value, '.3f')} ({shown(low, '.2f')}-{shown(high, '.2f')})"


def _support(found: Support | None) -> str:
    return "" if found is None else _mean(found.share)


def _wrong(found: Support | None) -> str:
    return "" if found is None else shown(found.wrong_names, ".3f")


def _below(side: Side) -> str:
    return _interval(side.separation.below, side.separation.low, side.separation.high)


def _concepts(found: Detection) -> str:
    return (
        f"{found.concepts:,} concepts of topics ({shown(found.with_form, '.3f')} with {found.form_concepts:,} of form)"
    )


def write(report: ReadabilityReport, out: Path, *, command: str) -> tuple[Path, Path]:
    """Write the page, and its values as JSON beside it."""
    target = out if out.suffix == ".html" else out.with_name(f"{out.name}.html")
    date = datetime.now(UTC).date().isoformat()
    measures, kinds = tables(report)
    found = [
        Part(
            "lines",
            "Lines",
            "How much of a score do the first lines say, and does the document support them?",
            [_curve(report), measures],
            "A line is supported where its name has a form of a word that raised its concepts in this very hit, with a "
            "share of at least 5 %; by the judge, also a word close to such a word. Hits and index are the same before "
            "and after.",
        ),
        Part(
            "nonsense",
            "Nonsense",
            "Does the strength of the first hit tell queries without an answer from real ones?",
            [_distributions(report), kinds],
            "Letters, made-up words and salads of everyday words come from the seed. Queries off topic come from a "
            "list; a collection about everything may answer some of them.",
        ),
    ]
    head = {
        "kind": "Readability",
        "title": "Explanations before and after",
        "intro": "Before: a line a concept, with the lexicon's names. After: a line for concepts that say the same, "
        "with names from the words of the documents.",
        "collection": report.collection,
        "split": report.split,
        "documents": report.documents,
        "queries": report.queries,
        "encoder": report.encoder,
        "lexicons": {report.recipe: {"name": report.lexicon}},
    }
    values = {"lexent": lexent_version(), "date": date, "command": command, **report.to_json()}
    data = target.with_suffix(".json")
    text = page(head, found, command=command, date=date, version=lexent_version())
    for path, content in ((data, json.dumps(values, indent=1, ensure_ascii=False) + "\n"), (target, text)):
        artifact.replace_file(path, content.encode())
    return target, data


def _curve(report: ReadabilityReport) -> Figure:
    found = {
        name: [(float(n), share) for n, share in enumerate(side.by_lines, start=1)]
        for name, side in zip(SIDES, (report.before, report.after), strict=True)
    }
    with plots.Sheet(2.8) as sheet:
        axes = sheet.axes[0]
        for name, ink in zip(SIDES, (plots.GREY, plots.BLUE), strict=True):
            axes.plot(*zip(*found[name], strict=True), "-o", color=ink, label=name)
        axes.set_ylim(0, 1.03)
        axes.set_xlabel("lines, strongest first")
        axes.set_ylabel("share of the score")
        return Figure(sheet.svg("share of the score by lines"), "Mean share of a hit's score in its first lines")


def _distributions(report: ReadabilityReport) -> Figure:
    colours = (plots.BLUE, plots.RED, plots.ORANGE, plots.PURPLE, plots.GREEN)
    with plots.Sheet(2.8, columns=2, share_y=True) as sheet:
        for axes, side, title in zip(
            sheet.axes, (report.before, report.after), ("before: the score", "after: the strength"), strict=True
        ):
            for ink, (kind, values) in zip(colours, side.separation.values.items(), strict=False):
                axes.step(*_below_each(values), where="post", color=ink, label=kind)
            axes.axvline(side.separation.threshold, color=plots.INK, linewidth=1.0, linestyle=":")
            axes.set_title(title)
        sheet.axes[0].set_ylabel("share of the queries below")
        drawn = sheet.svg("scores and strengths of first hits")
    return Figure(drawn, "First hits of real queries and of nonsense; dotted: what 95 % of the real queries reach")


def _below_each(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """The values in rising order, and the share of them up to each."""
    order = np.sort(np.array(values, np.float64))
    return order.tolist(), (np.arange(1, len(order) + 1) / max(1, len(order))).tolist()
