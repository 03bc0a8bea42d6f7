"""lexent fidelity: how much of the encoder's states the concepts keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.console import Output
from lexent.cli.option_groups import option_group
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.studies.fidelity import FidelityReport


@option_group
class Rebuilding:
    """What is rebuilt, and how it is measured."""

    lexicon: options.Name = None
    """Lexicons, by folder or shipped name; several with commas. [default: all shipped ones]"""
    k: Annotated[str, typer.Option("--sae-k")] = ""
    """Concepts a state is coded with, several with commas. [default: a quarter, a half and all of what each lexicon
    was trained with]"""
    measures: str = "nDCG@10,R@100"
    """Names of ir_measures with commas, such as nDCG@10,R@100."""
    split: options.Split = None
    sample: int = 1000
    """Documents whose token states are rebuilt; those judged relevant first."""
    encoder: options.EncoderName = None


def fidelity(collection: options.CollectionName, chosen: Rebuilding) -> Output:
    """Rebuild the encoder's states from their concepts, and see how much is kept.

    NMSE is the squared error over that of a guess that knows only the mean: 0 is perfect, 1 is no better than the mean.
    Retrieval is by the cosine of rebuilt vectors on both sides. For a lexicon for MaxSim a second table holds the
    products of codes against those of states, beside the bound that theory gives.
    """
    from lexent.studies.fidelity import fidelity as measure

    lexicons = options.names_of(chosen.lexicon) if chosen.lexicon else None
    sizes = options.numbers_of(chosen.k, "--sae-k")
    with Meter() as meter:
        given = {**vars(chosen), "lexicon": lexicons, "k": sizes}
        report = measure(collection, **given, progress=meter.update)
    return Output(report, _lines(report))


def _lines(report: FidelityReport) -> Iterator[Line]:
    from lexent.cli.studies import p_value
    from lexent.cli.views import table
    from lexent.studies.maxsim_theory import tables
    from lexent.undefined import shown

    yield from (f"{report.collection} ({report.split}): {report.documents:,} documents, {report.queries:,} queries", "")
    head = ["lexicon", "k", "NMSE", "queries", "cosine", "active", "5 to 95 %", "live"]
    head += [cell for measure in report.dense for cell in (measure, "kept", "p")]
    rows = []
    for row in report.rows:
        active, live = row.documents["active"], row.documents["live"] / row.size
        errors = [shown(side["nmse"], ".4f") for side in (row.documents, row.queries)]
        cells = [row.lexicon, str(row.k), *errors, shown(row.documents["cosine"], ".3f")]
        cells += [shown(active["mean"], ".1f"), f"{active['p5']} to {active['p95']}", f"{live:.0%}"]
        for measure in report.dense:
            if measure in row.measures:
                kept = shown(row.kept[measure], ".3f")
                cells += [f"{row.measures[measure]:.4f}", kept, p_value(row.p_values[measure])]
            else:
                cells += ["", "", ""]
        rows.append([*cells, shown(row.spearman, ".3f")])
    yield from table([*head, "Spearman"], rows)
    dense = ", ".join(f"{name} {value:.4f}" for name, value in report.dense.items())
    yield from ("", f"dense retrieval: {dense}; kept: the share of it; p: paired t-test against it, over queries")
    yield "Spearman: rank correlation of whole rankings with dense retrieval's; live: concepts that any document has"
    yield from report.notes
    for each in tables([row.theory for row in report.rows if row.theory is not None]):
        yield from ("", each.title, "")
        yield from table(list(each.head), each.text())
        yield each.note
