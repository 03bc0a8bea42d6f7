"""lexent tune: settings that rank a train split best."""

from __future__ import annotations

import json as jsons
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lexent.cli import options, studies
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.option_groups import option_group, with_option_groups
from lexent.cli.progress import Meter
from lexent.cli.studies import p_value
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.evaluation.tuning import Tuned

Search = Literal["coordinate", "grid"]


@option_group
@dataclass(frozen=True, slots=True)
class Trials:
    """Which settings are tried, and on how many queries."""

    over: Annotated[
        str | None,
        typer.Option(
            "--over",
            metavar="NAMES",
            help="The settings to tune, with commas, such as k1,b,k2; those of the formula where not given.",
            show_default=False,
        ),
    ] = None
    search: Annotated[
        Search, typer.Option("--search", help="One setting at a time until none gains, or all combinations.")
    ] = "coordinate"
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--values", metavar="NAME=V,V", help="Values to try of a setting instead of our own: k1=1,2,4. Repeatable."
        ),
    ] = None
    queries: Annotated[
        int | None,
        typer.Option("--queries", help="Try on at most this many queries of each, drawn evenly; all where not given."),
    ] = None


@with_option_groups
def tune(
    *,
    collections: Annotated[
        list[str],
        typer.Argument(
            metavar="COLLECTION...",
            help="BEIR folders or ir_datasets ids; of several, settings are sought that suit all: the mean counts.",
        ),
    ],
    recipe: options.RecipeName = "latent-terms",
    split: studies.TrainSplit = None,
    measure: Annotated[str, typer.Option("--measure", help="The ir_measures name of what to raise.")] = "nDCG@10",
    trials: Trials,
    models: options.Models,
    predict: Annotated[
        Path | None,
        typer.Option(
            "--predict",
            metavar="DIR",
            help="Learn instead how much the buckets of a uhd lexicon count for each query, and save the lexicon with "
            "it to this folder; then use --predicted.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the recipe to this .json file, for --recipe FILE."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", help="How many of the best settings to show.")] = 8,
    json: options.Json = False,
) -> None:
    """Find settings of a recipe that rank the train split of your collections best.

    Texts are encoded once, and every trial weighs them again. Then evaluate on the test split, which tuning never sees.
    """
    from lexent import recipes
    from lexent.evaluation import tuning
    from lexent.evaluation.training_split import to_measure

    if out is not None and out.suffix != ".json":
        raise InputError(f'--out is a .json file; given: "{out}"; write for example --out {out.stem}.json')
    if predict is not None:
        _predict(collections, recipe, predict, split=split, queries=trials.queries, models=models, json=json)
        return
    with Meter("") as meter:
        found = tuning.tune(
            collections,
            recipe=recipe,
            split=split,
            measure=measure,
            over=None if trials.over is None else options.names_of(trials.over),
            search=trials.search,
            grid=values_of(trials.values) or None,
            queries=trials.queries,
            lexicon=models.lexicon,
            encoder=models.encoder,
            progress=meter.update,
        )
    if out is not None:
        recipes.write(found.recipe, out)
    if json:
        show_json(found.to_json())
        return
    _show(found, rows)
    if out is not None:
        say(f"recipe in {out}")
    place = to_measure(collections[0])
    chosen: list[object] = ["--recipe", out] if out is not None else ["--recipe", recipe, *flags(found.settings)]
    lines = [command("lexent", "eval", place, *chosen), command("lexent", "index", place, *chosen)]
    if found.settings:
        lines.append(command("lexent", "retune", "DIR", *flags(found.settings)))
    say_next(*lines)


def _predict(
    collections: list[str],
    recipe: str,
    out: Path,
    *,
    split: str | None,
    queries: int | None,
    models: options.Models,
    json: bool,
) -> None:
    from lexent.artifact import check_target
    from lexent.cli.views import table
    from lexent.evaluation import tuning
    from lexent.evaluation.training_split import to_measure
    from lexent.lexicon import load
    from lexent.recipes import get

    check_target(out, kind="lexicon", overwrite=False)
    whole = load(models.lexicon, recipe=get(recipe))
    with Meter("") as meter:
        given: dict[str, Any] = {"recipe": recipe, "split": split, "queries": queries, "lexicon": whole}
        found = tuning.predict_buckets(collections, **given, encoder=models.encoder, progress=meter.update)
    if found.predictor is not None:
        whole.weighing(found.predictor).save(out)
    if json:
        kept = str(out) if found.predictor is not None else None
        show_json({"values": found.values, "fixed": found.fixed, "p_value": found.p_value, "lexicon": kept})
        return
    show(
        *table(["weights of buckets", "nDCG@10"], [[name, f"{value:.4f}"] for name, value in found.values.items()]), ""
    )
    gain = found.values["predicted"] - found.values["fixed"]
    show(
        f"{found.queries:,} queries, each measured by what others taught; gain {gain:+.4f}, p {p_value(found.p_value)}"
    )
    fixed = ",".join(f"{weight:g}" for weight in found.fixed)
    if found.predictor is None:
        show(f"queries gain nothing by weights of their own; fixed ones: --buckets {fixed}")
        return
    show(f"lexicon in {out}")
    say_next(command("lexent", "eval", to_measure(collections[0]), "--recipe", recipe, "--lexicon", out, "--predicted"))


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


def _show(found: Tuned, rows: int) -> None:
    from lexent.cli.views import table

    names = list(found.over)
    best = [[*(_shown(trial.settings[name]) for name in names), f"{trial.value:.4f}"] for trial in found.trials[:rows]]
    own = [*(_shown(found.start.setting(name)) for name in names), f"{found.before:.4f}"]
    lines = [["", *row] for row in best]
    show(*table(["", *names, found.measure], [*lines, ["as it was", *own]]), "")
    for name, (before, value) in found.collections.items():
        show(f"{name}: {before:.4f} -> {value:.4f}")
    gain = f"gain {found.value - found.before:+.4f}, p {p_value(found.p_value)} (paired t-test over the same queries)"
    show(f"{len(found.trials):,} settings tried; {gain}")
    if not found.settings:
        show(f"nothing gains on the settings of {found.start.name}")
    else:
        show("settings: " + " ".join(flags(found.settings)))
