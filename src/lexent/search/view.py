"""An index at one moment, to be searched and explained."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lexent import arguments, recipes
from lexent.bounded_cache import BoundedCache
from lexent.errors import InputError
from lexent.indexing.filters import EXAMPLE, Filter
from lexent.indexing.index_models import IndexModels
from lexent.indexing.reader import IndexReader
from lexent.indexing.segment import Tombstones, repacked
from lexent.pipeline import Pipeline
from lexent.recipes import Recipe
from lexent.search import dense, maxsim, steering, token_rows
from lexent.search.feedback import Expansion, Learning, expansions
from lexent.search.lexical import Lexical
from lexent.search.matching import DocumentMatch, Matcher, Mode, fast_of
from lexent.search.query import Query
from lexent.search.results import AddedConcept, DenseHit, Explainer, Hit, QueryConcept, Results
from lexent.search.searcher import Masks, Searcher
from lexent.search.token_rows import TokenRows
from lexent.types import SparseVectors
from lexent.weighting import bm25

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

T = TypeVar("T")
Where = dict[str, Any]
"""A filter on metadata, for example {"year": {"gte": 2019}, "lang": "en"}; see `lexent.indexing.filters`."""
Settings = dict[str, Any]
"""Recipe settings by name, for example {"k1": 3, "b": 0.4}."""
MAX_CACHED_QUERIES = 256
"""Queries whose vectors a view keeps."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Queries that are ready to be matched."""

    queries: Sequence[Query]
    added: Sequence[tuple[AddedConcept, ...]]
    """For each query, what feedback changed."""
    allowed: Masks | None
    """The documents that may be found; None for all."""


