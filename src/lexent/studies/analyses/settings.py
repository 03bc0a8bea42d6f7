"""Sweeps over the settings of a recipe (k, caps, idf and formula, pruning, the papers' own): quality and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from lexent.evaluation import cached_vectors, tuning
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import report
from lexent.evaluation.systems import Latent
from lexent.evaluation.trials import Trials
from lexent.nan_safe import p_text, plain
from lexent.recipes import IdfMode, Recipe
from lexent.studies.analyses import usage
from lexent.studies.analyses.table import Cell, Table
from lexent.studies.analyses.usage import Usage

MEASURES = ("nDCG@10", "R@100")
CAPS: tuple[int | None, ...] = (8, 16, 24, 32, 48, 65, 96, 128, 256, None)
SHARES = (0.0, 0.001, 0.01, 0.05)
K_FACTORS = (0.25, 0.5, 1.0, 2.0)
"""Of the recipe's own k; a lexicon of thresholds is tried with the k that it has them for."""
TUNED_ON = 500
"""Queries of the train split that a sweep tunes on: enough to settle a few numbers."""

PAPERS: dict[str, dict[str, Any]] = {
    "tokens": {
        "k1": 8.0,
        "b": 0.7,
        "idf": "okapi",
        "formula": "bm25",
        "k2": None,
        "power": 0.5,
        "query_power": 0.5,
        "function_words": 1.0,
        "emphasis": 0.0,
        "document_cap": None,
        "query_cap": None,
        "prune": 0.0,
    },
    "pooled": {"idf": "clsr", "formula": "bm25", "power": 1.0, "query_power": None, "query_cap": None, "prune": 0.0},
}
"""The settings that the papers print: Latent Terms over token states, CL-SR over pooled ones."""

CLSR: dict[int, dict[str, Any]] = {
    32: {"k1": 0.6, "b": 1.75, "k2": 2.5, "document_cap": 24},
    48: {"k1": 0.6, "b": 1.25, "k2": 2.0, "document_cap": None},
    64: {"k1": 0.4, "b": 0.75, "k2": 2.5, "document_cap": None},
    128: {"k1": 0.2, "b": 3.0, "k2": 0.5, "document_cap": 65},
}
"""CL-SR's own by k, tuned by its authors for SimLM, whose activations are on another scale."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Recipes to compare, by label."""

    title: str
    recipes: dict[str, Recipe]
    reference: str
    """The label to compare with, if it is one of them."""
    note: str = ""


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
    collection: Collection, system: Latent, settings: Settings, *, measures: str | Sequence[str] = MEASURES
) -> Sweep:
    """The system under every recipe. Texts are encoded once for all of them."""
    trials = Trials(system, collection, measures=measures)
    cached_vectors.prepare(collection, system.pipeline, settings.recipes.values())
    found: dict[str, tuple[scoring.Scores, Usage]] = {}
    for done, (label, recipe) in enumerate(settings.recipes.items(), 1):
        found[label] = trials.scores(recipe), usage.of_concepts(trials.scorer(recipe), trials.queries(recipe))
        report(f"{system.name}, {settings.title}", done, len(settings.recipes))
    reference = settings.reference if settings.reference in found else None
    rows = []
    for label, (scores, used) in found.items():
        p = scores.first_p(found[reference][0]) if reference is not None and label != reference else None
        rows.append(Row(label, settings.recipes[label], scores.means, used, p))
    return Sweep(settings.title, collection.name, collection.split, system.name, reference, tuple(rows), settings.note)


def ks(system: Latent, ks: Sequence[int] | None = None) -> Settings:
    """A lexicon used with each k, no document capped.

    The document length of a row is how many concepts a document has, its vocabulary how many are live.
    """
    own, lexicon = system.recipe.k, system.lexicon
    rungs = {k for k, _ in lexicon.sae.config.ladder if own / 8 <= k <= 2 * own}
    chosen = ks or sorted({*rungs, own} if rungs else {max(1, round(factor * own)) for factor in K_FACTORS})
    named = {f"k {k}": system.recipe.having(k=k, query_k=None, document_cap=None) for k in chosen}
    return Settings(f"latents a state, lexicon {lexicon.name}", named, f"k {own}", "documents not capped")


def caps(system: Latent, caps: Sequence[int | None] = CAPS) -> Settings:
    """The most concepts that a document may keep."""
    return capped(system.recipe, "document_cap", caps, title="concepts a document keeps")


def capped(recipe: Recipe, name: str, caps: Sequence[int | None], *, title: str) -> Settings:
    """The setting of that name with each cap, against all that there is."""
    named = {"all" if cap is None else f"at most {cap}": recipe.having(**{name: cap}) for cap in caps}
    return Settings(title, named, "all")


def weightings(system: Latent) -> Settings:
    """The recipe with each form of idf and without, beside plain products and counts of shared concepts."""
    own = system.recipe
    name = own.weighting.formula
    # A recipe without idf is compared with its paper's.
    idf = PAPERS[own.level]["idf"] if own.weighting.idf == "none" else own.weighting.idf
    settings = [(f"{name}, idf {mode}", own.having(idf=mode)) for mode in get_args(IdfMode)]
    for formula in ("dot", "count"):
        plain = own.having(formula=formula, k2=None, idf=idf)
        settings += [(f"{formula}, idf {idf}", plain), (f"{formula}, idf none", plain.having(idf="none"))]
    distinct: dict[str, Recipe] = {}
    for label, recipe in settings:
        if recipe not in distinct.values():
            distinct[label] = recipe
    return Settings("idf and formula", distinct, f"{name}, idf {own.weighting.idf}", "dot and count leave k2 out")


def pruning(system: Latent, shares: Sequence[float] = SHARES) -> Settings:
    """Queries that ignore the most frequent share of the collection's concepts."""
    named = {f"without {share:.1%}" if share else "all": system.recipe.having(prune=share) for share in shares}
    return Settings("without the most frequent concepts", named, "all")


def published(system: Latent, train: Collection | None = None) -> Settings:
    """The paper's own settings, ours, and those tuned on a train split; each by BM25 and by plain products.

    train: a split to tune on, never the one that is reported.
    """
    own, paper = system.recipe, paper_settings(system.recipe)
    dot: dict[str, Any] = {"formula": "dot", "k2": None}
    settings = {
        "the paper's": paper,
        "the paper's, idf lucene": paper.having(idf="lucene"),
        "the paper's, dot": paper.having(**dot),
        "the paper's, dot, no idf": paper.having(**dot, idf="none"),
        "ours": own,
        "ours, dot": own.having(**dot),
        "ours, dot, no idf": own.having(**dot, idf="none"),
    }
    note = "no train split to tune on"
    if train is not None:
        common: Any = {"lexicon": system.lexicon, "encoder": system.encoder}
        found = tuning.tune(train, recipe=own, split=train.split, queries=TUNED_ON, **common)
        settings["tuned"] = found.recipe
        changed = ", ".join(f"{name} {value}" for name, value in found.settings.items()) or "nothing changed"
        note = f"tuned on {train.name} ({train.split}): {changed}"
    return Settings("untuned and tuned", settings, "ours", note)


def paper_settings(recipe: Recipe) -> Recipe:
    """The recipe as its paper has it; for CL-SR by the k that is nearest."""
    changed = recipe.having(**PAPERS[recipe.level])
    if recipe.level == "pooled":
        changed = changed.having(**CLSR[min(CLSR, key=lambda k: abs(k - recipe.k))])
    return changed
