"""The same query under several systems, side by side: concepts, words, and dense vectors where the index keeps them."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from lexent.server.bodies import CompareBody
from lexent.server.queries import checked
from lexent.server.served import ServedIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from lexent.search.searcher import Searcher

Ranking = list[tuple[int, float]]
"""Positions with scores, best first."""


def compare(served: ServedIndex, body: CompareBody) -> dict[str, Any]:
    """The hits of each system for a query."""
    query, searcher = checked(body, served.limits), served.searcher()
    systems = [
        _system(
            searcher, searcher.recipe.name, "concepts", "named concepts", lambda: _concepts(searcher, query, body.k)
        ),
        _dense(searcher, query, body.k),
        _system(searcher, "bm25", "words", "BM25 over the words themselves", lambda: _words(searcher, query, body.k)),
    ]
    return {"query": query, "systems": systems}


def _system(searcher: Searcher, name: str, kind: str, about: str, rank: Callable[[], Ranking]) -> dict[str, Any]:
    start = perf_counter()
    found = rank()
    documents = searcher.reader.at([position for position, _ in found])
    hits = [
        {
            "rank": rank,
            "id": document.id,
            "score": score,
            "title": document.title or document.text[:120],
            "metadata": document.metadata,
        }
        for rank, (document, (_, score)) in enumerate(zip(documents, found, strict=True), start=1)
    ]
    took = round((perf_counter() - start) * 1000, 3)
    return {"name": name, "kind": kind, "about": about, "hits": hits, "missing": None, "took_ms": took}


def _concepts(searcher: Searcher, query: str, k: int) -> Ranking:
    found = searcher.search_many([query], k=k)[0]
    return [(hit.position, hit.score) for hit in found.hits]


def _words(searcher: Searcher, query: str, k: int) -> Ranking:
    words = searcher.lexical()
    weighed = words.query(query)
    found = words.document_scorer.top_weighted(weighed.vectors(words.document_scorer.size), k)
    pairs = zip(found.positions[0].tolist(), found.scores[0].tolist(), strict=True)
    return [(position, score) for position, score in pairs if position >= 0]


def _dense(searcher: Searcher, query: str, k: int) -> dict[str, Any]:
    about = f"cosine of whole-text vectors, {searcher.manifest.encoder.id}"
    if "dense" not in searcher.manifest.extras:
        why = "This index keeps no dense vectors. Build it with them: lexent index CORPUS --with dense,lexical"
        return {"name": "dense", "kind": "dense", "about": about, "hits": [], "missing": why, "took_ms": 0.0}

    def rank() -> Ranking:
        found = searcher.dense_search(query, k=k)
        places = searcher.reader.positions([hit.id for hit in found])
        return [(places[hit.id], hit.score) for hit in found]

    return _system(searcher, "dense", "dense", about, rank)
