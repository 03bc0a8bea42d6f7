"""Replies about concepts: pages of them, and the details of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lexent.server.served import ServedIndex
from lexent.server.word_attribution import Coded, coded_documents
from lexent.types import SparseVectors

if TYPE_CHECKING:
    from lexent.lexicon import Concept
    from lexent.search.searcher import Searcher

Sort = Literal["documents", "frequency", "id", "label"]
Category = Literal["lexical", "narrow", "broad", "unknown"]

HISTOGRAM_BINS = 24
"""Bars of a histogram."""
CO_OCCURRENCE_DOCUMENTS = 400
"""Documents, those with most of a concept, that are looked at for what stands beside it."""
MIN_SHARED_DOCUMENTS = 3
"""Documents that two concepts must share to be called neighbours in text."""
RANK_CURVE_POINTS = 160
"""Points of the curve of ranks and frequencies."""
QUANTILES = (("top", 0.0), ("upper quarter", 0.25), ("middle", 0.5), ("lower quarter", 0.75), ("bottom", 1.0))
EXAMPLES_PER_QUANTILE = 2
"""Examples of each quantile."""
EXAMPLE_MARGIN_CHARS = 140
"""Characters of an example on each side of the word that raised the concept most."""


def listed(
    served: ServedIndex, *, find: str, category: Category | None, sort: Sort, live: bool, limit: int, page: int
) -> dict[str, Any]:
    """A page of concepts; those whose names have the words of `find`, best first, where some are given."""
    searcher = served.searcher()
    df = searcher.document_scorer.df
    if find.strip():
        found = [concept.id for concept in searcher.lexicon.find(find, limit=searcher.lexicon.size)]
    else:
        found = _sorted(served, searcher, sort)
    if live:
        found = [concept for concept in found if df[concept] > 0]
    if category is not None:
        found = [concept for concept in found if searcher.lexicon.concept(concept).category == category]
    shown = found[(page - 1) * limit : page * limit]
    rows = [row(searcher, searcher.lexicon.concept(concept)) for concept in shown]
    return {"lexicon": searcher.lexicon.name, "total": len(found), "page": page, "concepts": rows}


def row(searcher: Searcher, concept: Concept) -> dict[str, Any]:
    """A concept as one row of a list."""
    return {
        "id": concept.id,
        "label": concept.label,
        "category": concept.category,
        "frequency": concept.frequency,
        "documents": int(searcher.document_scorer.df[concept.id]),
        "source": concept.source,
    }


def shown(served: ServedIndex, name: str, *, limit: int) -> dict[str, Any]:
    """All that is known of a concept without encoding anything."""
    searcher = served.searcher()
    concept = searcher.lexicon.resolve(name)
    key = ("concept", searcher.manifest.generation, concept.id, limit)

    def make() -> dict[str, Any]:
        positions, weights = _weights(searcher, concept.id)
        near = searcher.lexicon.neighbours(concept.id, limit=limit)
        return {
            "neighbours": [{"id": other.id, "label": other.label, "cosine": cosine} for other, cosine in near],
            "together": _together(searcher, concept.id, positions[:CO_OCCURRENCE_DOCUMENTS], limit=limit),
            "histogram": _histogram(weights),
            "top_documents": _documents(searcher, positions[:limit], weights[:limit]),
        }

    known = served.cache.get_or_make(key, make)
    facts = {"plain": concept.plain, "lexicon": searcher.lexicon.name, "examples": list(concept.examples)}
    return {**row(searcher, concept), **facts, **known}


def quantiles(served: ServedIndex, name: str) -> dict[str, Any]:
    """Documents from the strongest to the weakest of a concept, cut around the words that raised it. Encodes them."""
    searcher = served.searcher()
    concept = searcher.lexicon.resolve(name).id
    key = ("quantiles", searcher.manifest.generation, concept)

    def make() -> dict[str, Any]:
        positions, weights = _weights(searcher, concept)
        chosen = _across(len(positions))
        places = [int(positions[place]) for place, _ in chosen]
        texts = coded_documents(served, searcher, places)
        documents = searcher.reader.at(places)
        examples = []
        for number, (place, quantile) in enumerate(chosen):
            head = {"quantile": quantile, "id": documents[number].id, "title": documents[number].title}
            cut = (
                _cut(texts[number], concept)
                if texts
                else {"text": documents[number].content[: 2 * EXAMPLE_MARGIN_CHARS]}
            )
            examples.append({**head, "weight": float(weights[place]), "tokens": [], **cut})
        return {"concept": concept, "examples": examples}

    found: dict[str, Any] = served.cache.get_or_make(key, make)
    return found


def lexicon(served: ServedIndex) -> dict[str, Any]:
    """The lexicon as this index uses it: how many concepts there are, and how often, by rank."""
    searcher = served.searcher()
    df = np.sort(searcher.document_scorer.df)[::-1]
    live = int(np.count_nonzero(df))
    ranks = np.unique(np.geomspace(1, max(1, live), RANK_CURVE_POINTS).astype(int)) if live else np.zeros(0, int)
    words = searcher.lexicon
    counts: dict[str, int] = {}
    for concept in words.concepts:
        counts[concept.category] = counts.get(concept.category, 0) + 1
    return {
        "name": words.name,
        "level": words.info.level,
        "encoder": words.encoder_id,
        "concepts": words.size,
        "live": live,
        "categories": counts,
        "ranks": ranks.tolist(),
        "documents": df[ranks - 1].tolist() if live else [],
    }


def _sorted(served: ServedIndex, searcher: Searcher, sort: Sort) -> list[int]:
    key = ("order", searcher.manifest.generation, sort)
    found: list[int] = served.cache.get_or_make(key, lambda: _order(searcher, sort))
    return found


def _order(searcher: Searcher, sort: Sort) -> list[int]:
    concepts, df = searcher.lexicon.concepts, searcher.document_scorer.df
    if sort == "documents":
        order: list[int] = np.argsort(-df, kind="stable").tolist()
        return order
    if sort == "frequency":
        return sorted(range(len(concepts)), key=lambda one: (-concepts[one].frequency, one))
    if sort == "label":
        return sorted(range(len(concepts)), key=lambda one: (concepts[one].label.casefold(), one))
    return list(range(len(concepts)))


def _weights(searcher: Searcher, concept: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The documents that have a concept, strongest first, and their stored weights."""
    scores, matched = searcher.document_scorer.scores(np.array([concept], np.int32), np.ones(1, np.float32))
    positions = np.flatnonzero(matched)
    order = np.lexsort((positions, -scores[positions]))
    return positions[order], scores[positions][order]


