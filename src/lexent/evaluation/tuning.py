"""Tune: settings of a recipe that rank a train split best, by trying them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from lexent import arguments, recipes
from lexent.errors import InputError
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress, report, reporting
from lexent.evaluation.systems import Bench, EncoderLike, LexiconLike
from lexent.evaluation.training_split import training_split
from lexent.evaluation.trials import Trials
from lexent.nan_safe import plain
from lexent.recipes import Recipe

if TYPE_CHECKING:
    from lexent.evaluation.bucket_training import Learned

Search = Literal["coordinate", "grid"]
Grid = Mapping[str, Sequence[Any]]

GRID: dict[str, tuple[Any, ...]] = {
    "k1": (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0),
    "b": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.25, 1.75, 2.5, 3.0),
    "k2": (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 2.5, 5.0, 10.0, 20.0),
    "idf": ("lucene", "root", "okapi-floor0", "clsr", "none"),
    "formula": ("bm25", "dot", "count"),
    "power": (0.25, 0.35, 0.5, 0.65, 0.8, 1.0),
    "query_power": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2),
    "function_words": (0.0, 0.25, 0.5, 0.75, 1.0),
    "emphasis": (0.0, 0.25, 0.5, 1.0, 1.5),
    "document_cap": (16, 24, 32, 48, 65, 96, 128, 256),
    "query_cap": (8, 16, 32, 64, 128),
    "query_k": (4, 8, 16, 32, 64, 128),
    "words": (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0),
    "rarity": (1.0, 1.5, 2.0, 2.5, 3.0, 4.0),
    "prune": (0.0, 0.001, 0.005, 0.01, 0.02, 0.05),
}
"""What is tried of each setting, beside the recipe's own value."""

OVER = ("k1", "b", "k2", "idf", "power", "query_power")
"""What is tuned where nothing is said: caps cost quality to save space, so they are a choice, not a tuning."""

MIN_GAIN = 1e-4
"""A smaller gain does not change a setting."""
MAX_GRID_TRIALS = 5000
"""Trials of a grid."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting that was tried."""

    settings: dict[str, Any]
    value: float
    """The measure, the mean over the collections."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What tuning found. Values are those of the split that was tuned on, so they flatter."""

    start: Recipe
    recipe: Recipe
    over: tuple[str, ...]
    measure: str
    before: float
    value: float
    p_value: float
    """Paired t-test between both over the queries of all collections."""
    collections: dict[str, tuple[float, float]]
    """Collection (split) to the measure before and after."""
    trials: tuple[Trial, ...]
    """All that was tried, best first."""

    @property
    def settings(self) -> dict[str, Any]:
        """What differs from the recipe's own settings."""
        pairs = {name: (self.start.setting(name), self.recipe.setting(name)) for name in self.over}
        return {name: new for name, (old, new) in pairs.items() if new != old}

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        names = {name: {"before": before, "value": value} for name, (before, value) in self.collections.items()}
        return {
            "recipe": self.recipe.to_dict(),
            "settings": self.settings,
            **{name: plain(getattr(self, name)) for name in ("measure", "before", "value", "p_value")},
            "collections": names,
            "trials": [asdict(trial) for trial in self.trials],
        }


@reporting
def tune(
    collections: str | Path | Collection | Sequence[str | Path | Collection],
    *,
    recipe: str | Recipe = "latent-terms",
    split: str | None = None,
    measure: str = "nDCG@10",
    over: str | Sequence[str] | None = None,
    search: Search = "coordinate",
    grid: Grid | None = None,
    queries: int | None = None,
    lexicon: LexiconLike = None,
    encoder: EncoderLike = None,
    progress: Progress | None = None,
) -> Tuned:
    """The settings of a recipe by which a train or dev split is ranked best; of several collections, by their mean.

    search: "coordinate" tries one setting at a time until none gains, "grid" all combinations. grid: values to try
    instead of our own. queries: at most this many of each collection, drawn evenly. A test split is refused.
    """
    arguments.text_or_none("split", split)
    arguments.function("progress", progress)
    arguments.whole_or_none("queries", queries, least=1)
    over = None if over is None else arguments.names("over", over)
    if grid is not None:
        for name, values in arguments.mapping("grid", grid, allowed='values by setting: {"k1": [1, 2]}').items():
            arguments.items(f'the grid of "{name}"', values, "a list of values")
    start, sought = recipes.get(recipe), scoring.parse(arguments.text("measure", measure))
    if len(sought) != 1:
        raise InputError(f'tuning goes by one measure; given: "{measure}"; write for example nDCG@10')
    given = arguments.one_or_several(
        "collections", collections, (str, Path, Collection), allowed="a collection, or a list of collections"
    )
    for each in given:
        if not isinstance(each, Collection):
            arguments.path("a collection", each, allowed="a BEIR folder, an ir_datasets id or a Collection")
    loaded = [training_split(source, split).with_queries(queries) for source in given]
    if not loaded:
        raise InputError("no collection was given; name a BEIR folder that has a train split")
    bench = Bench(encoder=encoder, lexicon=lexicon)
    system = bench.latent(start)
    values = _values(start, over, grid, search, buckets=system.lexicon.buckets)
    table = _Table([Trials(system, each, measures=measure) for each in loaded], str(sought[0]))
    best = (_by_grid if search == "grid" else _by_coordinates)(start, values, table.value)
    return table.outcome(start, best, over=tuple(values))


