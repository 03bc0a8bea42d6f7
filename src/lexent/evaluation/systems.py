"""Systems under test: whatever gives a run for a collection. Recipes and their baselines, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from lexent import adapters, recipes
from lexent import lexicon as lexicons
from lexent.adapters import Adapter
from lexent.adapters.corpus import AdaptedCorpus, best
from lexent.adapters.dime import Dime
from lexent.adapters.encoder import AdaptedEncoder
from lexent.adapters.modulation import Rows
from lexent.encoders import DEFAULT, Encoder
from lexent.errors import InputError, MismatchError, NotFoundError
from lexent.evaluation import baselines, cached_vectors
from lexent.evaluation.collection_words import CollectionWords
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import report
from lexent.evaluation.runs import Run, from_top, self_matches
from lexent.indexing.forward.tokens import TokenStore
from lexent.indexing.segment import Segment
from lexent.lexicon import Lexicon
from lexent.models import load_encoder
from lexent.pipeline import Pipeline
from lexent.recipes import Recipe
from lexent.search.document_scorer import DocumentScorer
from lexent.search.feedback import Feedback, expansions
from lexent.search.maxsim_scorer import MaxSimScorer
from lexent.search.query import Query
from lexent.types import Kind, SparseVectors

BASELINES = ("dense", "bm25")
ADAPTED = "imrnn"
"""The system of an adapter."""

EncoderLike: TypeAlias = "Encoder | str | Path | Any | None"
LexiconLike: TypeAlias = "Lexicon | str | Path | None"
"""The thing itself, its name or folder, or None for the default."""
AdapterLike: TypeAlias = "Adapter | str | Path | None"


class System(Protocol):
    """Ranks the documents of a collection for each of its queries."""

    @property
    def name(self) -> str:
        """The name in reports."""

    def run(self, collection: Collection, *, depth: int) -> Run:
        """The `depth` best documents for each query."""
        ...


@dataclass(frozen=True, slots=True)
class Dense:
    """The cosine of the encoder's own pooled vectors."""

    encoder: Encoder
    name: str = "dense"

    def run(self, collection: Collection, *, depth: int) -> Run:
        """The documents that this system finds for each query, with their scores."""
        return baselines.dense(collection, self.encoder, k=depth)


@dataclass(frozen=True, slots=True)
class Lexical:
    """BM25 over words."""

    name: str = "bm25"

    def run(self, collection: Collection, *, depth: int) -> Run:
        """The documents that this system finds for each query, with their scores."""
        return baselines.bm25(collection, k=depth)


@dataclass(frozen=True, slots=True)
class RecipeSystem:
    """A recipe with the lexicon and the encoder that it is used with."""

    recipe: Recipe
    lexicon: Lexicon
    encoder: Encoder
    label: str = ""

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.label or self.recipe.name

    @property
    def pipeline(self) -> Pipeline:
        """The encoder, the lexicon and the recipe as one value."""
        return Pipeline(self.encoder, self.lexicon, self.recipe)


@dataclass(frozen=True, slots=True)
class Latent(RecipeSystem):
    """A recipe that matches concepts of whole documents, weighed and searched by the index's own kernels."""

    def pooled(self, texts: Sequence[str], *, kind: Kind) -> SparseVectors:
        """The concepts of texts before the transform, from the cache where they are."""
        return cached_vectors.represent(texts, self.pipeline, kind=kind)

    def scorer(self, collection: Collection) -> DocumentScorer:
        """The collection's documents, packed as an index packs them."""
        vectors = self.pooled(collection.texts, kind="document")
        words = CollectionWords.of(collection, self.recipe)
        return DocumentScorer.from_vectors(vectors, self.recipe, words=None if words is None else words.documents)

    def queries(self, collection: Collection) -> SparseVectors:
        """The collection's queries, transformed and capped, not yet times idf: what `DocumentScorer.top` takes."""
        vectors = self.pipeline.query_vectors(self.pooled(collection.query_texts, kind="query"))
        words = CollectionWords.of(collection, self.recipe)
        return vectors if words is None else words.beside(vectors, self.recipe)

    def run(self, collection: Collection, *, depth: int) -> Run:
        """The documents that this system finds for each query, with their scores."""
        scorer = self.scorer(collection)
        found = scorer.top(self.queries(collection), depth + 1)
        return from_top(collection, found.positions, scores=found.scores, depth=depth)