def _histogram(weights: NDArray[np.float64]) -> dict[str, Any]:
    if not len(weights):
        return {"edges": [], "counts": []}
    counts, edges = np.histogram(weights, bins=HISTOGRAM_BINS, range=(0.0, float(weights.max()) or 1.0))
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def _together(searcher: Searcher, concept: int, positions: NDArray[np.int64], *, limit: int) -> list[dict[str, Any]]:
    """Concepts that stand in the same documents far more often than in others.

    lift: how many times more often than in the whole index. Ordered by lift times the logarithm of the count, so that
    neither the rarest nor the commonest concepts fill the list.
    """
    if not len(positions):
        return []
    vectors: SparseVectors = searcher.document_scorer.documents(positions)
    counts = np.bincount(vectors.ids, minlength=searcher.document_scorer.size)
    counts[concept] = 0
    share, usual = counts / len(positions), searcher.document_scorer.df / max(1, searcher.document_scorer.n_documents)
    lift = np.divide(share, usual, out=np.zeros(len(share)), where=usual > 0)
    strength = np.where(
        counts >= min(MIN_SHARED_DOCUMENTS, len(positions)), np.log(np.maximum(lift, 1e-9)) * np.log1p(counts), 0.0
    )
    best = [int(one) for one in np.argsort(-strength, kind="stable")[:limit] if strength[one] > 0]
    return [
        {"id": one, "label": searcher.lexicon.label(one), "documents": int(counts[one]), "lift": float(lift[one])}
        for one in best
    ]


def _documents(searcher: Searcher, positions: NDArray[np.int64], weights: NDArray[np.float64]) -> list[dict[str, Any]]:
    found = searcher.reader.at(positions.tolist())
    return [
        {"id": document.id, "title": document.title, "weight": float(weight), "text": document.text}
        for document, weight in zip(found, weights, strict=True)
    ]


def _across(count: int) -> list[tuple[int, str]]:
    """Places in a list that is sorted, strongest first, with the name of the quantile; each place once."""
    found: dict[int, str] = {}
    for name, share in QUANTILES:
        start = min(round(share * (count - 1)), count - EXAMPLES_PER_QUANTILE)
        for place in range(max(0, start), min(count, max(0, start) + EXAMPLES_PER_QUANTILE)):
            found.setdefault(place, name)
    return list(found.items())


def _cut(text: Coded, concept: int) -> dict[str, Any]:
    """The text around the word that raised the concept most, with all such words in it."""
    shares = [share for share in text.shares(concept) if share.stop > share.start]
    middle = shares[0].start if shares else 0
    start = max(0, middle - EXAMPLE_MARGIN_CHARS)
    stop = min(len(text.text), max(middle + EXAMPLE_MARGIN_CHARS, start + 2 * EXAMPLE_MARGIN_CHARS))
    if start and " " in text.text[start:middle]:
        start += text.text[start:middle].index(" ") + 1
    if stop < len(text.text) and " " in text.text[middle + 1 : stop]:
        stop = text.text.rindex(" ", middle + 1, stop)
    inside = [
        {"token": share.token, "start": share.start - start, "stop": share.stop - start, "share": share.share}
        for share in shares
        if start <= share.start and share.stop <= stop
    ]
    return {"text": text.text[start:stop], "tokens": inside}
