"""A part of a collection whose token states are held, so that it is coded and searched many ways from one encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import unit
from lexent.bounded_cache import BoundedCache
from lexent.encoders.encoder import encode
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import counter
from lexent.evaluation.runs import from_top
from lexent.evaluation.systems import TokenMatch, packed
from lexent.indexing.forward.tokens import TokenStore
from lexent.search.maxsim_scorer import MaxSimScorer
from lexent.types import RowCodes, States

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon
    from lexent.recipes import Recipe
    from lexent.search.maxsim_scorer import MaxSimScorer
    from lexent.search.modes import Mode
    from lexent.search.query import Query
    from lexent.studies.reproduction.study import Study

DOCUMENTS_PER_STEP = 64
"""Documents that are coded at a time."""


@dataclass(frozen=True)
class EncodedCorpus:
    """Documents and their token states."""

    collection: Collection
    encoder: Encoder
    states: States
    _coded: dict[str, RowCodes] = field(default_factory=dict)

    @staticmethod
    def of(collection: Collection, encoder: Encoder) -> EncodedCorpus:
        """The token states of a collection, encoded once."""
        advance = counter("token states", kind="document", total=len(collection.documents))
        states = encode(encoder, collection.texts, kind="document", progress=advance)
        return EncodedCorpus(collection, encoder, States(states.tensor().cpu(), states.offsets))

    def codes(self, lexicon: Lexicon, k: int) -> RowCodes:
        """The k strongest latents of every token, as they are before they get the length 1."""
        found = self._coded.get(lexicon.hash)
        if found is None or found.ids.shape[1] < k:
            self._coded.clear()  # codes of one lexicon are large enough
            found = self._coded[lexicon.hash] = self._code(lexicon, k)
        # The strongest of a longer list are those of a shorter one.
        return RowCodes(found.ids[:, :k], found.values[:, :k], found.offsets)

    def _code(self, lexicon: Lexicon, k: int) -> RowCodes:
        parts = []
        offsets, n = self.states.offsets, len(self.collection.documents)
        advance = counter(lexicon.name, kind="document", total=n)
        for first in range(0, n, DOCUMENTS_PER_STEP):
            last = min(first + DOCUMENTS_PER_STEP, n)
            rows = self.states.values[int(offsets[first]) : int(offsets[last])]
            parts.append(lexicon.codes(States(rows, offsets[first : last + 1] - offsets[first]), k=k))
            advance(last - first)
        ids, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("ids", "values"))
        return RowCodes(ids, values, offsets)

    def searched(
        self, lexicon: Lexicon, recipe: Recipe, study: Study
    ) -> tuple[MaxSimScorer, list[Query], scoring.Scores]:
        """The documents packed as codes of a lexicon, the queries, and the measures of searching them."""
        found = scorer(self.codes(lexicon, recipe.k), lexicon, recipe)
        queries = TokenMatch(recipe, lexicon, self.encoder).queries(self.collection, found.document_scorer)
        return found, queries, quality(found, queries, self.collection, measures=study.measures)


def encoded_corpus(study: Study) -> EncodedCorpus:
    """Documents of the study, judged ones first, as many as its sizes say. Sections of one report share them."""
    part = study.collection.sampled(documents=study.sizes.tokens, seed=0)
    key = (study.content, study.encoder.fingerprint, study.sizes.tokens)
    return _encoded.get_or_make(key, lambda: EncodedCorpus.of(part, study.encoder))


_encoded: BoundedCache[tuple[str, str, int], EncodedCorpus] = BoundedCache(1)


def scorer(codes: RowCodes, lexicon: Lexicon, recipe: Recipe) -> MaxSimScorer:
    """Documents as an index packs them, from the codes of their tokens."""
    rows = RowCodes(codes.ids, unit(np.ascontiguousarray(codes.values)), codes.offsets)
    return packed(TokenStore.of(rows, size=lexicon.size), lexicon, recipe)


def quality(
    found: MaxSimScorer, queries: Sequence[Query], collection: Collection, *, measures: Sequence[str], mode: Mode = None
) -> scoring.Scores:
    """The measures of each query."""
    wanted = scoring.parse(list(measures))
    depth = scoring.depth(wanted)
    top = found.top(queries, depth + 1, mode=mode)
    run = from_top(collection, top.positions, scores=top.scores, depth=depth)
    return scoring.score(collection.qrels, run, wanted)


def speed(found: MaxSimScorer, queries: Sequence[Query], *, k: int, mode: Mode = None) -> dict[str, float]:
    """Milliseconds of a search on one thread, without encoding the query, and how many documents are scored."""
    found.top(queries[:1], k, mode=mode, threads=1)  # compiles
    times, scored = [], []
    for query in queries:
        start = perf_counter()
        found.top([query], k, mode=mode, threads=1)
        times.append(1000 * (perf_counter() - start))
        scored.append(found.scored(query, k, mode=mode))
    return {"ms": float(np.median(times)), "ms_p95": float(np.quantile(times, 0.95)), "scored": float(np.mean(scored))}


def joined(offsets: NDArray[np.int64], *, rows: int, seed: int) -> list[NDArray[np.int64]]:
    """Texts in groups of at least so many rows, drawn at random; what is left joins the last group."""
    groups: list[list[int]] = [[]]
    lengths = np.diff(offsets)
    for place in np.random.default_rng(seed).permutation(len(lengths)).tolist():
        if groups[-1] and lengths[groups[-1]].sum() >= rows:
            groups.append([])
        groups[-1].append(place)
    if len(groups) > 1 and lengths[groups[-1]].sum() < rows:
        rest = groups.pop()
        groups[-1] += rest
    return [np.array(group, np.int64) for group in groups]