@dataclass(frozen=True, slots=True)
class TokenMatch(RecipeSystem):
    """A recipe that matches tokens: MaxSim by the index's own kernels; candidates first where the recipe is fast."""

    @property
    def able(self) -> bool:
        """Whether its lexicon has what the recipe codes: not every one has concepts of whole texts."""
        return not self.recipe.whole or self.lexicon.whole is not None

    def scorer(self, collection: Collection) -> MaxSimScorer:
        """The collection's documents, packed as an index packs them; the codes come from the cache where they are."""
        return packed(cached_vectors.token_codes(collection.texts, self.pipeline), self.lexicon, self.recipe)

    def queries(self, collection: Collection, scorer: DocumentScorer) -> list[Query]:
        """The collection's queries with their final weights. scorer: by whole documents, for idf."""
        texts = collection.query_texts
        found = cached_vectors.query_rows(texts, self.pipeline)
        return [rows.query(text, scorer) for text, rows in zip(texts, found, strict=True)]

    def run(self, collection: Collection, *, depth: int) -> Run:
        """The documents that this system finds for each query, with their scores."""
        scorer = self.scorer(collection)
        found = scorer.top(self.queries(collection, scorer.document_scorer), depth + 1)
        return from_top(collection, found.positions, scores=found.scores, depth=depth)


def packed(store: TokenStore, lexicon: Lexicon, recipe: Recipe) -> MaxSimScorer:
    """A MaxSim scorer over a token store."""
    segment = Segment.pack(store.maxima(size=lexicon.size), size=lexicon.size, recipe=recipe)
    return MaxSimScorer(DocumentScorer([segment], recipe, size=lexicon.size), [store])


@dataclass(frozen=True, slots=True)
class Expanded:
    """A recipe with relevance feedback: the second search also has concepts of the first hits."""

    first: Latent
    feedback: Feedback

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.first.name}+{self.feedback.method}"

    def run(self, collection: Collection, *, depth: int) -> Run:
        """The documents that this system finds for each query, with their scores."""
        scorer = self.first.scorer(collection)
        weights = scorer.query_weights(self.first.queries(collection))
        own = self_matches(collection)
        positions = collection.positions
        skipped = [positions[own[query]] if query in own else -1 for query in collection.queries]
        expanded = expansions(scorer, weights, self.feedback, skipped=skipped if own else None)
        vectors = SparseVectors.concatenate([each.query for each in expanded], size=scorer.size)
        found = scorer.top_weighted(vectors, depth + 1)
        return from_top(collection, found.positions, scores=found.scores, depth=depth)


@dataclass(frozen=True, slots=True)
class Adapted:
    """Any scorer over the encoder's vectors: all documents, or the base retriever's best ranked again."""

    name: str
    encoder: Encoder
    scorer: Callable[[Rows], Callable[[Rows], Rows]]
    """For documents, unit rows of the encoder: a function from a query vector to the scores of all of them."""
    candidates: int | None = None
    """Rank only so many documents, the base retriever's best; all where it is none."""

    def run(self, collection: Collection, *, depth: int) -> Run:
        """The documents that this system finds for each query, with their scores."""
        documents, queries = baselines.pooled_sides(self.encoder, collection)
        scorer = self.scorer(documents)
        k = min(depth + 1, len(documents), self.candidates or len(documents))
        positions, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
        for row, query in enumerate(queries):
            found = scorer(query)
            if self.candidates is not None and self.candidates < len(documents):
                kept = best(documents @ query, self.candidates).positions
                lowered = np.full(len(found), -np.inf, np.float32)
                lowered[kept] = found[kept]
                found = lowered
            ranking = best(found, k)
            positions[row], scores[row] = ranking.positions, ranking.scores
            if row % 64 == 63 or row + 1 == len(queries):
                report(f"{self.name}, queries ranked", row + 1, len(queries))
        return from_top(collection, positions, scores=scores, depth=depth)


def base(encoder: Encoder, *, candidates: int | None = None) -> Adapted:
    """The encoder's own cosine."""
    return Adapted("base", encoder, lambda documents: lambda query: documents @ query, candidates)


def imrnn(adapter: Adapter, encoder: Encoder, *, candidates: int | None = None) -> Adapted:
    """An adapter over all documents, or over the base's best."""
    adapter.check(encoder)
    return Adapted("imrnn", encoder, lambda documents: AdaptedCorpus(adapter, documents).scores, candidates)


def dime(encoder: Encoder, removed: float, *, candidates: int | None = None) -> Adapted:
    """PRF-DIME without a share of the dimensions."""
    name = f"prf-dime-{removed:.0%}".rstrip("%")
    return Adapted(name, encoder, lambda documents: Dime(documents, removed).scores, candidates)


