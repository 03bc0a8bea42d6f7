"""Answers to searches: the same values as the Python API gives, as JSON has them."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.errors import InputError
from lexent.explain.ranking import why_ranked
from lexent.server.bodies import ExplainBody, SearchBody
from lexent.server.queries import checked, learning_of, steer_of, weighed
from lexent.server.served import ServedIndex
from lexent.server.word_attribution import behind

if TYPE_CHECKING:
    from lexent.search.results import Hit


def search(served: ServedIndex, body: SearchBody) -> dict[str, Any]:
    """The hits of a query with their contributions."""
    start = perf_counter()
    query, limits = checked(body, served.limits), served.limits
    if body.k > limits.k:
        raise InputError(f"k is {body.k:,}; allowed: at most {limits.k:,}")
    searcher = served.searcher(body.settings)
    found = searcher.search_many(
        [query],
        k=body.k,
        steer=steer_of(body),
        where=body.filter,
        idf_of_subset=body.idf_of_subset,
        mode=body.mode,
        learning=learning_of(body),
    )[0]
    names = {concept.id: concept.label for concept in found.concepts}
    return {
        "query": found.query,
        "approximate": found.approximate,
        "concepts": found.concepts,
        "added": found.added,
        "hits": [hit_of(hit, names, explained=body.explain, contributions=body.contributions) for hit in found.hits],
        "generation": searcher.manifest.generation,
        "took_ms": round((perf_counter() - start) * 1000, 3),
    }


def hit_of(hit: Hit, names: dict[int, str], *, explained: bool, contributions: int | None) -> dict[str, Any]:
    """As `Hit.to_dict`, with the metadata."""
    found: dict[str, Any] = {
        "rank": hit.rank,
        "id": hit.id,
        "score": hit.score,
        "title": hit.title,
        "text": hit.text,
        "metadata": hit.metadata,
    }
    if explained:
        found["contributions"], found["rest"] = parts_of(hit, names, contributions)
        if hit.query.rows is not None:
            alignment = hit.align() if contributions is None else hit.align().top(contributions)
            found["alignment"] = alignment.tokens
    return found


def parts_of(hit: Hit, names: dict[int, str], most: int | None) -> tuple[list[dict[str, Any]], float]:
    """As `Hit.explain`, straight to what JSON has: a hit has dozens of parts, and an object for each takes longer."""
    query = hit.query
    weights, values = hit.index.contributions(query, hit.position)
    there = np.flatnonzero(weights)
    order = there[np.lexsort((query.ids[there], -np.abs(values[there])))]
    kept, others = (order, order[:0]) if most is None else (order[:most], order[most:])
    sides = (query.ids[kept], query.weights[kept], weights[kept], values[kept])
    parts = [
        {"concept": concept, "label": names[concept], "query": ours, "document": theirs, "value": value}
        for concept, ours, theirs, value in zip(*(side.tolist() for side in sides), strict=True)
    ]
    return parts, 0.0 + sum(values[others].tolist())


def explain(served: ServedIndex, body: ExplainBody) -> dict[str, Any]:
    """Where a document stands for a query, and why not higher."""
    checked(body, served.limits)
    searcher = served.searcher(body.settings)
    position = searcher.reader.position(body.document)
    found = why_ranked(searcher, weighed(searcher, body), position, body.document)
    chosen = [part.concept for part in found.explanation.contributions[: body.tokens]]
    return {**found.to_dict(), "tokens": behind(served, searcher, body.query, position, chosen)}
