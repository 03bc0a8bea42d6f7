"""lexent adapt train: an adapter from the judged queries of a train split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexent.cli import options, studies
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.fields import help_of
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.evaluation.adapting import Training

_FILE = "adapters/config.py"


def _setting(flag: str, field: str, *, of: str = "TrainSettings") -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(
        flag,
        help=help_of(_FILE, of, field, default=True),
        show_default=False,
        rich_help_panel="Training" if of == "TrainSettings" else "The adapter's form",
    )
    return found


def train(
    collection: studies.CollectionName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the new adapter.")],
    split: Annotated[
        str, typer.Option("--split", help="The judgements to learn from, such as train; a test split is refused.")
    ] = "train",
    mode: Annotated[str | None, _setting("--mode", "mode", of="AdapterConfig")] = None,
    width: Annotated[
        int | None,
        typer.Option(
            "--width",
            help="Width of the projected vectors; the encoder's own by default.",
            show_default=False,
            rich_help_panel="The adapter's form",
        ),
    ] = None,
    start: Annotated[str | None, _setting("--start", "start", of="AdapterConfig")] = None,
    hidden: Annotated[int | None, _setting("--hidden", "hidden", of="AdapterConfig")] = None,
    rank: Annotated[int | None, _setting("--rank", "rank", of="AdapterConfig")] = None,
    layer_norm: Annotated[
        bool,
        typer.Option(
            "--layer-norm", help=help_of(_FILE, "AdapterConfig", "layer_norm"), rich_help_panel="The adapter's form"
        ),
    ] = False,
    feedback: Annotated[str | None, _setting("--feedback", "feedback", of="AdapterConfig")] = None,
    feedback_depth: Annotated[int | None, _setting("--feedback-depth", "feedback_depth", of="AdapterConfig")] = None,
    loss: Annotated[str | None, _setting("--loss", "loss")] = None,
    margin: Annotated[float | None, _setting("--margin", "margin")] = None,
    temperature: Annotated[float | None, _setting("--temperature", "temperature")] = None,
    negatives: Annotated[str | None, _setting("--negatives", "negatives")] = None,
    n_negatives: Annotated[int | None, _setting("--n-negatives", "n_negatives")] = None,
    lr: Annotated[float | None, _setting("--lr", "lr")] = None,
    weight_decay: Annotated[float | None, _setting("--weight-decay", "weight_decay")] = None,
    anchor: Annotated[float | None, _setting("--anchor", "anchor")] = None,
    batch: Annotated[int | None, _setting("--batch", "batch")] = None,
    epochs: Annotated[int | None, _setting("--epochs", "epochs")] = None,
    patience: Annotated[int | None, _setting("--patience", "patience")] = None,
    folds: Annotated[int | None, _setting("--folds", "folds")] = None,
    held_out: Annotated[str | None, _setting("--held-out", "held_out")] = None,
    candidates: Annotated[int | None, _setting("--candidates", "candidates")] = None,
    seed: Annotated[int | None, _setting("--seed", "seed")] = None,
    encoder: options.EncoderName = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Train an adapter on judged queries; the encoder stays as it is.

    Parts of the train queries are held out in turn. They say for how many passes to train, and whether to adapt at all:
    where they do not gain for certain, the base retriever is kept, and the adapter changes nothing.
    """
    from lexent import artifact
    from lexent.adapters import TrainSettings, save
    from lexent.evaluation.adapting import train_adapter

    artifact.check_target(out, kind="adapter", overwrite=overwrite)  # before the long work
    form: dict[str, Any] = {
        "mode": mode,
        "width": width,
        "start": start,
        "hidden": hidden,
        "rank": rank,
        "feedback": feedback,
    }
    form |= {"feedback_depth": feedback_depth, "layer_norm": layer_norm or None}
    given: dict[str, Any] = {
        "loss": loss,
        "margin": margin,
        "temperature": temperature,
        "negatives": negatives,
        "lr": lr,
    }
    given |= {"n_negatives": n_negatives, "weight_decay": weight_decay, "anchor": anchor, "batch": batch}
    given |= {"epochs": epochs, "patience": patience, "folds": folds, "held_out": held_out, "candidates": candidates}
    given |= {"seed": seed}
    began = perf_counter()
    with Meter("") as meter:
        found = train_adapter(
            collection,
            split=split,
            encoder=encoder,
            settings=TrainSettings(**_said(given)),
            name=out.name,
            progress=meter.update,
            **_said(form),
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
    say_next(
        command("lexent", "adapt", "eval", collection, out),
        command("lexent", "adapt", "explain", collection, out, "QUERY"),
    )


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


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
    show("", f"p {studies.p_value(found.p_value)}: paired one-sided t-test over them, on the base's candidates")
    show(
        f"of {new['queries']:,.0f} whose documents were no training query's answer: "
        f"nDCG@10 {new['base']:.4f} -> {new['adapted']:.4f}"
    )
