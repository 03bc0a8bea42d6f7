"""lexent adapt train: an adapter from the judged queries of a train split."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options, studies
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.option_groups import Settings, settings_group, with_option_groups
from lexent.cli.progress import Meter

if TYPE_CHECKING:
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


@with_option_groups
def train(
    *,
    collection: studies.CollectionName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the new adapter.")],
    split: studies.TrainSplit = None,
    form: Annotated[Settings, FORM],
    settings: Annotated[Settings, TRAINING],
    encoder: options.EncoderName = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
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
    if json:
        show_json({"path": str(out), **found.to_json(), "seconds": round(seconds, 3)})
        return
    _show(found)
    if found.adapter.info.kept_base:
        say("note     the base retriever was kept: held-out train queries did not gain for certain")
    show(f"trained  {found.adapter.parameters:,} numbers, {found.epochs} passes, {seconds:,.0f} s -> {out}")
    place = to_measure(collection)
    say_next(
        command("lexent", "adapt", "eval", place, out),
        command("lexent", "adapt", "explain", place, out, "QUERY"),
    )


def _show(found: Training) -> None:
    from lexent.cli.views import table

    show(f"{found.collection} ({found.split}): {found.queries:,} queries, {found.held_out:,} of them held out", "")
    head = ["held-out train queries", *found.base]
    rows = [
        ["base", *(f"{value:.4f}" for value in found.base.values())],
        ["adapted", *(f"{value:.4f}" for value in found.adapted.values())],
    ]
    show(*table(head, rows))
    new = found.new_documents
    show("", f"p {studies.p_value(found.p_value)}: paired one-sided t-test over them; the passes were chosen on others")
    show(
        f"of {new['queries']:,.0f} whose documents were no training query's answer: "
        f"nDCG@10 {new['base']:.4f} -> {new['adapted']:.4f}"
    )
