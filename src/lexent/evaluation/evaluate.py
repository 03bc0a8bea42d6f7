"""Evaluate: a recipe, its baselines and existing run files on one collection, by the same measures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from lexent import recipes
from lexent.errors import InputError, NotFoundError
from lexent.evaluation import measures as scoring
from lexent.evaluation import runs as trec
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.progress import Progress
from lexent.evaluation.report import Report
from lexent.evaluation.runs import Run
from lexent.evaluation.systems import BASELINES, Bench, Dense, EncoderLike, Latent, LexiconLike, System
from lexent.recipes import Recipe

MEASURES = ("nDCG@10", "R@100")


def evaluate(
    collection: str | Path | Collection,
    *,
    recipe: str | Recipe | Sequence[str | Recipe] | None = "latent-terms",
    lexicon: LexiconLike = None,
    encoder: EncoderLike = None,
    baselines: Sequence[str] = BASELINES,
    measures: str | Sequence[str] = MEASURES,
    runs: Sequence[str | Path] = (),
    split: str = "test",
    depth: int = 1000,
    run_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """How good a recipe's rankings are, beside its baselines' and those of existing TREC run files.

    collection: a BEIR folder, an ir_datasets id or a Collection. recipe: one or several; None evaluates only the
    others. lexicon: used by the recipes of its level; others take the shipped one for them.
    depth: how many documents each system returns for a query. run_dir: where to write the systems' run files.
    progress: is told how many texts are encoded. p-values are against the first baseline.
    """
    wanted = scoring.parse(measures)  # everything that can be refused at once, before the long work
    asked = [] if recipe is None else [recipe] if isinstance(recipe, str | Recipe) else list(recipe)
    chosen = [recipes.get(each) for each in asked]
    _check(baselines, chosen, runs, depth)
    loaded = load(collection, split=split)
    found: dict[str, Run] = {_run_name(Path(path), runs): _read_run(Path(path), loaded) for path in runs}

    systems = _systems(chosen, baselines, lexicon=lexicon, encoder=encoder)
    made: dict[str, Run] = {}
    seconds: dict[str, float] = {}
    for system in systems:
        start = perf_counter()
        made[system.name] = system.run(loaded, depth=depth, progress=progress)
        seconds[system.name] = perf_counter() - start
        if run_dir is not None:
            place = f"{loaded.name}-{loaded.split}-{system.name}.run".replace("/", "-")
            trec.write(made[system.name], Path(run_dir) / place, tag=system.name)

    scores = {name: scoring.score(loaded.qrels, run, wanted) for name, run in {**made, **found}.items()}
    first = baselines[0] if baselines else None
    return Report(
        collection=loaded.name,
        split=loaded.split,
        documents=len(loaded.documents),
        queries=len(loaded.queries),
        systems={name: score.means for name, score in scores.items()},
        per_query={name: score.per_query for name, score in scores.items()},
        p_values=_p_values(scores, first),
        compared_with=first,
        seconds=seconds,
        setting=_setting(systems),
        missing=loaded.missing,
    )


def _systems(
    chosen: Sequence[Recipe], baselines: Sequence[str], *, lexicon: LexiconLike, encoder: EncoderLike
) -> list[System]:
    bench = Bench(encoder=encoder, lexicon=lexicon)
    if bench.given is not None and chosen and bench.given.info.level not in {recipe.level for recipe in chosen}:
        bench.given.check(bench.encoder, level=chosen[0].level)
    return [*(bench.latent(recipe) for recipe in chosen), *(bench.system(name) for name in baselines)]


def _setting(systems: Sequence[System]) -> dict[str, Any]:
    """What the systems use; of several recipes, each by its name."""
    found: dict[str, Any] = {}
    latent = [system for system in systems if isinstance(system, Latent)]
    for system in systems:
        if isinstance(system, Latent | Dense):
            found["encoder"] = system.encoder.id
    if len(latent) == 1:
        found |= {"recipe": latent[0].recipe.to_dict(), "lexicon": latent[0].lexicon.hash}
    elif latent:
        found["recipes"] = {system.name: system.recipe.to_dict() for system in latent}
        found["lexicons"] = {system.name: system.lexicon.hash for system in latent}
    return found


def _check(baselines: Sequence[str], chosen: Sequence[Recipe], runs: Sequence[str | Path], depth: int) -> None:
    if isinstance(baselines, str):
        raise InputError(f'baselines are a list; given: the string "{baselines}"; write ["{baselines}"]')
    for name in baselines:
        if name not in BASELINES:
            raise NotFoundError(f'no baseline "{name}"; baselines: {", ".join(BASELINES)}')
    if not chosen and not baselines and not runs:
        raise InputError("nothing to evaluate: give a recipe, baselines or run files")
    names = [recipe.name for recipe in chosen]
    if len(set(names)) < len(names):
        raise InputError(f"recipes are told apart by their names; given: {', '.join(names)}")
    if depth < 1:
        raise InputError(f"depth is {depth}; allowed: 1 or more")


def _read_run(path: Path, collection: Collection) -> Run:
    known = {document.id for document in collection.documents} | collection.queries.keys()
    run = trec.read(path, known=known)
    if not run.keys() & collection.queries.keys():
        raise InputError(
            f'{path}: none of its queries, such as "{next(iter(run))}", is judged in {collection.name} '
            f'({collection.split}), which has "{next(iter(collection.queries))}"; check collection and --split'
        )
    return run


def _run_name(path: Path, runs: Sequence[str | Path]) -> str:
    """The file's name without endings, or the whole path where that names two systems."""
    stem = path.name.removesuffix(".gz").removesuffix(".run").removesuffix(".trec").removesuffix(".txt")
    same = [other for other in runs if Path(other).name == path.name]
    return stem if len(same) == 1 and stem not in (*BASELINES, *recipes.RECIPES) else str(path)


def _p_values(scores: dict[str, scoring.Scores], first: str | None) -> dict[str, dict[str, float]]:
    if first is None:
        return {}
    reference = scores[first].per_query
    return {
        name: {measure: scoring.p_value(values, reference[measure]) for measure, values in score.per_query.items()}
        for name, score in scores.items()
        if name != first
    }
