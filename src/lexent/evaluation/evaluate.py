"""Evaluate: a recipe, its baselines and existing run files on one collection, by the same measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from lexent import recipes
from lexent.errors import InputError, NotFoundError
from lexent.evaluation import baselines as rivals
from lexent.evaluation import latent
from lexent.evaluation import measures as scoring
from lexent.evaluation import runs as trec
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.progress import Progress
from lexent.evaluation.report import Report
from lexent.evaluation.runs import Run
from lexent.recipes import Recipe

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

BASELINES = ("dense", "bm25")
MEASURES = ("nDCG@10", "R@100")


def evaluate(
    collection: str | Path | Collection,
    *,
    recipe: str | Recipe | None = "latent-terms",
    lexicon: str | Path | Lexicon | None = None,
    encoder: str | Path | Encoder | Any | None = None,
    baselines: Sequence[str] = BASELINES,
    measures: str | Sequence[str] = MEASURES,
    runs: Sequence[str | Path] = (),
    split: str = "test",
    depth: int = 1000,
    run_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """How good a recipe's rankings are, beside its baselines' and those of existing TREC run files.

    collection: a BEIR folder, an ir_datasets id or a Collection. recipe: None evaluates only the others.
    depth: how many documents each system returns for a query. run_dir: where to write the systems' run files.
    progress: is told how many texts are encoded. p-values are against the first baseline.
    """
    wanted = scoring.parse(measures)  # everything that can be refused at once, before the long work
    chosen = recipes.get(recipe) if recipe is not None else None
    _check(baselines, chosen, runs, depth)
    loaded = load(collection, split=split)
    found: dict[str, Run] = {_run_name(Path(path), runs): _read_run(Path(path), loaded) for path in runs}

    systems, setting = _systems(loaded, chosen, lexicon, encoder, baselines=baselines, depth=depth, progress=progress)
    made: dict[str, Run] = {}
    seconds: dict[str, float] = {}
    for name, make in systems.items():
        start = perf_counter()
        made[name] = make()
        seconds[name] = perf_counter() - start
        if run_dir is not None:
            place = f"{loaded.name}-{loaded.split}-{name}.run".replace("/", "-")
            trec.write(made[name], Path(run_dir) / place, tag=name)

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
        setting=setting,
        missing=loaded.missing,
    )


def _systems(
    collection: Collection,
    recipe: Recipe | None,
    lexicon: str | Path | Lexicon | None,
    encoder: str | Path | Encoder | Any | None,
    *,
    baselines: Sequence[str],
    depth: int,
    progress: Progress | None,
) -> tuple[dict[str, Callable[[], Run]], dict[str, Any]]:
    """What makes each system's run, and what they use. An encoder is loaded once, and only for those that need it."""
    from lexent import encoders

    systems: dict[str, Callable[[], Run]] = {}
    setting: dict[str, Any] = {}
    if recipe is not None:
        from lexent import lexicon as lexicons

        words = lexicons.load(lexicon)
        encoder = encoder if encoder is not None else words.encoder_id
        setting |= {"recipe": recipe.to_dict(), "lexicon": words.hash}
    if recipe is not None or "dense" in baselines:
        model = encoders.load(encoder if encoder is not None else encoders.DEFAULT)
        setting["encoder"] = model.id
    if recipe is not None:
        words.check(model)
        systems[recipe.name] = lambda: latent.search(
            collection, recipe=recipe, lexicon=words, encoder=model, k=depth, progress=progress
        )
    for name in baselines:
        systems[name] = (
            (lambda: rivals.dense(collection, model, k=depth, progress=progress))
            if name == "dense"
            else (lambda: rivals.bm25(collection, k=depth))
        )
    return systems, setting


def _check(baselines: Sequence[str], recipe: Recipe | None, runs: Sequence[str | Path], depth: int) -> None:
    if isinstance(baselines, str):
        raise InputError(f'baselines are a list; given: the string "{baselines}"; write ["{baselines}"]')
    for name in baselines:
        if name not in BASELINES:
            raise NotFoundError(f'no baseline "{name}"; baselines: {", ".join(BASELINES)}')
    if recipe is None and not baselines and not runs:
        raise InputError("nothing to evaluate: give a recipe, baselines or run files")
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
