"""lexent adapt train: an adapter from the judged queries of a train split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.console import Output, command
from lexent.cli.option_groups import Settings, settings_group
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.evaluation.adapting import Training

_FILE = "adapters/config.py"
FORM = settings_group(
    _FILE,
    "AdapterConfig",
    ("mode", "width", "start", "hidden", "rank", "layer_norm", "feedback", "feedback_depth"),
    panel="The adapter's form",
)
TRAINING = settings_group(
    _FILE,
    "TrainSettings",
    (
        "loss", "margin", "temperature", "negatives", "n_negatives", "lr", "weight_decay", "anchor", "batch", "epochs",
        "patience", "folds", "held_out", "candidates", "seed",
    ),
    panel="Training",
)  # fmt: skip


def train(
    collection: options.CollectionName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the new adapter.")],
    form: Annotated[Settings, FORM],
    settings: Annotated[Settings, TRAINING],
    split: options.TrainSplit = None,
    encoder: options.EncoderName = None,
    overwrite: options.Overwrite = False,
) -> Output:
    """Train an adapter on judged queries; the encoder stays as it is.

    Folds of the train queries are held out in turn. Some choose the number of passes, others test the choice: where
    those do not gain for certain, the base retriever is kept, and the adapter changes nothing.
    """
    from lexent import artifact
    from lexent.adapters import TrainSettings, save
    from lexent.evaluation.adapting import train_adapter
    from lexent.evaluation.training_split import to_measure

    artifact.check_target(out, kind="adapter", overwrite=overwrite)  # before the long work
    began = perf_counter()
    with Meter("") as meter:
        found = train_adapter(
            collection,
            split=split,
            encoder=encoder,
            settings=TrainSettings(**settings),
            name=out.name,
            progress=meter.update,
            **form,
        )
    save(found.adapter, out, overwrite=overwrite)
    seconds = perf_counter() - began
    place = to_measure(collection)
    passes = f"{found.adapter.parameters:,} numbers, {found.epochs} passes, {seconds:,.0f} s"
    kept = "note     the base retriever was kept: held-out train queries did not gain for certain"
    return Output(
        {"path": str(out), **found.to_json(), "seconds": round(seconds, 3)},
        (*_lines(found), f"trained  {passes} -> {out}"),
        [command("lexent", "adapt", "eval", place, out), command("lexent", "adapt", "explain", place, out, "QUERY")],
        [kept] if found.adapter.info.kept_base else (),
    )


def _lines(found: Training) -> Iterator[Line]:
    from lexent.cli.views import table
    from lexent.studies.analyses.table import p_text

    yield from (
        f"{found.collection} ({found.split}): {found.queries:,} queries, {found.held_out:,} of them held out",
        "",
    )
    means = {"base": found.base, "adapted": found.adapted}
    rows = [[name, *(f"{value:.4f}" for value in values.values())] for name, values in means.items()]
    yield from table(["held-out train queries", *found.base], rows)
    yield ""
    yield f"p {p_text(found.p_value)}: paired one-sided t-test over them; the passes were chosen on others"
    new = found.new_documents
    yield (
        f"of {new['queries']:,.0f} whose documents were no training query's answer: "
        f"nDCG@10 {new['base']:.4f} -> {new['adapted']:.4f}"
    )
