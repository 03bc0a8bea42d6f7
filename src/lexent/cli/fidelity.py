"""lexent fidelity: how much of the encoder's states the concepts keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options, studies
from lexent.cli.console import show, show_json
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.studies.fidelity import FidelityReport


def fidelity(
    collection: studies.CollectionName,
    lexicon: Annotated[
        str | None,
        typer.Option(
            "--lexicon",
            metavar="NAME_OR_DIR",
            help="Lexicons, by folder or shipped name; several with commas. All shipped ones where not given.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[
        str,
        typer.Option(
            "--sae-k",
            help='Concepts a state is coded with, several with commas; "" for a quarter, a half and all of '
            "what each lexicon was trained with.",
        ),
    ] = "",
    measures: Annotated[
        str, typer.Option("--measures", help="ir_measures names with commas, such as nDCG@10,R@100.")
    ] = "nDCG@10,R@100",
    split: studies.Split = None,
    sample: Annotated[
        int, typer.Option("--sample", help="Documents whose token states are rebuilt; those judged relevant first.")
    ] = 1000,
    encoder: options.EncoderName = None,
    json: options.Json = False,
) -> None:
    """Rebuild the encoder's states from their concepts, and see how much is kept.

    NMSE is the squared error over that of a guess that knows only the mean: 0 is perfect, 1 is no better than the mean.
    Retrieval is by the cosine of rebuilt vectors on both sides. For a lexicon for MaxSim a second table holds the
    products of codes against those of states, beside the bound that theory gives.
    """
    from lexent.studies.fidelity import fidelity as measure

    with Meter() as meter:
        report = measure(
            collection,
            lexicon=options.names_of(lexicon) if lexicon else None,
            k=studies.numbers_of(k, "--sae-k"),
            encoder=encoder,
            measures=measures,
            split=split,
            sample=sample,
            progress=meter.update,
        )
    if json:
        show_json(report.to_json())
        return
    _show(report)


def _show(report: FidelityReport) -> None:
    from lexent.cli.studies import p_value
    from lexent.cli.views import table
    from lexent.undefined import shown

    show(f"{report.collection} ({report.split}): {report.documents:,} documents, {report.queries:,} queries", "")
    measures = list(report.dense)
    head = ["lexicon", "k", "NMSE", "queries", "cosine", "active", "5 to 95 %", "live"]
    for measure in measures:
        head += [measure, "kept", "p"]
    rows = []
    for row in report.rows:
        active, live = row.documents["active"], row.documents["live"] / row.size
        errors = [shown(side["nmse"], ".4f") for side in (row.documents, row.queries)]
        cells = [row.lexicon, str(row.k), *errors, shown(row.documents["cosine"], ".3f")]
        cells += [shown(active["mean"], ".1f"), f"{active['p5']} to {active['p95']}"]
        cells.append(f"{live:.0%}")
        for measure in measures:
            if measure in row.measures:
                kept = shown(row.kept[measure], ".3f")
                cells += [f"{row.measures[measure]:.4f}", kept, p_value(row.p_values[measure])]
            else:
                cells += ["", "", ""]
        rows.append([*cells, shown(row.spearman, ".3f")])
    show(*table([*head, "Spearman"], rows))
    dense = ", ".join(f"{name} {value:.4f}" for name, value in report.dense.items())
    show("", f"dense retrieval: {dense}; kept: the share of it; p: paired t-test against it, over queries")
    show("Spearman: rank correlation of whole rankings with dense retrieval's; live: concepts that any document has")
    for note in report.notes:
        show(note)
    _show_theory(report)


def _show_theory(report: FidelityReport) -> None:
    from lexent.cli.views import table
    from lexent.studies.maxsim_theory import tables

    checked = [row.theory for row in report.rows if row.theory is not None]
    for each in tables(checked):
        show("", each.title, "", *table(list(each.head), each.text()), each.note)
