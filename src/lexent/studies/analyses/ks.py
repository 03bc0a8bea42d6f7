"""The k sweep: one lexicon with fewer and more latents a state, or several lexicons."""

from __future__ import annotations

from collections.abc import Sequence

from lexent.evaluation import latent
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress
from lexent.evaluation.systems import Latent
from lexent.evaluation.trials import Trials
from lexent.studies.analyses.sweep import MEASURES, Sweep, sweep
from lexent.types import Kind

FACTORS = (0.25, 0.5, 1.0, 2.0)
"""Of the recipe's own k; a lexicon of thresholds is tried with the k that it has them for."""


def ks(
    collection: Collection,
    system: Latent,
    *,
    ks: Sequence[int] | None = None,
    measures: str | Sequence[str] = MEASURES,
    progress: Progress | None = None,
) -> Sweep:
    """A lexicon used with each k, no document capped. Texts are encoded once for all of them.

    The document length of a row is how many concepts a document has, its vocabulary how many are live.
    """
    own = system.recipe.k
    rungs = {k for k, _ in system.lexicon.sae.config.ladder if own / 8 <= k <= 2 * own}
    chosen = ks or sorted({*rungs, own} if rungs else {max(1, round(factor * own)) for factor in FACTORS})
    recipes = {f"k {k}": system.recipe.having(k=k, query_k=None, document_cap=None) for k in chosen}
    sides: dict[Kind, list[str]] = {"document": collection.texts, "query": list(collection.queries.values())}
    for kind, texts in sides.items():
        latent.prepare(
            texts,
            kind=kind,
            recipes=list(recipes.values()),
            lexicon=system.lexicon,
            encoder=system.encoder,
            progress=progress,
        )
    trials = Trials(system, collection, measures=measures, progress=progress)
    title = f"latents a state, lexicon {system.lexicon.name}"
    reference = f"k {own}" if own in chosen else None
    return sweep(trials, recipes, title=title, reference=reference, note="documents not capped", progress=progress)
