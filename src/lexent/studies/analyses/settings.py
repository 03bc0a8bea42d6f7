"""Sweeps over the settings of a recipe: k, caps, idf and formula, pruning, and the papers' own settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from lexent.evaluation import cached_vectors, tuning
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress
from lexent.evaluation.systems import Latent
from lexent.recipes import IdfMode, Recipe
from lexent.studies.analyses.sweep import MEASURES, Sweep, sweep
from lexent.types import Kind

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

Measures = str | Sequence[str]


def ks(
    collection: Collection,
    system: Latent,
    *,
    ks: Sequence[int] | None = None,
    measures: Measures = MEASURES,
    progress: Progress | None = None,
) -> Sweep:
    """A lexicon used with each k, no document capped. Texts are encoded once for all of them.

    The document length of a row is how many concepts a document has, its vocabulary how many are live.
    """
    own, lexicon = system.recipe.k, system.lexicon
    rungs = {k for k, _ in lexicon.sae.config.ladder if own / 8 <= k <= 2 * own}
    chosen = ks or sorted({*rungs, own} if rungs else {max(1, round(factor * own)) for factor in K_FACTORS})
    named = {f"k {k}": system.recipe.having(k=k, query_k=None, document_cap=None) for k in chosen}
    sides: dict[Kind, list[str]] = {"document": collection.texts, "query": list(collection.queries.values())}
    common: Any = {"recipes": list(named.values()), "lexicon": lexicon, "encoder": system.encoder, "progress": progress}
    for kind, texts in sides.items():
        cached_vectors.prepare(texts, kind=kind, **common)
    title, note = f"latents a state, lexicon {lexicon.name}", "documents not capped"
    return sweep(
        collection, system, named, title=title, reference=f"k {own}", note=note, measures=measures, progress=progress
    )


def caps(
    collection: Collection,
    system: Latent,
    *,
    caps: Sequence[int | None] = CAPS,
    measures: Measures = MEASURES,
    progress: Progress | None = None,
) -> Sweep:
    """Quality against the most concepts that a document may keep."""
    named = {"all" if cap is None else f"at most {cap}": system.recipe.having(document_cap=cap) for cap in caps}
    title = "concepts a document keeps"
    return sweep(collection, system, named, title=title, reference="all", measures=measures, progress=progress)


def weightings(
    collection: Collection, system: Latent, *, measures: Measures = MEASURES, progress: Progress | None = None
) -> Sweep:
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
    title, reference, note = "idf and formula", f"{name}, idf {own.weighting.idf}", "dot and count leave k2 out"
    return sweep(
        collection, system, distinct, title=title, reference=reference, note=note, measures=measures, progress=progress
    )


def pruning(
    collection: Collection,
    system: Latent,
    *,
    shares: Sequence[float] = SHARES,
    measures: Measures = MEASURES,
    progress: Progress | None = None,
) -> Sweep:
    """Queries that ignore the most frequent share of the collection's concepts."""
    named = {f"without {share:.1%}" if share else "all": system.recipe.having(prune=share) for share in shares}
    title = "without the most frequent concepts"
    return sweep(collection, system, named, title=title, reference="all", measures=measures, progress=progress)


def published(
    collection: Collection,
    system: Latent,
    *,
    train: Collection | None = None,
    measures: Measures = MEASURES,
    progress: Progress | None = None,
) -> Sweep:
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
        common: Any = {"lexicon": system.lexicon, "encoder": system.encoder, "progress": progress}
        found = tuning.tune(train, recipe=own, split=train.split, queries=TUNED_ON, **common)
        settings["tuned"] = found.recipe
        changed = ", ".join(f"{name} {value}" for name, value in found.settings.items()) or "nothing changed"
        note = f"tuned on {train.name} ({train.split}): {changed}"
    title = "untuned and tuned"
    return sweep(
        collection, system, settings, title=title, reference="ours", note=note, measures=measures, progress=progress
    )


def paper_settings(recipe: Recipe) -> Recipe:
    """The recipe as its paper has it; for CL-SR by the k that is nearest."""
    changed = recipe.having(**PAPERS[recipe.level])
    if recipe.level == "pooled":
        changed = changed.having(**CLSR[min(CLSR, key=lambda k: abs(k - recipe.k))])
    return changed
