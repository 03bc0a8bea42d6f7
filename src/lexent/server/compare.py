"""The same query under several systems, side by side: concepts, words, and dense vectors where the index keeps them."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from lexent.server.bodies import CompareBody
from lexent.server.queries import checked
from lexent.server.served import ServedIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from lexent.search.view import View

Ranking = list[tuple[int, float]]
"""Positions with scores, best first."""


def compare(served: ServedIndex, body: CompareBody) -> dict[str, Any]:
    """The hits of each system for a query."""
    query, view = checked(body, served.limits), served.view()
    systems = [
        _system(view, view.recipe.name, "concepts", "named concepts", lambda: _concepts(view, query, body.k)),
        _dense(view, query, body.k),
        _system(view, "bm25", "words", "BM25 over the words themselves", lambda: _words(view, query, body.k)),
    ]
    return {"query": query, "systems": systems}


def _system(view: View, name: str, kind: str, about: str, rank: Callable[[], Ranking]) -> dict[str, Any]:
    start = perf_counter()
    found = rank()
    documents = view.documents.at([position for position, _ in found])
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


def _concepts(view: View, query: str, k: int) -> Ranking:
    found = view.search_many([query], k=k)[0]
    return [(hit.position, hit.score) for hit in found.hits]


def _words(view: View, query: str, k: int) -> Ranking:
    words = view.lexical()
    weighed = words.query(query)
    found = words.searcher.top_weighted(weighed.vectors(words.searcher.size), k)
    pairs = zip(found.positions[0].tolist(), found.scores[0].tolist(), strict=True)
    return [(position, score) for position, score in pairs if position >= 0]


def _dense(view: View, query: str, k: int) -> dict[str, Any]:
    about = f"cosine of whole-text vectors, {view.manifest.encoder.id}"
    if "dense" not in view.manifest.extras:
        why = "This index keeps no dense vectors. Build it with them: lexent index CORPUS --with dense,lexical"
        return {"name": "dense", "kind": "dense", "about": about, "hits": [], "missing": why, "took_ms": 0.0}

    def rank() -> Ranking:
        found = view.dense_search(query, k=k)
        places = view.documents.positions([hit.id for hit in found])
        return [(places[hit.id], hit.score) for hit in found]

    return _system(view, "dense", "dense", about, rank)
