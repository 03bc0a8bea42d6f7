"""Trials: one collection, represented once, and searched under one setting after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lexent.bounded_cache import BoundedCache
from lexent.evaluation import measures as scoring
from lexent.evaluation.collection_words import CollectionWords
from lexent.evaluation.collections import Collection
from lexent.evaluation.passages import CutCollection
from lexent.evaluation.runs import Run, from_top
from lexent.evaluation.systems import Latent
from lexent.indexing.segment import Segment
from lexent.recipes import Recipe
from lexent.search.document_scorer import DocumentScorer, packed
from lexent.types import Kind, SparseVectors

TIED_DEPTH = 1000
"""The least depth where many documents have equal scores."""
MAX_PACKED_FORMS = 3
"""Packed forms that are held at a time: tuning goes back and forth between few."""


class Trials:
    """What a system finds in a collection under other settings of its recipe.

    Documents are packed again only when the transform or their cap changes, texts are encoded again only when the
    settings up to pooling do, and then from the cache where they are.
    """

    def __init__(
        self, system: Latent, collection: Collection, *, measures: str | Sequence[str], depth: int | None = None
    ) -> None:
        """depth: how many documents a query gets; as many as the measures look at where it is not given.

        Winners have many ties: there it is deeper, so that which of equal documents count is not decided by a cut.
        """
        self.system = system
        self.collection = collection
        self._cut = CutCollection.of(collection, system.encoder, system.recipe)
        self.measures = scoring.parse(measures)
        self.depth = depth or max(scoring.depth(self.measures), TIED_DEPTH if system.recipe.winners else 1)
        # Vectors of one form are large enough.
        self._pooled: dict[Kind, BoundedCache[Any, SparseVectors]] = {
            "document": BoundedCache(1),
            "query": BoundedCache(1),
        }
        self._packed: BoundedCache[Any, Segment] = BoundedCache(MAX_PACKED_FORMS)

    def scorer(self, recipe: Recipe) -> DocumentScorer:
        """The collection's passages under a recipe, as an index has them."""
        vectors, words = self._represented(recipe, "document"), CollectionWords.of(self._cut.searched, recipe)
        written = recipe.language if recipe.words else None
        key = (*_up_to_pooling(recipe, "document"), recipe.power, recipe.document_cap, recipe.binary, written)
        segment = self._packed.get_or_make(
            key, lambda: packed(vectors, recipe, words=None if words is None else words.documents)
        )
        return DocumentScorer([segment], recipe, size=segment.size, concepts=vectors.size)

    def queries(self, recipe: Recipe) -> SparseVectors:
        """The collection's queries, transformed and capped, not yet times idf."""
        system, words = replace(self.system, recipe=recipe), CollectionWords.of(self._cut.searched, recipe)
        vectors = system.pipeline.query_vectors(self._represented(recipe, "query"))
        return vectors if words is None else words.beside(vectors, recipe)

    def run(self, recipe: Recipe) -> Run:
        """What `evaluate` finds with the recipe."""
        depth = self._cut.depth(self.depth)
        found = self.scorer(recipe).top(self.queries(recipe), depth + 1)
        run = from_top(self._cut.searched, found.positions, scores=found.scores, depth=depth)
        return self._cut.documents(run, depth=self.depth)

    def scores(self, recipe: Recipe) -> scoring.Scores:
        """The measures of each query under a recipe."""
        return scoring.score(self.collection.qrels, self.run(recipe), self.measures)

    def _represented(self, recipe: Recipe, kind: Kind) -> SparseVectors:
        texts = self._cut.searched.texts if kind == "document" else self.collection.query_texts
        pooled = replace(self.system, recipe=recipe).pooled
        return self._pooled[kind].get_or_make(_up_to_pooling(recipe, kind), lambda: pooled(texts, kind=kind))


def _up_to_pooling(recipe: Recipe, kind: Kind) -> tuple[Any, ...]:
    """The settings that the pooled vectors depend on."""
    common = (kind, recipe.k_for(kind), recipe.pool, recipe.specials, recipe.punctuation, recipe.unit)
    return common if kind == "document" else (*common, recipe.function_words, recipe.emphasis)
