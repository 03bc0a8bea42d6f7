"""The searcher of an index: what answers queries over a reader."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from lexent import arguments, forks, recipes
from lexent.bounded_cache import BoundedCache
from lexent.encoders.encoder import encode
from lexent.errors import InputError, NotFoundError
from lexent.indexing.filters import EXAMPLE, Filter
from lexent.indexing.index_models import IndexModels
from lexent.indexing.reader import IndexReader
from lexent.indexing.segment import Segment, Tombstones, repacked
from lexent.pipeline import Pipeline
from lexent.recipes import Recipe
from lexent.search import steering, token_rows
from lexent.search.coded_text import CodedText, code_texts, coded_texts
from lexent.search.dense_ranking import DenseRanking
from lexent.search.document_ranking import first_of_each, top_documents
from lexent.search.document_scorer import DocumentScorer, Masks, TopDocuments
from lexent.search.feedback import Expansion, Learning, expansions
from lexent.search.groups import Line, QueryGroups, TextWords, group_concepts
from lexent.search.least import Least
from lexent.search.lexical import Lexical
from lexent.search.maxsim_scorer import MaxSimScorer
from lexent.search.modes import Mode, Unit, fast_of
from lexent.search.query import Query
from lexent.search.query_words import QueryWords
from lexent.search.results import (
    AddedConcept,
    DenseHit,
    Explainer,
    Hit,
    PassageHit,
    QueryConcept,
    Results,
    SharedTerm,
    SteeredConcept,
)
from lexent.search.strength import StrengthScale
from lexent.search.token_rows import TokenRows
from lexent.types import SparseVectors

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

T = TypeVar("T")
Where = dict[str, Any]
"""A filter on metadata, for example {"year": {"gte": 2019}, "lang": "en"}; see `lexent.indexing.filters`."""
Settings = dict[str, Any]
"""Recipe settings by name, for example {"k1": 3, "b": 0.4}."""
MAX_CACHED_QUERIES = 256
"""Queries whose codes and groups a searcher keeps."""
MAX_CACHED_DOCUMENTS = 64
"""Documents whose codes a searcher keeps, some 20 KB each."""


@dataclass(frozen=True, slots=True)
class CodedQuery:
    """A query before idf and steering."""

    vectors: SparseVectors  # one vector: all its concepts
    rows: TokenRows | None
    """Token by token, for recipes that match tokens."""
    words: CodedText | None
    """With the words that raised its concepts, for recipes that code tokens."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Queries that are ready to be matched."""

    queries: Sequence[Query]
    added: Sequence[tuple[AddedConcept, ...]]
    """For each query, what feedback changed."""
    allowed: Masks | None
    """The documents that may be found; None for all."""
    steered: tuple[SteeredConcept, ...] = ()
    """What steering moved, of one query."""


def packed_by(recipe: Recipe) -> tuple[float, int | None]:
    """The settings that posting lists are packed by: other ones need them packed again."""
    return recipe.power, recipe.document_cap


@dataclass(frozen=True, weakref_slot=True, slots=True, eq=False)
class RepackedLists:
    """The posting lists of a reader, packed again in memory under another power or a smaller document cap."""

    segments: tuple[Segment, ...]
    tombstones: tuple[Tombstones | None, ...]

    @staticmethod
    def of(reader: IndexReader, recipe: Recipe) -> RepackedLists:
        """Those that the recipe needs."""
        divided = None if reader.manifest.words is None else reader.manifest.lexicon.size
        segments = tuple(repacked(segment, recipe, concepts=divided) for segment in reader.segments)
        pairs = zip(segments, reader.tombstones, strict=True)
        return RepackedLists(
            segments, tuple(None if gone is None else Tombstones.of(segment, gone.mask) for segment, gone in pairs)
        )


