"""An index at one moment, to be searched and explained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent import recipes
from lexent.errors import InputError
from lexent.indexing.filters import Filter
from lexent.indexing.segment import Deleted, repacked
from lexent.indexing.snapshot import Snapshot
from lexent.recipes import Recipe
from lexent.search import steering
from lexent.search.parts import Parts
from lexent.search.query import Query
from lexent.search.results import Hit, QueryConcept, Results
from lexent.search.searcher import Masks, Searcher
from lexent.types import SparseVectors
from lexent.weighting import bm25, transform

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

Where = dict[str, Any]
"""A filter on metadata, for example {"year": {"gte": 2019}, "lang": "en"}; see `lexent.indexing.filters`."""
Settings = dict[str, Any]
"""Recipe settings by name, for example {"k1": 3, "b": 0.4}."""


class View:
    """An index as it was at one moment: what a search and its explanations read. It never changes."""

    def __init__(self, snapshot: Snapshot, parts: Parts, *, settings: Settings | None = None) -> None:
        self.path = snapshot.path
        self.manifest = snapshot.manifest
        self.documents = snapshot
        self.parts = parts
        stored = Recipe.from_dict(self.manifest.recipe)
        self.recipe = recipes.retuned(stored, settings or {})
        segments, deleted = snapshot.segments, snapshot.deleted
        if (self.recipe.power, self.recipe.document_cap) != (stored.power, stored.document_cap):
            segments = tuple(repacked(segment, self.recipe) for segment in segments)
            pairs = zip(segments, deleted, strict=True)
            deleted = tuple(None if gone is None else Deleted.of(segment, gone.mask) for segment, gone in pairs)
        self.searcher = Searcher(segments, self.recipe, size=self.manifest.lexicon.size, deleted=deleted)

    @property
    def encoder(self) -> Encoder:
        return self.parts.encoder

    @property
    def lexicon(self) -> Lexicon:
        return self.parts.lexicon

    def __len__(self) -> int:
        return self.manifest.counts.documents

    def search_many(
        self,
        queries: Sequence[str],
        *,
        k: int,
        steer: steering.Steer | None = None,
        where: Where | None = None,
        idf_of_subset: bool = False,
    ) -> list[Results]:
        if k < 0:
            raise InputError(f"k is {k}; allowed: 0 or more")
        vectors = self._represent(queries, steer)
        allowed = None if not where else self.documents.matching(Filter.of(where))
        weights = self.searcher.query_weights(vectors)
        if allowed is not None and idf_of_subset:
            weights = self._weighed_within(vectors, allowed)
        made = [Query.of(text, weights.take(np.array([row]))) for row, text in enumerate(queries)]
        return self._results(made, k, allowed)

    def query(self, text: str, *, steer: steering.Steer | None = None) -> Query:
        """A query with its final weights."""
        return Query.of(text, self.searcher.query_weights(self._represent([text], steer)))

    def concepts(self, query: Query) -> list[QueryConcept]:
        """The concepts of a query, strongest first."""
        found = [
            QueryConcept(concept, self.lexicon.label(concept), weight)
            for concept, weight in zip(query.ids.tolist(), query.weights.tolist(), strict=True)
        ]
        return sorted(found, key=lambda concept: (-abs(concept.weight), concept.id))

    def _represent(self, queries: Sequence[str], steer: steering.Steer | None = None) -> SparseVectors:
        from lexent.pipeline import represent

        for place, query in enumerate(queries):
            if not query.strip():
                which = f" (number {place + 1} of {len(queries)})" if len(queries) > 1 else ""
                raise InputError(f'the query{which} is empty; type some words, for example "sort a list"')
        recipe = self.recipe
        pooled = represent(queries, kind="query", encoder=self.encoder, lexicon=self.lexicon, recipe=recipe)
        vectors = transform(pooled, power=recipe.power_for("query"), cap=recipe.query_cap)
        return steering.steered(vectors, steer, lexicon=self.lexicon) if steer else vectors

    def _weighed_within(self, vectors: SparseVectors, allowed: Masks) -> SparseVectors:
        """The queries' weights with the idf that the allowed documents alone would give."""
        ids = np.unique(vectors.ids)
        df = np.zeros_like(self.searcher.df)
        df[ids] = self.searcher.df_within(ids, allowed)
        n_allowed = self.searcher.n_allowed(allowed)
        factors = bm25.query_factors(df, n_allowed, self.recipe.weighting, prune=0)
        factors[self.searcher.factors == 0] = 0  # what the recipe prunes stays out
        return self.searcher.query_weights(vectors, factors=factors)

    def _results(self, queries: Sequence[Query], k: int, allowed: Masks | None) -> list[Results]:
        size = self.manifest.lexicon.size
        vectors = SparseVectors.concatenate([query.vectors(size) for query in queries], size=size)
        found = self.searcher.top_weighted(vectors, k, allowed=allowed)
        return [
            Results(
                query=query.text,
                concepts=tuple(self.concepts(query)),
                hits=tuple(self._hits(query, found.positions[row], found.scores[row])),
            )
            for row, query in enumerate(queries)
        ]

    def _hits(self, query: Query, positions: np.ndarray, scores: np.ndarray) -> list[Hit]:
        places = positions[positions >= 0].tolist()
        return [
            Hit(
                rank=rank,
                id=document.id,
                score=score,
                title=document.title,
                text=document.text,
                metadata=document.metadata,
                position=position,
                query=query,
                index=self,
            )
            for rank, (document, position, score) in enumerate(
                zip(self.documents.at(places), places, scores.tolist(), strict=False), start=1
            )
        ]