class View:
    """An index as it was at one moment: what a search and its explanations read. It never changes."""

    def __init__(
        self, reader: IndexReader, models: IndexModels, *, explainer: Explainer, settings: Settings | None = None
    ) -> None:
        self.path = reader.path
        self.manifest = reader.manifest
        self.documents = reader
        self.models = models
        self.explainer = explainer
        stored = Recipe.from_dict(self.manifest.recipe)
        self.recipe = recipes.retuned(stored, settings or {})
        segments, tombstones = reader.segments, reader.tombstones
        if (self.recipe.power, self.recipe.document_cap) != (stored.power, stored.document_cap):
            segments = tuple(repacked(segment, self.recipe) for segment in segments)
            pairs = zip(segments, tombstones, strict=True)
            tombstones = tuple(None if gone is None else Tombstones.of(segment, gone.mask) for segment, gone in pairs)
        self._making = threading.Lock()
        self._asked: BoundedCache[str, Any] = BoundedCache(MAX_CACHED_QUERIES)
        self._lexical: Lexical | None = None
        self.searcher = Searcher(segments, self.recipe, size=self.manifest.lexicon.size, tombstones=tombstones)
        self.matcher: Matcher = DocumentMatch(self.searcher)
        if self.recipe.match == "maxsim":
            self.matcher = maxsim.of_forward_index(self.searcher, reader.forward)

    @property
    def encoder(self) -> Encoder:
        """The encoder of the index."""
        return self.models.encoder

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon of the index."""
        return self.models.lexicon

    @property
    def pipeline(self) -> Pipeline:
        """What codes texts as this view searches them. Loads the encoder and the lexicon."""
        return Pipeline(self.encoder, self.lexicon, self.recipe)

    def __len__(self) -> int:
        return self.manifest.counts.documents

    def retuned(self, settings: Settings) -> View:
        """The same documents, searched by other settings."""
        return View(self.documents, self.models, explainer=self.explainer, settings=settings)

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """For each concept of a query the document's weight, and what the concept adds to its score: exact."""
        return self.matcher.contributions(query, position)

    def label(self, term: int) -> str:
        """The name of a concept."""
        return self.lexicon.label(term)

    def search_many(
        self,
        queries: Sequence[str],
        *,
        k: int,
        steer: steering.Steer | None = None,
        where: Where | None = None,
        idf_of_subset: bool = False,
        mode: Mode = None,
        learning: Learning | None = None,
    ) -> list[Results]:
        """The hits of each query, best first."""
        arguments.whole("k", k, least=1)
        prepared = self.prepared(queries, steer=steer, where=where, idf_of_subset=idf_of_subset, learning=learning)
        found = self.matcher.top(prepared.queries, k, allowed=prepared.allowed, mode=mode)
        return [
            Results(
                query=query.text,
                concepts=tuple(self.concepts(query)),
                hits=tuple(self._hits(query, found.positions[row], found.scores[row])),
                added=prepared.added[row],
                approximate=fast_of(mode, self.recipe) is not None,
            )
            for row, query in enumerate(prepared.queries)
        ]

    def prepared(
        self,
        queries: Sequence[str],
        *,
        steer: steering.Steer | None = None,
        where: Where | None = None,
        idf_of_subset: bool = False,
        learning: Learning | None = None,
    ) -> Prepared:
        """Queries with their final weights, and the documents that they may find."""
        steer = steering.checked(steer)
        arguments.flag("idf_of_subset", idf_of_subset)
        if where is not None and not isinstance(where, Filter):
            arguments.mapping("filter", where, allowed=f"a mapping of fields, such as {EXAMPLE}")
        rows = self._token_rows(queries, steer) if self.recipe.match == "maxsim" else None
        if rows is None:
            vectors = self._represent(queries, steer)
        elif learning is not None:
            raise InputError(
                f'the recipe "{self.recipe.name}" matches tokens, and feedback adds concepts of whole documents; '
                "search without feedback, or an index of another recipe, for example latent-terms"
            )
        else:
            vectors = SparseVectors.concatenate([one.merged() for one in rows], size=self.searcher.size)
        allowed = None if not where else self.documents.matching(Filter.of(where))
        factors = self.searcher.factors
        if allowed is not None and idf_of_subset:
            ids = np.unique(vectors.ids) if learning is None else np.arange(self.searcher.size, dtype=np.int32)
            factors = self._factors_within(ids, allowed)
        if rows is not None:
            pairs = zip(queries, rows, strict=True)
            made = [one.query(text, self.searcher, factors=factors) for text, one in pairs]
            return Prepared(made, [() for _ in made], allowed)
        weights = self.searcher.query_weights(vectors, factors=factors)
        made = [Query.of(text, weights.take(np.array([row]))) for row, text in enumerate(queries)]
        if learning is None:
            return Prepared(made, [() for _ in made], allowed)
        return Prepared(*self._learned(made, learning, steer=steer, allowed=allowed, factors=factors), allowed)

    def lexical(self) -> Lexical:
        """The index by its words, made from the stored texts when it is first needed."""
        with self._making:
            if self._lexical is None:
                self._lexical = Lexical(self.documents)
            return self._lexical

    def query(self, text: str, *, steer: steering.Steer | None = None, learning: Learning | None = None) -> Query:
        """A query with its final weights."""
        return self.prepared([text], steer=steer, learning=learning).queries[0]

    def concepts(self, query: Query) -> list[QueryConcept]:
        """The concepts of a query, strongest first."""
        found = [
            QueryConcept(concept, self.lexicon.label(concept), weight)
            for concept, weight in zip(query.ids.tolist(), query.weights.tolist(), strict=True)
        ]
        return sorted(found, key=lambda concept: (-abs(concept.weight), concept.id))

    def dense_search(self, query: str, *, k: int) -> list[DenseHit]:
        """The k documents of highest cosine with a query, by the encoder's own vectors."""
        _check([query])
        return dense.search(self, query, k)

    def _token_rows(self, queries: Sequence[str], steer: steering.Steer | None) -> list[TokenRows]:
        """The rows of queries for MaxSim, steered, before idf."""

        def make() -> list[TokenRows]:
            return token_rows.represent(queries, self.pipeline)

        found = self._remembered(queries, make)
        return [rows.steered(steer, lexicon=self.lexicon) for rows in found] if steer else found

    def _represent(self, queries: Sequence[str], steer: steering.Steer | None = None) -> SparseVectors:
        def make() -> SparseVectors:
            pipeline = self.pipeline
            return pipeline.query_vectors(pipeline.represent(queries, kind="query"))

        vectors = self._remembered(queries, make)
        return steering.steered(vectors, steer, lexicon=self.lexicon) if steer else vectors

    def _remembered(self, queries: Sequence[str], make: Callable[[], T]) -> T:
        """What queries are before steering. A person who steers, or asks why, asks the same again: one is kept."""
        _check(queries)
        if len(queries) != 1:
            return make()
        found: T = self._asked.get_or_make(queries[0], make)
        return found

    def _factors_within(self, ids: NDArray[np.int32], allowed: Masks) -> NDArray[np.float64]:
        """The idf that the allowed documents alone would give, for these concepts."""
        df = np.zeros_like(self.searcher.df)
        df[ids] = self.searcher.df_within(ids, allowed)
        n_allowed = self.searcher.n_allowed(allowed)
        factors = bm25.query_factors(df, n_allowed, self.recipe.weighting, prune=0)
        factors[self.searcher.factors == 0] = 0  # what the recipe prunes stays out
        return factors

    def _learned(
        self,
        queries: Sequence[Query],
        learning: Learning,
        *,
        steer: steering.Steer | None,
        allowed: Masks | None,
        factors: NDArray[np.float64],
    ) -> tuple[list[Query], list[tuple[AddedConcept, ...]]]:
        """The queries after feedback, and what changed. A concept that was steered to 0 does not come back."""
        every = range(self.searcher.size)
        off = [name for name, factor in (steer or {}).items() if factor == 0]
        blocked = {concept for name in off for concept in steering.targets(name, every, lexicon=self.lexicon)}
        found = expansions(
            self.searcher,
            self._vectors(queries),
            learning.feedback,
            factors=factors,
            allowed=allowed,
            marked=learning.marked(self.documents),
            blocked=blocked,
        )
        made, added = [], []
        for query, expansion in zip(queries, found, strict=True):
            made.append(Query.of(query.text, expansion.query))
            added.append(self._added(query, expansion))
        return made, added

    def _added(self, query: Query, expansion: Expansion) -> tuple[AddedConcept, ...]:
        own = dict(zip(query.ids.tolist(), query.weights.tolist(), strict=True))
        names = dict(zip(expansion.documents.tolist(), self.documents.ids(expansion.documents.tolist()), strict=True))
        found = [
            AddedConcept(
                id=concept,
                label=self.lexicon.label(concept),
                weight=gain,
                own=own.get(concept, 0.0),
                documents=tuple(names[place] for place in expansion.sources(concept).tolist()),
            )
            for concept, gain in zip(expansion.changed.tolist(), expansion.gains.tolist(), strict=True)
        ]
        return tuple(sorted(found, key=lambda concept: (-abs(concept.weight), concept.id)))

    def _vectors(self, queries: Sequence[Query]) -> SparseVectors:
        size = self.manifest.lexicon.size
        return SparseVectors.concatenate([query.vectors(size) for query in queries], size=size)

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


def _check(queries: Sequence[str]) -> None:
    """Refuses a query that is no text, or has no word."""
    for place, query in enumerate(queries):
        if not isinstance(query, str):
            raise arguments.refused(
                "the query", query, "a string", "for several queries at once call index.search_many([...])"
            )
        if not query.strip():
            which = f" (number {place + 1} of {len(queries)})" if len(queries) > 1 else ""
            raise InputError(f'the query{which} is empty; type some words, for example "sort a list"')
        arguments.unicode("the query" if len(queries) == 1 else f"queries[{place}]", query)
