"""Replies about concepts: pages of them, and the details of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lexent.lexicon.concepts import Category
from lexent.search.coded_text import CodedText
from lexent.server.audit_log import Caller
from lexent.server.replies import ConceptReply, ConceptRow, ConceptsReply, LexiconReply, QuantilesReply, RaisingWord
from lexent.server.served import ServedIndex

if TYPE_CHECKING:
    from lexent.lexicon import Concept
    from lexent.search.searcher import Searcher

Sort = Literal["documents", "frequency", "id", "label"]

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
) -> ConceptsReply:
    """A page of concepts; those whose names have the words of `find`, best first, where some are given."""
    searcher = served.searcher()
    df = searcher.document_scorer.df
    if find.strip():
        found = [concept.id for concept in searcher.lexicon.find(find, limit=searcher.lexicon.size)]
    else:
        found = served.cache.get_or_make(("order", searcher.manifest.generation, sort), lambda: _order(searcher, sort))
    if live:
        found = [concept for concept in found if df[concept] > 0]
    if category is not None:
        found = [concept for concept in found if searcher.lexicon.concept(concept).category == category]
    rows = [
        ConceptRow(**_facts(searcher, searcher.lexicon.concept(id))) for id in found[(page - 1) * limit : page * limit]
    ]
    return ConceptsReply(searcher.lexicon.name, len(found), page, rows)


def shown(served: ServedIndex, name: str, *, limit: int) -> ConceptReply:
    """All that is known of a concept without encoding anything."""
    searcher = served.searcher()
    concept = searcher.lexicon.resolve(name)
    key = ("concept", searcher.manifest.generation, concept.id, limit)

    def make() -> dict[str, Any]:
        positions, weights = _weights(searcher, concept.id)
        named = searcher.lexicon.concepts
        here = [RaisingWord(word, share, count) for word, share, count in named.raised_here(concept.id)]
        near = searcher.lexicon.neighbours(concept.id, limit=limit)
        return {
            "raised_here": here,
            "raised_by": [RaisingWord(word, share) for word, share in concept.raised_by],
            "former": [label for label, owner in named.former.items() if owner == concept.id],
            "neighbours": [{"id": other.id, "label": other.label, "cosine": cosine} for other, cosine in near],
            "together": _together(searcher, concept.id, positions[:CO_OCCURRENCE_DOCUMENTS], limit=limit),
            "histogram": _histogram(weights),
            "top_documents": [
                {"id": document.id, "title": document.title, "weight": weight, "text": document.text}
                for document, weight in zip(
                    searcher.reader.at(positions[:limit].tolist()), weights[:limit].tolist(), strict=True
                )
            ],
        }

    facts = {**_facts(searcher, concept), "plain": concept.plain, "examples": concept.examples}
    return ConceptReply(lexicon=searcher.lexicon.name, **facts, **served.cache.get_or_make(key, make))


def _facts(searcher: Searcher, concept: Concept) -> dict[str, Any]:
    """The fields of a concept's row."""
    names = ("id", "label", "category", "frequency", "source", "form")
    return {
        **{name: getattr(concept, name) for name in names},
        "documents": int(searcher.document_scorer.df[concept.id]),
    }


def renamed(served: ServedIndex, name: str, label: str | None, *, by: Caller) -> ConceptReply:
    """Gives a concept the user's label; None restores the lexicon's."""
    concept = served.index.lexicon.resolve(name).id
    served.rename(concept, label, by=by)
    return shown(served, str(concept), limit=10)


def quantiles(served: ServedIndex, name: str) -> QuantilesReply:
    """Documents from the strongest to the weakest of a concept, cut around the words that raised it. Encodes them."""
    searcher = served.searcher()
    concept = searcher.lexicon.resolve(name).id
    key = ("quantiles", searcher.manifest.generation, concept)

    def make() -> QuantilesReply:
        positions, weights = _weights(searcher, concept)
        chosen = _across(len(positions))
        places = [int(positions[place]) for place in chosen]
        documents = searcher.reader.at(places)
        texts = searcher.coded_documents(places) if searcher.recipe.level == "tokens" else []
        cuts = [_cut(text, concept) for text in texts] or [
            {"text": document.content[: 2 * EXAMPLE_MARGIN_CHARS], "tokens": []} for document in documents
        ]
        examples = [
            {"quantile": quantile, "id": document.id, "title": document.title, "weight": float(weights[place]), **cut}
            for (place, quantile), document, cut in zip(chosen.items(), documents, cuts, strict=True)
        ]
        return QuantilesReply(concept, examples)

    found: QuantilesReply = served.cache.get_or_make(key, make)
    return found


def lexicon(served: ServedIndex) -> LexiconReply:
    """The lexicon as this index uses it: how many concepts there are, and how often, by rank."""
    searcher = served.searcher()
    df = np.sort(searcher.document_scorer.df)[::-1]
    live = int(np.count_nonzero(df))
    ranks = np.unique(np.geomspace(1, max(1, live), RANK_CURVE_POINTS).astype(int)) if live else np.zeros(0, int)
    found = searcher.lexicon
    return LexiconReply(
        name=found.name,
        level=found.info.level,
        encoder=found.encoder_id,
        concepts=found.size,
        live=live,
        categories=Counter(concept.category for concept in found.concepts),
        ranks=ranks.tolist(),
        documents=df[ranks - 1].tolist() if live else [],
    )


def _order(searcher: Searcher, sort: Sort) -> list[int]:
    concepts, df = searcher.lexicon.concepts, searcher.document_scorer.df
    keys: dict[Sort, Callable[[int], Any]] = {
        "documents": lambda id: -df[id],
        "frequency": lambda id: -concepts[id].frequency,
        "label": lambda id: concepts[id].label.casefold(),
        "id": lambda id: id,
    }
    return sorted(range(len(concepts)), key=keys[sort])


def _weights(searcher: Searcher, concept: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The documents that have a concept, strongest first, and their stored weights."""
    scores, matched = searcher.document_scorer.scores(np.array([concept], np.int32), np.ones(1, np.float32))
    positions = np.flatnonzero(matched)
    positions = searcher.in_documents(positions[np.lexsort((positions, -scores[positions]))])
    return positions, scores[positions]


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
    counts = np.bincount(searcher.document_scorer.documents(positions).ids, minlength=searcher.document_scorer.size)
    counts[concept] = 0
    counts[searcher.manifest.lexicon.size :] = 0  # words
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


def _across(count: int) -> dict[int, str]:
    """Places in a list that is sorted, strongest first, with the name of the quantile."""
    found: dict[int, str] = {}
    for name, share in QUANTILES:
        start = min(round(share * (count - 1)), count - EXAMPLES_PER_QUANTILE)
        for place in range(max(0, start), min(count, max(0, start) + EXAMPLES_PER_QUANTILE)):
            found.setdefault(place, name)
    return found


def _cut(text: CodedText, concept: int) -> dict[str, Any]:
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
        replace(share, start=share.start - start, stop=share.stop - start)
        for share in shares
        if start <= share.start and share.stop <= stop
    ]
    return {"text": text.text[start:stop], "tokens": inside}