class Searcher:
    """Answers queries over one generation of an index, by one recipe, and explains the hits. It never changes."""

    def __init__(
        self,
        reader: IndexReader,
        models: IndexModels,
        *,
        explainer: Explainer,
        settings: Settings | None = None,
        lists: RepackedLists | None = None,
    ) -> None:
        self.path = reader.path
        self.manifest = reader.manifest
        self.reader = reader
        self.models = models
        self.explainer = explainer
        stored = Recipe.from_dict(self.manifest.recipe)
        self.recipe = recipes.retuned(stored, settings or {})
        self.manifest.check_words(self.recipe)
        concepts, language = self.manifest.lexicon.size, self.manifest.words
        self.words: QueryWords | None = None
        """The words of the index, where its recipe weighs them."""
        if language is not None and self.recipe.words:
            self.words = QueryWords(reader.vocabulary, language=language, first=concepts)
        if lists is None and packed_by(self.recipe) != packed_by(stored):
            lists = RepackedLists.of(reader, self.recipe)
        self.repacked_lists = lists
        """The posting lists that are searched in place of the index's own, where its recipe needs other ones."""
        segments, tombstones = (lists or reader).segments, (lists or reader).tombstones
        self._making = threading.RLock()
        forks.renew_lock(self, "_making")
        self._coded_queries: BoundedCache[str, CodedQuery] = BoundedCache(MAX_CACHED_QUERIES)
        self._coded_documents: BoundedCache[int, CodedText] = BoundedCache(MAX_CACHED_DOCUMENTS)
        self._groups: BoundedCache[tuple[str, int], QueryGroups] = BoundedCache(MAX_CACHED_QUERIES)
        self._weighed_groups: BoundedCache[tuple[str, int, bytes], QueryGroups] = BoundedCache(MAX_CACHED_QUERIES)
        self._lexical: Lexical | None = None
        self.document_scorer = DocumentScorer(
            segments, self.recipe, size=reader.size, concepts=concepts, tombstones=tombstones
        )
        self.maxsim: MaxSimScorer | None = None
        if self.recipe.match == "maxsim":
            self.maxsim = MaxSimScorer.of_forward_index(self.document_scorer, reader.forward)
        self._strengths = StrengthScale(self.document_scorer, self.maxsim)

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
        """What codes texts as this searcher needs them. Loads the encoder and the lexicon."""
        return Pipeline(self.encoder, self.lexicon, self.recipe)

    def __len__(self) -> int:
        return self.manifest.counts.documents

    def __deepcopy__(self, memo: dict[int, Any]) -> Searcher:
        return self

    def retuned(self, settings: Settings, *, lists: RepackedLists | None = None) -> Searcher:
        """The same documents, searched by other settings. lists: those that the settings need, if they are there."""
        return Searcher(self.reader, self.models, explainer=self.explainer, settings=settings, lists=lists)

    def top(
        self,
        queries: Sequence[Query],
        k: int,
        *,
        allowed: Masks | None = None,
        mode: Mode = None,
        unit: Unit = "document",
    ) -> TopDocuments:
        """The k best documents of each query, by the positions of their best passages; or the k best passages.

        allowed: passages that may be found.
        """
        if unit == "passage" or not self.reader.has_long_documents:
            return self._top_passages(queries, k, allowed=allowed, mode=mode)

        def search(rows: Sequence[int], depth: int) -> TopDocuments:
            return self._top_passages([queries[row] for row in rows], depth, allowed=allowed, mode=mode)

        return top_documents(search, self.reader.owners, len(queries), k, n_documents=len(self))

    def in_documents(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of passages, best first, without those whose document stands before with a better one."""
        return positions[first_of_each(self.reader.owners[positions])] if self.reader.has_long_documents else positions

    def best_passages(self, query: Query, position: int, k: int = 1, *, mode: Mode = None) -> list[tuple[int, float]]:
        """Positions and scores of the best passages of the document that has the passage at a position.

        A passage that shares nothing with the query is none of them.
        """
        run = self.reader.run(position)
        masks = [np.zeros(segment.n_documents, np.bool_) for segment in self.document_scorer.segments]
        place = int(np.searchsorted(self.document_scorer.bases, position, side="right")) - 1
        base = int(self.document_scorer.bases[place])
        masks[place][run.start - base : run.stop - base] = True
        found = self._top_passages([query], k, allowed=masks, mode=mode)
        n = int(np.count_nonzero(found.positions[0] >= 0))
        return list(zip(found.positions[0, :n].tolist(), found.scores[0, :n].tolist(), strict=True))

    def _top_passages(self, queries: Sequence[Query], k: int, *, allowed: Masks | None, mode: Mode) -> TopDocuments:
        if self.maxsim is not None:
            return self.maxsim.top(queries, k, allowed=allowed, mode=mode)
        self._check_mode(mode)
        return self.document_scorer.top_weighted(self._vectors(queries), k, allowed=allowed)

    def _check_mode(self, mode: Mode) -> None:
        """Refuses the fast mode where there is none; before models are loaded."""
        if fast_of(mode, self.recipe) is not None and self.maxsim is None:
            raise InputError(
                f'the recipe "{self.recipe.name}" has no fast mode: its search is exact and quick; '
                "fast is for recipes that match tokens, such as ssr"
            )

    def scores(self, query: Query) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scores of all documents, and which of them are hits. Deleted documents are no hits."""
        if self.maxsim is not None:
            return self.maxsim.scores(query)
        return self.document_scorer.scores(query.ids, query.weights)

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """For each concept of a query the document's weight, and its exact contribution to the score."""
        if self.maxsim is not None:
            return self.maxsim.contributions(query, position)
        return self.document_scorer.contributions(position, query.ids, query.weights)

    def label(self, term: int) -> str:
        """The name of a concept, or a word as documents write it."""
        if self.words is not None and term >= self.words.first:
            return self.words.label(term)
        return self.lexicon.label(term)

    def is_word(self, term: int) -> bool:
        """Whether an id is that of a word."""
        return self.words is not None and term >= self.words.first

    def named(self, terms: Sequence[int]) -> list[tuple[str, bool]]:
        """The name of each term, and whether it is a word."""
        concepts, words = self.lexicon.concepts, self.words
        if words is None:
            return [(concept.label, False) for concept in concepts.of(terms)]
        own = iter(concepts.of([term for term in terms if term < words.first]))
        return [(next(own).label, False) if term < words.first else (words.label(term), True) for term in terms]

    def strength(self, query: Query, score: float) -> float:
        """A score of a query between 0, what words thrown together get, and 1, what a document's own words get."""
        return self._strengths.of(query, score)

    def lines(self, query: Query, position: int, terms: Sequence[SharedTerm]) -> list[Line]:
        """The concepts that a query and a document share, by groups of those that say the same."""
        text = TextWords(self.reader.contents([position])[0])
        return self.groups(query).lines({term: value for term, *_, value in terms}, text)

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
        unit: Unit = "document",
        min_score: float | None = None,
        min_strength: float | None = None,
    ) -> list[Results]:
        """The hits of each query, best first; those below a least score or strength are left out."""
        arguments.whole("k", k, least=1)
        least = Least.of(min_score, min_strength)
        arguments.choice("unit", unit, get_args(Unit))
        self._check_mode(mode)
        prepared = self.prepared(queries, steer=steer, where=where, idf_of_subset=idf_of_subset, learning=learning)
        found = self.top(prepared.queries, k, allowed=prepared.allowed, mode=mode, unit=unit)
        return [
            Results(
                query=query.text,
                concepts=tuple(self.concepts(query)),
                hits=tuple(self._hits(query, least.kept(self, query, found, row), found.scores[row], unit)),
                added=prepared.added[row],
                approximate=fast_of(mode, self.recipe) is not None,
                steered=prepared.steered,
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
        self.reader.check_open()
        steer = steering.checked(steer)
        plain: Query | None = None
        if steer and len(queries) == 1:  # what steering moves: idf of a subset is all that a filter changes of weights
            subset = where if idf_of_subset else None
            plain = self.prepared(queries, where=subset, idf_of_subset=idf_of_subset).queries[0]
        arguments.flag("idf_of_subset", idf_of_subset)
        if where is not None and not isinstance(where, Filter):
            arguments.mapping("filter", where, allowed=f"a mapping of fields, such as {EXAMPLE}")
        if learning is not None and self.recipe.match == "maxsim":
            raise InputError(
                f'the recipe "{self.recipe.name}" matches tokens, and feedback adds concepts of whole documents; '
                "search without feedback, or an index of another recipe, for example latent-terms"
            )
        allowed = None if not where else self.reader.matching(Filter.of(where))
        rows = self._token_rows(queries, steer) if self.recipe.match == "maxsim" else None
        if rows is None:
            vectors = self._represent(queries, steer)
        else:
            vectors = SparseVectors.concatenate([one.merged() for one in rows], size=self.document_scorer.size)
        factors = self.document_scorer.factors
        if allowed is not None and idf_of_subset:
            ids = np.unique(vectors.ids) if learning is None else np.arange(self.document_scorer.size, dtype=np.int32)
            factors = self._factors_within(ids, allowed)
        if rows is not None:
            pairs = zip(queries, rows, strict=True)
            made = [one.query(text, self.document_scorer, factors=factors) for text, one in pairs]
            return Prepared(made, [() for _ in made], allowed, self._moved(plain, made, steer))
        weights = self.document_scorer.query_weights(vectors, factors=factors)
        made = [Query.of(text, weights.take(np.array([row]))) for row, text in enumerate(queries)]
        moved = self._moved(plain, made, steer)
        if learning is None:
            return Prepared(made, [() for _ in made], allowed, moved)
        return Prepared(*self._learned(made, learning, steer=steer, allowed=allowed, factors=factors), allowed, moved)

    def _moved(
        self, plain: Query | None, made: Sequence[Query], steer: steering.Steer | None
    ) -> tuple[SteeredConcept, ...]:
        """What steering moved of a query; plain: the query without steering."""
        if plain is None or steer is None:
            return ()
        active, groups = self._coded_query(plain.text).vectors.ids.tolist(), self._plain_groups(plain.text)
        factors = steering.factors(steer, active, lexicon=self.lexicon, groups=groups, words=self.words)
        before, after = (dict(zip(one.ids.tolist(), one.weights.tolist(), strict=True)) for one in (plain, made[0]))
        found = [
            SteeredConcept(
                concept,
                self.label(concept),
                factor,
                before=before.get(concept, 0.0),
                after=after.get(concept, 0.0),
                word=self.is_word(concept),
            )
            for concept, factor in factors.items()
        ]
        return tuple(sorted(found, key=lambda one: (-abs(one.after - one.before), one.id)))

    def lexical(self) -> Lexical:
        """The index by its words: those that it holds, or made from the stored texts when first needed."""
        with self._making:
            if self._lexical is None:
                self._lexical = Lexical.of_index(self.reader, self.document_scorer)
            return self._lexical

    def query(self, text: str, *, steer: steering.Steer | None = None, learning: Learning | None = None) -> Query:
        """A query with its final weights."""
        return self.prepared([text], steer=steer, learning=learning).queries[0]

    def concepts(self, query: Query) -> list[QueryConcept]:
        """The concepts of a query, strongest first."""
        ids = query.ids.tolist()
        sides = zip(ids, query.weights.tolist(), self.named(ids), strict=True)
        found = [QueryConcept(concept, label, weight, word) for concept, weight, (label, word) in sides]
        return sorted(found, key=lambda concept: (-abs(concept.weight), concept.id))

    def dense(self, query: str, *, allowed: Masks | None = None) -> DenseRanking:
        """All documents by the cosine of the encoder's own vectors with a query, ties in document order."""
        _check([query])
        if "dense" not in self.manifest.extras:
            raise NotFoundError(
                f'"{self.path}" keeps no vectors; build it with them: '
                f"lexent index CORPUS --out {self.path} --with dense --overwrite"
            )
        vector = encode(self.encoder, [query], kind="query", level="pooled").numpy()[0]
        return DenseRanking.of(self.reader, query, vector, self.document_scorer.masks(allowed))

    def dense_search(self, query: str, *, k: int, allowed: Masks | None = None) -> list[DenseHit]:
        """The k documents of highest cosine with a query, by the encoder's own vectors, ties in document order."""
        arguments.whole("k", k, least=1)
        found = self.dense(query, allowed=allowed)
        positions, scores = found.positions[:k].tolist(), found.scores[:k].tolist()
        documents = self.reader.at(positions)
        return [
            DenseHit(rank, document.id, score, document.title, document.text, document.metadata)
            for rank, (document, score) in enumerate(zip(documents, scores, strict=True), start=1)
        ]

    def coded_query(self, text: str) -> CodedText | None:
        """A query with the concepts of its tokens; None where the recipe does not code tokens."""
        return self._coded_query(text).words

    def coded_documents(self, positions: Sequence[int]) -> list[CodedText]:
        """Passages with the concepts of their tokens, encoded again unless that was done lately."""
        known = {position: self._coded_documents.get(position) for position in positions}
        fresh = [position for position, found in known.items() if found is None]
        texts_coded = map(self.with_words, code_texts(self.pipeline, self.reader.contents(fresh), kind="document"))
        found = dict(zip(fresh, texts_coded, strict=True))
        for position, coded in found.items():
            self._coded_documents.put(position, coded)
        return [known[position] or found[position] for position in positions]

    def groups(self, query: Query) -> QueryGroups:
        """The query's concepts as groups of those that say the same. Steering moves weights and not members."""

        def make() -> QueryGroups:
            base, ids = self._plain_groups(query.text), query.ids.tolist()
            return base.weighed(ids, query.weights.tolist(), lexicon=self.lexicon, words=self._word_labels(ids))

        weighted = query.ids.tobytes() + query.weights.tobytes()
        return self._weighed_groups.get_or_make((query.text, self.models.renamings, weighted), make)

    def _word_labels(self, ids: Sequence[int]) -> dict[int, str]:
        """The names of those of some ids that are words."""
        return {} if self.words is None else self.words.labels(ids)

    def with_words(self, text: CodedText) -> CodedText:
        """A coded text with its words, where the recipe weighs them."""
        return text if self.words is None else replace(text, written=self.words.occurrences(text.text))

    def _plain_groups(self, text: str) -> QueryGroups:
        """The groups of a query before steering and feedback."""

        def make() -> QueryGroups:
            coded = self._coded_query(text)
            if coded.rows is not None:
                plain = coded.rows.query(text, self.document_scorer)
            else:
                plain = Query.of(text, self.document_scorer.query_weights(coded.vectors))
            ids, weights = plain.ids.tolist(), plain.weights.tolist()
            words = self._word_labels(ids)
            return group_concepts(ids, weights, lexicon=self.lexicon, query=coded.words, words=words)

        return self._groups.get_or_make((text, self.models.renamings), make)

    def _token_rows(self, queries: Sequence[str], steer: steering.Steer | None) -> list[TokenRows]:
        """The rows of queries for MaxSim, steered, before idf."""
        _check(queries)
        if len(queries) != 1:
            found = token_rows.represent(queries, self.pipeline)
            return [rows.steered(steer, lexicon=self.lexicon) for rows in found] if steer else found
        rows = self._coded_query(queries[0]).rows
        assert rows is not None
        return [rows.steered(steer, lexicon=self.lexicon, groups=self._plain_groups(queries[0])) if steer else rows]

    def _represent(self, queries: Sequence[str], steer: steering.Steer | None) -> SparseVectors:
        """The vectors of queries, steered, before idf."""
        _check(queries)
        pipeline = self.pipeline
        if len(queries) != 1:
            return self._beside(pipeline.query_vectors(pipeline.represent(queries, kind="query")), queries)
        vectors = self._coded_query(queries[0]).vectors
        if not steer:
            return vectors
        groups = self._plain_groups(queries[0])
        return steering.steered(vectors, steer, lexicon=self.lexicon, groups=groups, words=self.words)

    def _beside(self, concepts: SparseVectors, queries: Sequence[str]) -> SparseVectors:
        """The vectors of queries with their words, where the recipe weighs them."""
        if self.words is None:
            return concepts
        return self.words.beside(concepts, queries, power=self.recipe.power_for("query"))

    def _coded_query(self, text: str) -> CodedQuery:
        """A query before idf and steering. Cached: a user who steers repeats it."""

        def make() -> CodedQuery:
            pipeline = self.pipeline
            (batch,) = pipeline.coded([text], kind="query")
            words = coded_texts(pipeline, [text], [batch.codes], kind="query")[0] if batch.tokens else None
            if self.recipe.match == "maxsim":
                rows = TokenRows.of(batch.codes, self.recipe, size=pipeline.lexicon.size)
                return CodedQuery(rows.merged(), rows, words)
            vectors = self._beside(pipeline.query_vectors(pipeline.pooled(batch.codes)), [text])
            return CodedQuery(vectors, None, None if words is None else self.with_words(words))

        return self._coded_queries.get_or_make(text, make)

    def _factors_within(self, ids: NDArray[np.int32], allowed: Masks) -> NDArray[np.float64]:
        """The idf that the allowed documents alone would give, for these concepts."""
        df = np.zeros_like(self.document_scorer.df)
        df[ids] = self.document_scorer.df_within(ids, allowed)
        n_allowed = self.document_scorer.n_allowed(allowed)
        factors = self.document_scorer.factors_of(df, n_allowed)
        factors[self.document_scorer.factors == 0] = 0  # what the recipe prunes stays out
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
        every = range(self.manifest.lexicon.size)
        off = [name for name, factor in (steer or {}).items() if factor == 0]
        groups = self._plain_groups(queries[0].text) if off and len(queries) == 1 else None
        meant = (steering.targets(name, every, lexicon=self.lexicon, groups=groups, words=self.words) for name in off)
        blocked = {concept for concepts in meant for concept in concepts}
        found = expansions(
            self.document_scorer,
            self._vectors(queries),
            learning.feedback,
            factors=factors,
            allowed=allowed,
            marked=learning.marked(self.reader),
            blocked=blocked,
        )
        pairs = list(zip(queries, found, strict=True))
        learned = [Query.of(query.text, expansion.query) for query, expansion in pairs]
        return learned, [self._added(query, expansion) for query, expansion in pairs]

    def _added(self, query: Query, expansion: Expansion) -> tuple[AddedConcept, ...]:
        own = dict(zip(query.ids.tolist(), query.weights.tolist(), strict=True))
        names = dict(zip(expansion.documents.tolist(), self.reader.ids(expansion.documents.tolist()), strict=True))
        found = [
            AddedConcept(
                id=concept,
                label=self.label(concept),
                word=self.is_word(concept),
                weight=gain,
                own=own.get(concept, 0.0),
                documents=tuple(dict.fromkeys(names[place] for place in expansion.sources(concept).tolist())),
            )
            for concept, gain in zip(expansion.changed.tolist(), expansion.gains.tolist(), strict=True)
        ]
        return tuple(sorted(found, key=lambda concept: (-abs(concept.weight), concept.id)))

    def _vectors(self, queries: Sequence[Query]) -> SparseVectors:
        size = self.document_scorer.size
        return SparseVectors.concatenate([query.vectors(size) for query in queries], size=size)

    def _hits(self, query: Query, positions: np.ndarray, scores: np.ndarray, unit: Unit) -> Sequence[Hit]:
        places = positions[positions >= 0].tolist()
        if unit == "passage":
            return self.passage_hits(query, list(zip(places, scores.tolist(), strict=False)))
        found = zip(self.reader.at(places), places, scores.tolist(), strict=False)
        return [
            Hit(rank, document.id, score, document.title, document.text, document.metadata, position, query, self)
            for rank, (document, position, score) in enumerate(found, start=1)
        ]

    def passage_hits(self, query: Query, ranking: Sequence[tuple[int, float]]) -> list[PassageHit]:
        """The passages at some positions as hits, with their scores."""
        found = []
        passages = self.reader.passages([position for position, _ in ranking])
        for rank, (passage, (position, score)) in enumerate(zip(passages, ranking, strict=True), start=1):
            document, (start, stop) = passage.document, passage.span
            facts = (rank, document.id, score, document.title, passage.text, document.metadata, position, query, self)
            found.append(PassageHit(*facts, passage.number, passage.count, start, stop, passage.headings))
        return found


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
