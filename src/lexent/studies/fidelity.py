"""Is the code faithful? States rebuilt from their concepts, held against the states themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import unit
from lexent.encoders import DEFAULT, Encoder
from lexent.errors import InputError
from lexent.evaluation import baselines
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.pooling import pooling_of
from lexent.evaluation.progress import Progress, reporting
from lexent.evaluation.runs import from_top
from lexent.evaluation.systems import EncoderLike
from lexent.evaluation.vector_search import Top, blocks, nearest, nearest_by_cosine, spearman
from lexent.lexicon import Lexicon
from lexent.lexicon import lexicon as lexicons
from lexent.models import load_encoder
from lexent.nan_safe import mean, plain, ratio
from lexent.studies.maxsim_theory import Theory, theory
from lexent.studies.state_reconstruction import Tally, pooled_blocks, token_rebuilt
from lexent.types import Level

MEASURES = ("nDCG@10", "R@100")
SAMPLED_DOCUMENTS = 1_000
"""Documents whose token states are looked at; more are sampled."""
RANKED = (500, 50_000)
"""Queries and documents whose whole rankings are compared; more are sampled."""


@dataclass(frozen=True, slots=True)
class Fidelity:
    """What a lexicon keeps of the states with one k."""

    lexicon: str
    level: Level
    k: int
    size: int
    """How many latents there are."""
    documents: dict[str, Any]
    """states, nmse, cosine, active (mean and quantiles of the number of latents a state has) and live latents."""
    queries: dict[str, Any]
    dense: dict[str, float]
    """Of dense retrieval on the same documents."""
    measures: dict[str, float]
    """Of retrieval by the cosine of rebuilt vectors, on both sides; empty where the encoder's pooling is not known."""
    kept: dict[str, float]
    """The share of dense retrieval's values."""
    p_values: dict[str, float]
    """Paired t-test against dense retrieval, over queries."""
    spearman: float | None
    """Rank correlation of whole rankings with those of dense retrieval; mean over queries for which it is defined."""
    theory: Theory | None = None
    """Of a lexicon for MaxSim: how far its products are from those of states, and what bounds that."""


@dataclass(frozen=True, slots=True)
class FidelityReport:
    """One collection, one encoder, some lexicons, each with some k."""

    collection: str
    split: str
    encoder: str
    documents: int
    queries: int
    dense: dict[str, float]
    rows: tuple[Fidelity, ...]
    notes: tuple[str, ...]
    """What was sampled or left out."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for json.dumps; None where a measure is not defined."""
        found: dict[str, Any] = plain(asdict(self))
        return found


