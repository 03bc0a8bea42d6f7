"""A sweep: one recipe under several settings, each with its quality and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress
from lexent.evaluation.systems import Latent
from lexent.evaluation.trials import Trials
from lexent.nan_safe import plain
from lexent.recipes import Recipe
from lexent.studies.analyses import usage
from lexent.studies.analyses.table import Cell, Table, p_text
from lexent.studies.analyses.usage import Usage

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
        found = {"label": self.label, "values": self.values, **asdict(self.usage), "p_value": plain(self.p_value)}
        return {**found, "recipe": self.recipe.to_dict()}


@dataclass(frozen=True, slots=True)
class Sweep:
    """What changing one thing does."""

    title: str
    collection: str
    split: str
    system: str
    reference: str | None
    """The row that the others are compared with."""
    rows: tuple[Row, ...]
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        head = {"title": self.title, "collection": self.collection, "split": self.split, "system": self.system}
        return {**head, "reference": self.reference, "rows": [row.to_json() for row in self.rows]}

    def tables(self) -> list[Table]:
        """The results as tables."""
        measures = list(self.rows[0].values) if self.rows else []
        tested = ("p",) if self.reference is not None else ()
        rows = []
        for row in self.rows:
            p: tuple[Cell, ...] = (p_text(row.p_value),) if tested else ()
            rows.append((row.label, *row.values.values(), *p, *row.usage.cells))
        against = f"p: paired t-test of {measures[0]} against {self.reference}" if tested and measures else ""
        head = (self.system, *measures, *tested, *usage.HEAD)
        return [Table(self.title, head, tuple(rows), "; ".join(filter(None, (self.note, against))))]


def sweep(
    collection: Collection,
    system: Latent,
    settings: Mapping[str, Recipe],
    *,
    title: str,
    reference: str | None = None,
    note: str = "",
    measures: str | Sequence[str] = MEASURES,
    progress: Progress | None = None,
) -> Sweep:
    """The system under every recipe, by its label. reference: the label to compare with, if it is one of them."""
    trials = Trials(system, collection, measures=measures, progress=progress)
    found: dict[str, tuple[scoring.Scores, Usage]] = {}
    for done, (label, recipe) in enumerate(settings.items(), 1):
        used = usage.of_concepts(trials.scorer(recipe), trials.queries(recipe))
        found[label] = trials.scores(recipe), used
        if progress is not None:
            progress(f"{system.name}, {title}", done, len(settings))
    first = str(trials.measures[0])
    reference = reference if reference in found else None
    rows = []
    for label, (scores, used) in found.items():
        p = None
        if reference is not None and label != reference:
            p = scoring.p_value(scores.per_query[first], found[reference][0].per_query[first])
        rows.append(Row(label, settings[label], scores.means, used, p))
    return Sweep(title, collection.name, collection.split, system.name, reference, tuple(rows), note)
