"""Evaluate: a recipe, its baselines and existing run files on one collection, by the same measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

from lexent import arguments, recipes
from lexent.errors import InputError, NotFoundError
from lexent.evaluation import measures as scoring
from lexent.evaluation import runs as trec
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.overlap import Part, parts_of, train_groups
from lexent.evaluation.passages import Runner
from lexent.evaluation.progress import Progress, reporting
from lexent.evaluation.runs import Run, fused, ranked
from lexent.evaluation.systems import (
    ADAPTED,
    BASELINES,
    AdapterLike,
    Bench,
    Dense,
    EncoderLike,
    Expanded,
    LexiconLike,
    RecipeSystem,
    System,
    learns,
)
from lexent.nan_safe import plain
from lexent.recipes import Recipe
from lexent.search.feedback import Feedback
from lexent.search.fusion import WEIGHTS, Fusion, Method

MEASURES = ("nDCG@10", "R@100")


@dataclass(frozen=True, slots=True)
class Gain:
    """What a system that is made of others gains over the best of them."""

    against: str
    """The best of them, by this measure."""
    difference: float
    p: float
    """Of the paired t-test between the two; NaN where it is not defined."""


@dataclass(frozen=True, slots=True)
class Report:
    """The values of every system on one collection."""

    collection: str
    split: str
    documents: int
    queries: int
    """How many were run: those with judgements."""
    systems: dict[str, dict[str, float]]
    """System to measure to value; the recipe first, then baselines, then run files."""
    per_query: dict[str, scoring.PerQuery]
    """System to measure to query id to value."""
    p_values: dict[str, dict[str, float]]
    """System to measure to the paired t-test against `compared_with`; NaN where it is not defined."""
    compared_with: str | None
    seconds: dict[str, float]
    """System to the time it took, encoding included where nothing was cached."""
    gains: dict[str, dict[str, Gain]] = field(default_factory=dict)
    """System to measure to its gain: of fused systems over their parts, of feedback over the same without."""
    setting: dict[str, Any] = field(default_factory=dict)
    """The encoder, lexicon and recipe that were used."""
    missing: int = 0
    """Judged documents that the collection does not hold."""
    trained: tuple[str, ...] = ()
    """Systems that learned from judged queries."""
    parts: dict[str, Part] = field(default_factory=dict)
    """Where a system learned from judged queries and the collection has a train split: the values by what that split
    has seen of a query. New queries come first, and their figures are the headline; all of them come last."""

    def to_json(self, *, per_query: bool = False) -> dict[str, Any]:
        """Plain values for json.dumps, None where a p-value is not defined. Single queries on demand: they are many."""
        arguments.flag("per_query", per_query)
        found = asdict(self)
        single, setting, missing = (found.pop(name) for name in ("per_query", "setting", "missing"))
        found["seconds"] = {name: round(seconds, 3) for name, seconds in self.seconds.items()}
        whole: dict[str, Any] = plain({**found, "missing_documents": missing, **setting})
        return {**whole, "per_query": plain(single)} if per_query else whole


@reporting
def evaluate(
    collection: str | Path | Collection,
    *,
    recipe: str | Recipe | Sequence[str | Recipe] | None = recipes.DEFAULT,
    lexicon: LexiconLike = None,
    encoder: EncoderLike = None,
    baselines: str | Sequence[str] = BASELINES,
    measures: str | Sequence[str] = MEASURES,
    runs: str | Path | Sequence[str | Path] = (),
    split: str | None = None,
    depth: int = 1000,
    fuse: str | Sequence[str] | Mapping[str, float | None] = (),
    fusion: Method = "sum",
    feedback: Feedback | int | None = None,
    adapter: AdapterLike = None,
    run_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """How good a recipe's rankings are, beside its baselines' and those of existing TREC run files.

    collection: a BEIR folder, an ir_datasets id or a Collection. recipe: one or several; None evaluates only the
    others. lexicon: used by the recipes of its level; others take the shipped one for them.
    depth: how many documents each system returns for a query. fuse: what to fuse each recipe with, by name: baselines,
    recipes or run files; a mapping gives weights (the recipe's own is 1). feedback: also evaluate each recipe with
    relevance feedback. adapter: evaluate its system, imrnn, too. run_dir: where to write the systems' run files.
    progress: gets how many texts are encoded.
    Where a system learned from judged queries, `parts` has the values of test queries that are new to its train split.
    Recipes read documents to their ends, by passages, as an index does; so does the dense baseline. BM25 takes whole
    texts. p-values are against the first baseline; those of `gains`, of a fused system against the best of its parts
    and of one with feedback against the same without.
    """
    # Everything that can be refused at once, before the long work.
    if not isinstance(collection, Collection):
        arguments.path("collection", collection, allowed="a BEIR folder, an ir_datasets id or a Collection")
    arguments.text_or_none("split", split)
    arguments.function("progress", progress)
    if run_dir is not None:
        arguments.path("run_dir", run_dir)
    wanted = scoring.parse(arguments.names("measures", measures))
    given_recipes = arguments.one_or_several(
        "recipe", () if recipe is None else recipe, (str, Recipe), allowed="a recipe, a list of recipes, or None"
    )
    baselines = arguments.names("baselines", baselines)
    given = arguments.one_or_several("runs", runs, (str, Path), allowed="a run file, or a list of run files")
    files = [arguments.path("runs", path) for path in given]
    arguments.choice("fusion", fusion, get_args(Method))
    if adapter is not None and not hasattr(adapter, "project"):
        arguments.path("adapter", adapter, allowed="the folder of an adapter, or an Adapter")
    chosen = [recipes.get(each) for each in given_recipes]
    _check(baselines, chosen, files, depth)
    learned = None if feedback is None else Feedback.of(feedback)
    named = dict(fuse) if isinstance(fuse, Mapping) else dict.fromkeys(arguments.names("fuse", fuse))
    weights = {name: WEIGHTS[fusion].get(name, 1.0) if weight is None else weight for name, weight in named.items()}
    joined = Fusion(fusion, weights)
    known = [recipe.name for recipe in chosen]
    known += [f"{name}+{learned.method}" for name in known] if learned else []
    known += [*([] if adapter is None else [ADAPTED]), *BASELINES, *(_run_name(path, files) for path in files)]
    groups = _groups(chosen, weights, known)
    baselines = list(dict.fromkeys([*baselines, *(name for name in weights if name in BASELINES)]))
    loaded = load(collection, split=split)
    found: dict[str, Run] = {_run_name(path, files): _read_run(path, loaded) for path in files}

    systems = _systems(chosen, baselines, lexicon=lexicon, encoder=encoder, feedback=learned, adapter=adapter)
    made: dict[str, Run] = {}
    seconds: dict[str, float] = {}

    def run(name: str, make: Callable[[], Run]) -> None:
        start = perf_counter()
        made[name] = make()
        seconds[name] = perf_counter() - start
        if run_dir is not None:
            place = f"{loaded.name}-{loaded.split}-{name}.run".replace("/", "-").replace(":", "-")
            trec.write(made[name], Path(run_dir) / place, tag=name)

    runner = Runner(loaded, systems)
    for system in systems:
        run(system.name, partial(runner.run, system, depth=depth))
    beside = {system.name: [system.first.name] for system in systems if isinstance(system, Expanded)}
    for group in groups:
        name = f"{joined.method}:{'+'.join(group)}"
        beside[name] = group
        run(name, partial(_fused, {part: {**made, **found}[part] for part in group}, joined, depth=depth))

    scores = {name: scoring.score(loaded.qrels, run, wanted) for name, run in {**made, **found}.items()}
    first = baselines[0] if baselines else None
    trained = [system.name for system in systems if learns(system)]
    trained += [name for name, parts in beside.items() if name not in trained and set(parts) & set(trained)]
    return Report(
        collection=loaded.name,
        split=loaded.split,
        documents=len(loaded.documents),
        queries=len(loaded.queries),
        systems={name: score.means for name, score in scores.items()},
        per_query={name: score.per_query for name, score in scores.items()},
        p_values=scoring.p_values(scores, first),
        compared_with=first,
        seconds=seconds,
        gains={name: _gains(name, parts, scores) for name, parts in beside.items()},
        setting=_setting(systems)
        | ({"fusion": asdict(joined)} if groups else {})
        | ({"feedback": asdict(learned)} if learned else {}),
        missing=loaded.missing,
        trained=tuple(trained),
        parts=parts_of(train_groups(collection, loaded) if trained else {}, scores, first),
    )


def _fused(runs: Mapping[str, Run], fusion: Fusion, *, depth: int) -> Run:
    """The best `depth` documents of each run, fused: a run file may be deeper."""
    cut = {name: {query: dict(ranked(results)[:depth]) for query, results in run.items()} for name, run in runs.items()}
    return fused(cut, fusion, depth=depth)


def _groups(chosen: Sequence[Recipe], fuse: Mapping[str, float], known: Sequence[str]) -> list[list[str]]:
    """The systems to fuse: each recipe with those that were named, or those alone where there is no recipe."""
    for name in fuse:
        if name not in known:
            raise NotFoundError(f'nothing named "{name}" to fuse; what there is: {", ".join(dict.fromkeys(known))}')
    if not fuse:
        return []
    groups = [list(dict.fromkeys([recipe.name, *fuse])) for recipe in chosen] or [list(fuse)]
    if any(len(group) < 2 for group in groups):
        raise InputError(f"fusion takes two systems or more; given: {', '.join(groups[0])}; add dense or bm25")
    return list({frozenset(group): group for group in reversed(groups)}.values())[::-1]  # the same parts once


def _systems(
    chosen: Sequence[Recipe],
    baselines: Sequence[str],
    *,
    lexicon: LexiconLike,
    encoder: EncoderLike,
    feedback: Feedback | None,
    adapter: AdapterLike,
) -> list[System]:
    bench = Bench(encoder=encoder, lexicon=lexicon, adapter=adapter)
    if bench.given is not None and chosen and bench.given.info.level not in {recipe.level for recipe in chosen}:
        bench.given.check(bench.encoder, level=chosen[0].level)
    own = [bench.recipe(recipe) for recipe in chosen]
    learned = [Expanded(bench.latent(recipe), feedback) for recipe in chosen] if feedback else []
    adapted = [] if adapter is None else [bench.adapted()]
    return [*own, *learned, *adapted, *(bench.system(name) for name in baselines)]


def _setting(systems: Sequence[System]) -> dict[str, Any]:
    """What the systems use; of several recipes, each by its name."""
    found: dict[str, Any] = {}
    latent = [system for system in systems if isinstance(system, RecipeSystem)]
    for system in systems:
        if isinstance(system, RecipeSystem | Dense):
            found["encoder"] = system.encoder.id
    if len(latent) == 1:
        found |= {"recipe": latent[0].recipe.to_dict(), "lexicon": latent[0].lexicon.hash}
    elif latent:
        found["recipes"] = {system.name: system.recipe.to_dict() for system in latent}
        found["lexicons"] = {system.name: system.lexicon.hash for system in latent}
    return found


def _check(baselines: Sequence[str], chosen: Sequence[Recipe], runs: Sequence[Path], depth: int) -> None:
    for name in baselines:
        if name not in BASELINES:
            raise NotFoundError(f'no baseline "{name}"; baselines: {", ".join(BASELINES)}')
    if not chosen and not baselines and not runs:
        raise InputError("nothing to evaluate: give a recipe, baselines or run files")
    names = [recipe.name for recipe in chosen]
    if len(set(names)) < len(names):
        raise InputError(f"recipes are told apart by their names; given: {', '.join(names)}")
    arguments.whole("depth", depth, least=1)


def _read_run(path: Path, collection: Collection) -> Run:
    run = trec.read(path, known=collection.positions.keys() | collection.queries.keys())
    if not run.keys() & collection.queries.keys():
        raise InputError(
            f'{path}: none of its queries, such as "{next(iter(run))}", is judged in {collection.name} '
            f'({collection.split}), which has "{next(iter(collection.queries))}"; check collection and --split'
        )
    return run


def _run_name(path: Path, runs: Sequence[Path]) -> str:
    """The file's name without endings, or the whole path where that names two systems."""
    stem = path.name.removesuffix(".gz").removesuffix(".run").removesuffix(".trec").removesuffix(".txt")
    same = [other for other in runs if other.name == path.name]
    return stem if len(same) == 1 and stem not in (*BASELINES, ADAPTED, *recipes.RECIPES) else str(path)


def _gains(name: str, parts: Sequence[str], scores: dict[str, scoring.Scores]) -> dict[str, Gain]:
    """By measure: how far a system is above the best of its parts."""
    found = {}
    for measure, value in scores[name].means.items():
        best = max(parts, key=lambda part: scores[part].means[measure])
        p = scoring.p_value(scores[name].per_query[measure], scores[best].per_query[measure])
        found[measure] = Gain(best, value - scores[best].means[measure], p)
    return found
