"""A sweep: one recipe under several settings, each with its quality and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexent.evaluation import measures as scoring
from lexent.evaluation.progress import Progress
from lexent.evaluation.trials import Trials
from lexent.recipes import Recipe
from lexent.studies.analyses import usage
from lexent.studies.analyses.table import Cell, Table, chance
from lexent.studies.analyses.usage import Usage
from lexent.undefined import plain

MEASURES = ("nDCG@10", "R@100")


@dataclass(frozen=True, slots=True)
class Row:
    """One setting."""

    label: str
    recipe: Recipe
    values: dict[str, float]
    usage: Usage
    p_value: float | None
    """Paired t-test of the first measure against the reference; None for the reference itself."""

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        found = {"label": self.label, "values": self.values, **self.usage.to_json(), "p_value": plain(self.p_value)}
        return {**found, "recipe": self.recipe.to_dict()}


@dataclass(frozen=True, slots=True)
class Sweep:
    """What changing one thing does."""

    title: str
    collection: str
    split: str
    system: str
    reference: str | None
    """The row that the others are held against."""
    rows: tuple[Row, ...]
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        head = {"title": self.title, "collection": self.collection, "split": self.split, "system": self.system}
        return {**head, "reference": self.reference, "rows": [row.to_json() for row in self.rows]}

    def tables(self) -> list[Table]:
        """The results as tables."""
        measures = list(self.rows[0].values) if self.rows else []
        held = ("p",) if self.reference is not None else ()
        head = (self.system, *measures, *held, *usage.HEAD)
        rows = []
        for row in self.rows:
            p: tuple[Cell, ...] = (chance(row.p_value),) if held else ()
            rows.append((row.label, *row.values.values(), *p, *row.usage.cells))
        against = f"p: paired t-test of {measures[0]} against {self.reference}" if held and measures else ""
        return [Table(self.title, head, tuple(rows), "; ".join(part for part in (self.note, against) if part))]


def sweep(
    trials: Trials,
    settings: Mapping[str, Recipe],
    *,
    title: str,
    reference: str | None = None,
    note: str = "",
    progress: Progress | None = None,
) -> Sweep:
    """Every recipe, by its label, on the trials' collection."""
    found: dict[str, tuple[scoring.Scores, Usage]] = {}
    for done, (label, recipe) in enumerate(settings.items(), 1):
        used = usage.of_concepts(trials.scorer(recipe), trials.queries(recipe))
        found[label] = trials.scores(recipe), used
        if progress is not None:
            progress(f"{trials.system.name}, {title}", done, len(settings))
    first = str(trials.measures[0])
    against = None if reference is None else found[reference][0].per_query[first]
    rows = tuple(
        Row(
            label=label,
            recipe=settings[label],
            values=scores.means,
            usage=used,
            p_value=None
            if against is None or label == reference
            else scoring.p_value(scores.per_query[first], against),
        )
        for label, (scores, used) in found.items()
    )
    place = trials.collection
    return Sweep(title, place.name, place.split, trials.system.name, reference, rows, note)


def distinct(settings: Sequence[tuple[str, Recipe]]) -> dict[str, Recipe]:
    """By label; of settings that come out the same the first."""
    found: dict[str, Recipe] = {}
    for label, recipe in settings:
        if recipe not in found.values():
            found[label] = recipe
    return found
