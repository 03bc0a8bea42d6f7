"""lexent tune: settings that rank a train split best."""

from __future__ import annotations

import json as jsons
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lexent.cli import options
from lexent.cli.console import Output, command
from lexent.cli.option_groups import option_group
from lexent.cli.progress import Meter
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.evaluation.tuning import Tuned

Search = Literal["coordinate", "grid"]


@option_group
class Trials:
    """Which settings are tried, and on which queries."""

    collections: Annotated[list[str], typer.Argument(metavar="COLLECTION...")]
    """BEIR folders or ir_datasets ids; of several, settings are sought that suit all: the mean counts."""
    recipe: options.RecipeName = "latent-terms"
    split: options.TrainSplit = None
    measure: str = "nDCG@10"
    """The ir_measures name of what to raise."""
    over: Annotated[str | None, typer.Option(metavar="NAMES")] = None
    """The settings to tune, with commas, such as k1,b,k2. [default: those of the formula]"""
    search: Search = "coordinate"
    """One setting at a time until none gains, or all combinations."""
    values: Annotated[list[str] | None, typer.Option(metavar="NAME=V,V")] = None
    """Values to try of a setting instead of our own: k1=1,2,4. Repeatable."""
    queries: int | None = None
    """Try on at most this many queries of each, drawn evenly. [default: all]"""


@option_group
class Results:
    """What is learned, written and shown."""

    predict: Annotated[Path | None, typer.Option(metavar="DIR")] = None
    """Learn instead how much the buckets of a uhd lexicon count for each query, and save the lexicon with it to this
    folder; then use --predicted."""
    out: Annotated[Path | None, typer.Option("-o", metavar="FILE")] = None
    """Write the recipe to this .json file, for --recipe FILE."""
    rows: int = 8
    """How many of the best settings to show."""


def tune(trials: Trials, models: options.Models, results: Results) -> Output:
    """Find settings of a recipe that rank the train split of your collections best.

    Texts are encoded once, and every trial weighs them again. Then evaluate on the test split, which tuning never sees.
    """
    from lexent import recipes
    from lexent.evaluation import tuning
    from lexent.evaluation.training_split import to_measure

    out = results.out
    if out is not None and out.suffix != ".json":
        raise InputError(f'--out is a .json file; given: "{out}"; write for example --out {out.stem}.json')
    if results.predict is not None:
        return _predict(trials, models, results.predict)
    over = None if trials.over is None else options.names_of(trials.over)
    given = {**vars(trials), "over": over, "grid": values_of(trials.values) or None, **vars(models)}
    del given["values"]
    with Meter("") as meter:
        found = tuning.tune(**given, progress=meter.update)
    if out is not None:
        recipes.write(found.recipe, out)
    place = to_measure(trials.collections[0])
    chosen: list[object] = ["--recipe", trials.recipe, *flags(found.settings)] if out is None else ["--recipe", out]
    steps = [command("lexent", "eval", place, *chosen), command("lexent", "index", place, *chosen)]
    if found.settings:
        steps.append(command("lexent", "retune", "DIR", *flags(found.settings)))
    return Output(found, _lines(found, results.rows), steps, [f"recipe in {out}"] if out is not None else ())


def _predict(trials: Trials, models: options.Models, out: Path) -> Output:
    from lexent.artifact import check_target
    from lexent.cli.views import table
    from lexent.evaluation import tuning
    from lexent.evaluation.training_split import to_measure
    from lexent.lexicon import load
    from lexent.nan_safe import p_text
    from lexent.recipes import get

    check_target(out, kind="lexicon", overwrite=False)
    whole = load(models.lexicon, recipe=get(trials.recipe))
    given: dict[str, Any] = {name: getattr(trials, name) for name in ("collections", "recipe", "split", "queries")}
    with Meter("") as meter:
        found = tuning.predict_buckets(**given, lexicon=whole, encoder=models.encoder, progress=meter.update)
    kept = found.predictor is not None
    if found.predictor is not None:
        whole.weighing(found.predictor).save(out)
    rows = [[name, f"{value:.4f}"] for name, value in found.values.items()]
    gain = f"gain {found.values['predicted'] - found.values['fixed']:+.4f}, p {p_text(found.p_value)}"
    fixed = ",".join(f"{weight:g}" for weight in found.fixed)
    weights = f"queries gain nothing by weights of their own; fixed ones: --buckets {fixed}"
    place = to_measure(trials.collections[0])
    return Output(
        {"values": found.values, "fixed": found.fixed, "p_value": found.p_value, "lexicon": str(out) if kept else None},
        [
            *table(["weights of buckets", "nDCG@10"], rows),
            "",
            f"{found.queries:,} queries, each measured by what others taught; {gain}",
            f"lexicon in {out}" if kept else weights,
        ],
        [command("lexent", "eval", place, "--recipe", trials.recipe, "--lexicon", out, "--predicted")] if kept else (),
    )


def values_of(given: list[str] | None) -> dict[str, list[Any]]:
    """Values by setting, from --values "k1=1,2,4"."""
    found: dict[str, list[Any]] = {}
    for each in given or []:
        name, equals, values = each.partition("=")
        if not equals or not options.names_of(values):
            raise InputError(f'--values "{each}" has no name and values; write --values "k1=1,2,4"')
        found[name.strip().replace("-", "_")] = [_value(value) for value in options.names_of(values)]
    return found


def _value(text: str) -> Any:
    try:
        return jsons.loads(text)
    except ValueError:
        return text


def flags(settings: dict[str, Any]) -> list[str]:
    """The settings as options of index, eval and retune."""
    return [word for name, value in settings.items() for word in (options.RECIPE.flags[name], _shown(value))]


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(f"{each:g}" for each in value) or "alike"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _lines(found: Tuned, rows: int) -> Iterator[Line]:
    from lexent.cli.views import table
    from lexent.nan_safe import p_text

    names = list(found.over)
    best = [
        ["", *(_shown(trial.settings[name]) for name in names), f"{trial.value:.4f}"] for trial in found.trials[:rows]
    ]
    own = ["as it was", *(_shown(found.start.setting(name)) for name in names), f"{found.before:.4f}"]
    yield from table(["", *names, found.measure], [*best, own])
    yield ""
    for name, (before, value) in found.collections.items():
        yield f"{name}: {before:.4f} -> {value:.4f}"
    gain = f"gain {found.value - found.before:+.4f}, p {p_text(found.p_value)} (paired t-test over the same queries)"
    yield f"{len(found.trials):,} settings tried; {gain}"
    settings = " ".join(flags(found.settings))
    yield f"settings: {settings}" if settings else f"nothing gains on the settings of {found.start.name}"
