"""Several analyses of one collection in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from lexent import recipes
from lexent.errors import InputError, NotFoundError
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.progress import Progress, reporting
from lexent.evaluation.systems import BASELINES, Bench, EncoderLike, Latent, LexiconLike, System
from lexent.evaluation.training_split import training_split, training_split_beside
from lexent.recipes import Recipe
from lexent.studies.analyses import settings
from lexent.studies.analyses.mismatch import mismatch
from lexent.studies.analyses.settings import MEASURES, Settings, sweep
from lexent.studies.analyses.table import Analysis
from lexent.studies.analyses.usage import costs
from lexent.studies.analyses.vocabulary import categories, zipf


@dataclass(frozen=True, slots=True)
class Subject:
    """What is analysed, and how."""

    collection: Collection
    train: Collection | None
    systems: tuple[Latent, ...]
    baselines: tuple[System, ...]
    measures: tuple[str, ...]

    def each(self, settings: Callable[[Latent], Settings]) -> list[Analysis]:
        """A sweep of every recipe over its settings."""
        common: Any = {"measures": self.measures}
        return [sweep(self.collection, system, settings(system), **common) for system in self.systems]

    def together(self, analysis: Callable[..., Analysis]) -> list[Analysis]:
        """An analysis of all systems side by side."""
        systems = [*self.systems, *self.baselines]
        return [analysis(self.collection, systems, measures=self.measures)]


ANALYSES: dict[str, Callable[[Subject], list[Analysis]]] = {
    "mismatch": lambda subject: subject.together(mismatch),
    "cost": lambda subject: subject.together(costs),
    "caps": lambda subject: subject.each(settings.caps),
    "idf": lambda subject: subject.each(settings.weightings),
    "prune": lambda subject: subject.each(settings.pruning),
    "tuned": lambda subject: subject.each(partial(settings.published, train=subject.train)),
    "k": lambda subject: subject.each(settings.ks),
    "zipf": lambda subject: [zipf(subject.collection, subject.systems)],
    "categories": lambda subject: [categories(subject.collection, system) for system in subject.systems],
}
"""By the names that `lexent analyse --what` takes."""

QUICK = ("mismatch", "cost", "caps", "idf", "prune", "zipf", "categories")
"""Those that need nothing encoded beside the collection itself."""


@dataclass(frozen=True, slots=True)
class Analyses:
    """What was found, by the name of the analysis; one part a recipe where recipes are analysed one by one."""

    collection: str
    split: str
    documents: int
    queries: int
    parts: dict[str, list[Analysis]]

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        head = {"collection": self.collection, "split": self.split, "documents": self.documents}
        found = {name: [part.to_json() for part in parts] for name, parts in self.parts.items()}
        return {**head, "queries": self.queries, **found}


@reporting
def analyse(
    collection: str | Path | Collection,
    *,
    what: Sequence[str] = QUICK,
    recipe: str | Recipe | Sequence[str | Recipe] = "latent-terms",
    lexicon: LexiconLike = None,
    encoder: EncoderLike = None,
    baselines: Sequence[str] = BASELINES,
    measures: str | Sequence[str] = MEASURES,
    split: str | None = None,
    train: str | Collection | None = "train",
    progress: Progress | None = None,
) -> Analyses:
    """The analyses of that name, of one or several recipes. train: the split that "tuned" tunes on, if there is one."""
    names = checked(what)
    wanted = tuple(str(measure) for measure in scoring.parse(measures))
    chosen = [recipes.get(each) for each in ([recipe] if isinstance(recipe, str | Recipe) else recipe)]
    if not chosen:
        raise InputError(f"no recipe was given; recipes: {', '.join(recipes.RECIPES)}")
    loaded = load(collection, split=split)
    bench = Bench(encoder=encoder, lexicon=lexicon)
    subject = Subject(
        collection=loaded,
        train=_train(collection, loaded, train) if "tuned" in names else None,
        systems=tuple(bench.concepts_alone(each) for each in chosen),
        baselines=tuple(bench.system(name) for name in baselines),
        measures=wanted,
    )
    parts = {name: ANALYSES[name](subject) for name in names}
    return Analyses(loaded.name, loaded.split, len(loaded.documents), len(loaded.queries), parts)


def checked(what: Sequence[str]) -> list[str]:
    """The names of analyses; "all" stands for all."""
    names = list(ANALYSES) if "all" in what else list(dict.fromkeys(what))
    for name in names:
        if name not in ANALYSES:
            near = get_close_matches(name, ANALYSES, n=1)
            hint = f'did you mean "{near[0]}"? ' if near else ""
            raise NotFoundError(f'no analysis "{name}"; {hint}analyses: {", ".join(ANALYSES)}, or all')
    if not names:
        raise InputError(f"no analysis was given; analyses: {', '.join(ANALYSES)}, or all")
    return names


def _train(source: str | Path | Collection, measured: Collection, train: str | Collection | None) -> Collection | None:
    if isinstance(train, Collection):
        return training_split(train)
    return None if train is None else training_split_beside(source, measured, train)