@reporting
def fidelity(
    collection: str | Path | Collection,
    *,
    lexicon: str | Path | Lexicon | Sequence[str | Path | Lexicon] | None = None,
    k: Sequence[int] = (),
    encoder: EncoderLike = None,
    measures: str | Sequence[str] = MEASURES,
    split: str | None = None,
    sample: int = SAMPLED_DOCUMENTS,
    seed: int = 0,
    progress: Progress | None = None,
) -> FidelityReport:
    """How much of the states, of retrieval and of rankings the codes keep.

    lexicon: one or several; all shipped ones for the encoder where none is given. k: latents a state is coded with; a
    quarter, a half and all of what the lexicon was trained with where none is given. sample: documents whose token
    states are looked at (judged ones first), where the collection has more; pooled states are all looked at.
    """
    wanted = scoring.parse(measures)
    if any(each < 1 for each in k):
        raise InputError(f"k is {', '.join(map(str, k))}; allowed: 1 or more")
    if sample < 1:
        raise InputError(f"sample is {sample}; allowed: 1 or more")
    given = _lexicons(lexicon, encoder)
    model = load_encoder(given[0].encoder_id if encoder is None else encoder)
    for each in given:
        each.check(model)
    whole = load(collection, split=split)
    notes: list[str] = []
    rows: list[Fidelity] = []
    documents = baselines.pooled_states(model, whole.texts, kind="document")
    queries = baselines.pooled_states(model, whole.query_texts, kind="query")
    dense = _Dense(whole, documents, queries, wanted)
    for each in given:
        own = each.sae.config.k
        ks = _known(each, sorted(set(k) or {max(own // 4, 1), max(own // 2, 1), own}), notes)
        if not ks:
            continue
        if each.info.level == "pooled":
            rows += _pooled(dense, each, ks=ks, seed=seed, notes=notes)
            continue
        part = whole.sampled(documents=sample, seed=seed)
        if part is not whole:
            counts = (len(part.documents), len(whole.documents), len(part.queries), len(whole.queries))
            notes.append(
                "{}: token states of {:,} of {:,} documents and of {:,} of {:,} queries; its retrieval, and dense "
                "retrieval beside it, is among these documents".format(each.name, *counts)
            )
        beside = dense if part is whole else dense.within(part)
        found = _tokens(beside, each, model, ks=ks, notes=notes)
        checked = theory(part, each, model, ks=ks, seed=seed) if each.info.match == "maxsim" else []
        rows += [replace(row, theory=one) for row, one in zip(found, checked, strict=True)] if checked else found
    if not rows:
        raise InputError("; ".join(notes))
    return FidelityReport(
        collection=whole.name,
        split=whole.split,
        encoder=model.id,
        documents=len(whole.documents),
        queries=len(whole.queries),
        dense=dense.scores.means,
        rows=tuple(rows),
        notes=tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True)
class _Dense:
    """Dense retrieval on a collection: its vectors, and how good it is."""

    collection: Collection
    documents: NDArray[np.float32]  # [n, d_in], as the encoder gives them
    queries: NDArray[np.float32]
    measures: list[Any]

    @property
    def depth(self) -> int:
        return max(scoring.WHOLE_DEPTH, scoring.depth(self.measures))

    @cached_property
    def scores(self) -> scoring.Scores:
        return self.scored(nearest_by_cosine(self.queries, self.documents, k=self.depth + 1))

    def scored(self, top: Top) -> scoring.Scores:
        """How good a ranking is: positions and scores, a row a query."""
        run = from_top(self.collection, top[0], scores=top[1], depth=self.depth)
        return scoring.score(self.collection.qrels, run, self.measures)

    def within(self, part: Collection) -> _Dense:
        """The same among some of the documents and queries; nothing is encoded again."""
        places, rows = self.collection.positions, {query: row for row, query in enumerate(self.collection.queries)}
        documents = self.documents[[places[document.id] for document in part.documents]]
        return _Dense(part, documents, self.queries[[rows[query] for query in part.queries]], self.measures)


def _pooled(dense: _Dense, lexicon: Lexicon, *, ks: Sequence[int], seed: int, notes: list[str]) -> list[Fidelity]:
    found, parts = [], partial(blocks, n_queries=len(dense.queries))
    random = np.random.default_rng(seed)
    sizes = zip((len(dense.queries), len(dense.documents)), RANKED, strict=True)
    q, d = (np.sort(random.permutation(size)[:most]) for size, most in sizes)
    if len(d) < len(dense.documents) or len(q) < len(dense.queries):
        notes.append(f"rank correlation over {len(q):,} queries and {len(d):,} documents, drawn at random")
    for k in ks:
        on_documents, on_queries = Tally(lexicon.size), Tally(lexicon.size)
        queries = np.concatenate(list(pooled_blocks(parts(dense.queries), lexicon, k=k, tally=on_queries)))
        rebuilt = pooled_blocks(parts(dense.documents), lexicon, k=k, tally=on_documents)
        top = nearest(queries, rebuilt, k=dense.depth + 1)
        made = np.concatenate(list(pooled_blocks(parts(dense.documents[d]), lexicon, k=k)))
        alike = mean(spearman((unit(dense.queries[q]), queries[q]), (unit(dense.documents[d]), made)))
        found.append(_result(lexicon, k, (on_documents, on_queries), dense.scored(top), alike, dense.scores))
    return found


def _tokens(
    dense: _Dense, lexicon: Lexicon, encoder: Encoder, *, ks: Sequence[int], notes: list[str]
) -> list[Fidelity]:
    texts = dense.collection.query_texts
    pooling = pooling_of(encoder, texts, kind="query")
    if pooling is None:
        notes.append(
            f"{lexicon.name}: how {encoder.id} makes one vector of token states is not known, so nothing is retrieved "
            "with rebuilt ones"
        )
    common: dict[str, Any] = {"encoder": encoder, "lexicon": lexicon, "ks": ks, "pooling": pooling}
    queries = token_rebuilt(texts, kind="query", **common)
    documents = token_rebuilt(dense.collection.texts, kind="document", **common)
    found = []
    for k in ks:
        scores, alike = scoring.Scores({}, {}), None
        if pooling is not None:
            scores = dense.scored(nearest(queries[k].rows, [documents[k].rows], k=dense.depth + 1))
            q = slice(0, RANKED[0])
            sides = (unit(dense.queries[q]), queries[k].rows[q]), (unit(dense.documents), documents[k].rows)
            alike = mean(spearman(*sides))
        found.append(_result(lexicon, k, (documents[k].tally, queries[k].tally), scores, alike, dense.scores))
    return found


def _result(
    lexicon: Lexicon,
    k: int,
    tallies: tuple[Tally, Tally],
    scores: scoring.Scores,
    alike: float | None,
    dense: scoring.Scores,
) -> Fidelity:
    return Fidelity(
        lexicon=lexicon.name,
        level=lexicon.info.level,
        k=k,
        size=lexicon.size,
        documents=tallies[0].to_dict(),
        queries=tallies[1].to_dict(),
        dense=dense.means,
        measures=scores.means,
        kept={name: ratio(value, dense.means[name]) for name, value in scores.means.items()},
        p_values=scores.p_values(dense),
        spearman=alike,
    )


def _lexicons(given: Any, encoder: EncoderLike) -> list[Lexicon]:
    if given is not None:
        several = [given] if isinstance(given, str | Path) or not isinstance(given, Sequence) else list(given)
        return [lexicons.load(each) for each in several]
    known = [lexicons.load(name) for name in lexicons.shipped()]
    wanted = DEFAULT if encoder is None else None
    fingerprint = None if encoder is None else load_encoder(encoder).fingerprint
    found = [each for each in known if each.encoder_id == wanted or each.encoder_fingerprint == fingerprint]
    if not found:
        raise InputError("no shipped lexicon is for this encoder; name one: --lexicon DIR, or train one: lexent train")
    return found


def _known(lexicon: Lexicon, ks: Sequence[int], notes: list[str]) -> list[int]:
    """Those that the lexicon can be used with: one with thresholds has them for a range of k."""
    if lexicon.sae.config.architecture == "topk":
        return list(ks)
    found = []
    for k in ks:
        try:
            lexicon.sae.config.threshold_for(k)
            found.append(k)
        except InputError as error:
            notes.append(f"{lexicon.name}: {error}")
    return found