@reporting
def predict_buckets(
    collections: Sequence[str | Path | Collection],
    *,
    recipe: str | Recipe = "uhd",
    split: str | None = None,
    queries: int | None = None,
    lexicon: LexiconLike = None,
    encoder: EncoderLike = None,
    progress: Progress | None = None,
) -> Learned:
    """Weights of buckets that depend on the query, learned on a train or dev split; a test split is refused."""
    from lexent.evaluation.bucket_training import learn

    loaded = [training_split(source, split).with_queries(queries) for source in collections]
    system = Bench(encoder=encoder, lexicon=lexicon).latent(recipe)
    return learn([(system, each) for each in loaded])


class _Table:
    """Values of recipes, each tried once."""

    def __init__(self, trials: Sequence[Trials], measure: str) -> None:
        self.trials = trials
        self.measure = measure
        self.found: dict[Recipe, float] = {}

    def value(self, recipe: Recipe) -> float:
        if recipe not in self.found:
            means = [trial.scores(recipe).means[self.measure] for trial in self.trials]
            self.found[recipe] = sum(means) / len(means)
        return self.found[recipe]

    def outcome(self, start: Recipe, best: Recipe, *, over: tuple[str, ...]) -> Tuned:
        shown: dict[str, tuple[float, float]] = {}
        values: tuple[dict[str, float], dict[str, float]] = ({}, {})
        for place, trial in enumerate(self.trials):
            both = trial.scores(start), trial.scores(best)
            name = f"{trial.collection.name} ({trial.collection.split})"
            name = f"{name} #{place + 1}" if name in shown else name
            shown[name] = both[0].means[self.measure], both[1].means[self.measure]
            for found, scores in zip(values, both, strict=True):
                found |= {f"{place} {query}": value for query, value in scores.per_query[self.measure].items()}
        ordered = sorted(self.found.items(), key=lambda pair: -pair[1])
        return Tuned(
            start=start,
            recipe=best,
            over=over,
            measure=self.measure,
            before=self.found[start],
            value=self.found[best],
            p_value=scoring.p_value(*values),
            collections=shown,
            trials=tuple(Trial({name: each.setting(name) for name in over}, value) for each, value in ordered),
        )


Value = Callable[[Recipe], float]


def _by_coordinates(start: Recipe, values: Grid, value: Value) -> Recipe:
    """One setting after the other takes its best value, round after round, until a round changes nothing."""
    best, changed, turn = start, True, 0
    total = sum(map(len, values.values()))
    while changed:
        changed, turn, done = False, turn + 1, 0
        for name, allowed in values.items():
            for recipe in [best.having(**{name: each}) for each in allowed]:
                if value(recipe) > value(best) + MIN_GAIN:
                    best, changed = recipe, True
                done += 1
                report(f"tuning, round {turn}", done, total)
    return best


def _by_grid(start: Recipe, values: Grid, value: Value) -> Recipe:
    """Every combination; the recipe's own settings stay where none is better."""
    best = start
    # Those that need the documents packed again vary slowest.
    names = sorted(values, key=lambda name: name not in ("power", "document_cap"))
    combinations = list(product(*(values[name] for name in names)))
    for done, combination in enumerate(combinations, 1):
        recipe = start.having(**dict(zip(names, combination, strict=True)))
        if value(recipe) > value(best) + MIN_GAIN:
            best = recipe
        report("tuning", done, len(combinations))
    return best


def _values(
    start: Recipe, over: Sequence[str] | None, grid: Grid | None, search: Search, *, buckets: int
) -> dict[str, tuple[Any, ...]]:
    """The values of each setting to try: its grid's and the recipe's own."""
    known = {**GRID, **(grid or {})}
    if buckets > 1:
        from lexent.evaluation.bucket_training import LEVELS

        known["buckets"] = tuple(one for one in product(LEVELS, repeat=buckets) if max(one) == 1)
    names = list(dict.fromkeys(over or grid or OVER))
    for name in names:
        if name not in known:
            more = "; buckets with a lexicon that has several" if name == "buckets" else ""
            raise InputError(f'cannot tune "{name}"; what can be tuned: {", ".join(GRID)}{more}')
    arguments.choice("search", search, get_args(Search))
    values = {name: tuple(dict.fromkeys((*known[name], start.setting(name)))) for name in names}
    for name, allowed in values.items():
        for each in allowed:
            start.having(**{name: each})  # refuses, by name, a value that is not allowed
    combinations = prod(map(len, values.values()))
    if search == "grid" and combinations > MAX_GRID_TRIALS:
        raise InputError(
            f"a grid over {', '.join(names)} has {combinations:,} combinations; allowed: at most "
            f"{MAX_GRID_TRIALS:,}; name fewer settings: --over k1,b; or try one after the other: --search coordinate"
        )
    return values