def learns(system: System) -> bool:
    """Whether a system learned from pairs of queries and documents: adapters, and lexicons as ssr and uhd have them."""
    if isinstance(system, RecipeSystem) and system.lexicon.learned_from_pairs:
        return True
    return isinstance(system, Adapted) or isinstance(getattr(system, "encoder", None), AdaptedEncoder)


class Bench:
    """Makes systems by name; the encoder and each lexicon are loaded once, when a system first needs them."""

    def __init__(
        self, *, encoder: EncoderLike = None, lexicon: LexiconLike = None, adapter: AdapterLike = None
    ) -> None:
        """lexicon: used by the recipes of its level; the others take the shipped ones. adapter: of the system imrnn."""
        self._source = encoder
        self._adapter = adapter
        self._encoder: Encoder | None = None
        self._own: dict[str, Encoder] = {}
        self._lexicons: dict[tuple[str, int, str, bool], Lexicon] = {}
        self.given: Lexicon | None = None if lexicon is None else lexicons.load(lexicon)

    @property
    def encoder(self) -> Encoder:
        """The given encoder, or that of the given lexicon, or the default.

        A lexicon whose encoder was trained with it keeps that one to itself: others use what it was made from.
        """
        if self._encoder is None:
            own = DEFAULT
            if self.given is not None:
                changed = self.given.own_encoder
                own = self.given.encoder_id if changed is None else changed.base
            self._encoder = load_encoder(own if self._source is None else self._source)
        return self._encoder

    def encoder_for(self, lexicon: Lexicon) -> Encoder:
        """The encoder that a lexicon is used with here."""
        if lexicon.own_encoder is None or self._source is not None:
            return self.encoder
        if lexicon.encoder_id not in self._own:
            self._own[lexicon.encoder_id] = load_encoder(lexicon.encoder_id)
        return self._own[lexicon.encoder_id]

    def lexicon(self, recipe: Recipe) -> Lexicon:
        """The lexicon that a recipe is used with here."""
        given = self.given
        of_winners = given is not None and given.sae.config.architecture == "winners"
        if given is not None and given.info.level == recipe.level and (recipe.winners or not of_winners):
            return given
        key = (recipe.level, recipe.k, recipe.match, recipe.winners)
        if key not in self._lexicons:
            self._lexicons[key] = lexicons.load(None, recipe=recipe)
        return self._lexicons[key]

    def system(self, which: str | Recipe) -> System:
        """A baseline, or a recipe, by name; a recipe may be given itself."""
        if which == "dense":
            return Dense(self.encoder)
        if which == "bm25":
            return Lexical()
        if which == ADAPTED:
            return self.adapted()
        if isinstance(which, str) and which not in recipes.RECIPES and not which.endswith(".json"):
            raise NotFoundError(f'no system "{which}"; systems: {", ".join((*recipes.RECIPES, *BASELINES, ADAPTED))}')
        return self.recipe(which)

    def adapted(self) -> Adapted:
        """The encoder's vectors under the given adapter, over all documents."""
        if self._adapter is None:
            raise InputError(
                f"the system {ADAPTED} needs an adapter: --adapter DIR; train one: "
                "lexent adapt train COLLECTION --out DIR"
            )
        return imrnn(adapters.load(self._adapter), self.encoder)

    def recipe(self, recipe: str | Recipe) -> Latent | TokenMatch:
        """A recipe, however it matches."""
        chosen = recipes.get(recipe)
        if chosen.match == "documents":
            return self.latent(chosen)
        lexicon = self.lexicon(chosen)
        lexicon.check(self.encoder, level=chosen.level)
        return TokenMatch(chosen, lexicon, self.encoder)

    def concepts_alone(self, recipe: str | Recipe) -> Latent:
        """As `latent`, for what looks into concepts; a MismatchError where the recipe searches by words too."""
        chosen = recipes.get(recipe)
        if chosen.words:
            raise MismatchError(
                f'the recipe "{chosen.name}" searches by words beside concepts, and this looks at concepts alone; take '
                "a recipe without words, for example latent-terms"
            )
        return self.latent(chosen)

    def latent(self, recipe: str | Recipe) -> Latent:
        """A recipe that matches by concepts of whole documents; a MismatchError where it does not."""
        chosen = recipes.get(recipe)
        if chosen.match != "documents":
            raise MismatchError(
                f'the recipe "{chosen.name}" matches tokens, and this looks at concepts of whole documents; take a '
                "recipe that matches by those, for example latent-terms"
            )
        lexicon = self.lexicon(chosen)
        encoder = self.encoder_for(lexicon)
        lexicon.check(encoder, level=chosen.level)
        return Latent(chosen, lexicon, encoder)
