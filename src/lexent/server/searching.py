"""Answers to queries: the same values as the Python API gives, as JSON has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from lexent.errors import InputError
from lexent.explain.contributions import shared_terms
from lexent.explain.ranking import best_passage, why_ranked
from lexent.indexing.filters import Filter
from lexent.server import turns
from lexent.server.bodies import CompareBody, ExplainBody, SearchBody
from lexent.server.replies import CompareReply, RankedDocument, System
from lexent.server.served import ServedIndex
from lexent.server.word_attribution import behind, matches

if TYPE_CHECKING:
    from lexent.search.document_scorer import Masks
    from lexent.search.results import DenseHit, Hit
    from lexent.search.searcher import Searcher
    from lexent.types import Document

Ranking = Iterable[tuple["Document | Hit | DenseHit", float]]
"""Documents with scores, best first."""
SHORT_QUERY = 64
"""Characters that every encoder reads: a query of no more is not tokenized to find out."""
NO_VECTORS = "This index keeps no dense vectors. Build it with them: lexent index CORPUS --with dense,lexical"


def search(served: ServedIndex, body: SearchBody) -> dict[str, Any]:
    """The hits of a query with their contributions."""
    start = perf_counter()
    searcher = body.searcher(served)
    if body.k > served.limits.k:
        raise InputError(f"k is {body.k:,}; allowed: at most {served.limits.k:,}")
    how: dict[str, Any] = {
        "where": body.filter,
        "idf_of_subset": body.idf_of_subset,
        "mode": body.mode,
        "unit": body.unit,
        "min_score": body.min_score,
        "min_strength": body.min_strength,
    }
    how |= body.weighing
    with turns.taken():
        found = searcher.search_many([body.query], k=body.k, **how)[0]
        names = {concept.id: concept.label for concept in found.concepts}
        hits = [hit_of(hit, names, explained=body.explain, contributions=body.contributions) for hit in found.hits]
    if body.words and hits:
        positions = [hit.position for hit in found.hits]
        for hit, words in zip(hits, matches(searcher, found.hits[0].query, positions), strict=True):
            hit["words"] = words
    return {
        "query": found.query,
        "approximate": found.approximate,
        "groups": found.groups,
        "concepts": found.concepts,
        "added": found.added,
        "steered": found.steered,
        "hits": hits,
        "read": _read(searcher, body.query),
        "generation": searcher.manifest.generation,
        "took_ms": _milliseconds(start),
    }


def _read(searcher: Searcher, query: str) -> int:
    """How many characters of a query the encoder reads: up to its last token, and all where only blanks follow."""
    if len(query) <= SHORT_QUERY:
        return len(query)
    spans = searcher.encoder.tokenize([query], kind="query", specials=False)[0].spans
    stop = int(spans.max(initial=0))
    return stop if stop and query[stop:].strip() else len(query)  # 0: the encoder knows no places


def hit_of(hit: Hit, names: dict[int, str], *, explained: bool, contributions: int | None) -> dict[str, Any]:
    """As `Hit.to_dict`, in a fraction of its time: a hit has dozens of parts, and no object is made for each."""
    fields = ("rank", "id", "score", "strength", "title", "text", "metadata")
    found: dict[str, Any] = {name: getattr(hit, name) for name in fields}
    found["passages"] = hit.places()
    if explained:
        terms = shared_terms(hit.index, hit.query, hit.position)
        kept = terms[:contributions]
        found["groups"] = hit.index.lines(hit.query, hit.position, terms)
        found["contributions"] = [
            {
                "concept": term,
                "label": names[term],
                "query": query,
                "document": document,
                "value": value,
                "word": hit.index.is_word(term),
            }
            for term, query, document, value in kept
        ]
        found["rest"] = 0.0 + sum(value for *_, value in terms[len(kept) :])
        if hit.query.rows is not None:
            alignment = hit.align() if contributions is None else hit.align().top(contributions)
            found["alignment"] = alignment.tokens
    return found


def explain(served: ServedIndex, body: ExplainBody) -> dict[str, Any]:
    """Where a document stands for a query, and why not higher."""
    searcher = body.searcher(served)
    prepared = searcher.prepared([body.query], where=body.filter, **body.weighing)
    query = prepared.queries[0]
    position = best_passage(searcher, query, searcher.reader.position(body.document))
    found = why_ranked(searcher, query, position, body.document, allowed=prepared.allowed)
    chosen = [part.concept for part in found.explanation.contributions[: body.tokens]]
    groups = [group.to_dict() for group in found.explanation.groups]
    reply = {**found.to_dict(), "strength": searcher.strength(query, found.score), "groups": groups}
    if body.words:
        reply["words"] = matches(searcher, query, [position])[0]
    return {**reply, "tokens": behind(searcher, body.query, position, chosen)}


def compare(served: ServedIndex, body: CompareBody) -> CompareReply:
    """The hits of each system for a query: concepts, words, and dense vectors where the index keeps them.

    Steering and feedback move concepts only; a filter holds for all systems.
    """
    query, searcher = body.query, body.searcher(served)
    allowed = searcher.reader.matching(Filter.of(body.filter)) if body.filter else None
    about = f"cosine of whole-text vectors, {searcher.manifest.encoder.id}"

    def by_concepts() -> Ranking:
        return (
            (hit, hit.score) for hit in searcher.search_many([query], k=body.k, where=body.filter, **body.weighing)[0]
        )

    def by_vectors() -> Ranking:
        return ((hit, hit.score) for hit in searcher.dense_search(query, k=body.k, allowed=allowed))

    if "dense" in searcher.manifest.extras:
        dense = _system("dense", "dense", about, by_vectors)
    else:
        dense = System("dense", "dense", about, hits=[], took_ms=0.0, missing=NO_VECTORS)
    concepts = _system(searcher.recipe.name, "concepts", "named concepts", by_concepts)
    words = _system(
        "bm25", "words", "BM25 over the words themselves", lambda: _by_words(searcher, query, body.k, allowed)
    )
    return CompareReply(query, [concepts, dense, words])


def _by_words(searcher: Searcher, query: str, k: int, allowed: Masks | None) -> Ranking:
    words = searcher.lexical()
    found = words.top(words.query(query), k, allowed=allowed)
    positions = found.positions[0][found.positions[0] >= 0].tolist()
    return zip(searcher.reader.at(positions), found.scores[0].tolist(), strict=False)


def _system(name: str, kind: str, about: str, ranking: Callable[[], Ranking]) -> System:
    start = perf_counter()
    hits = [
        RankedDocument(rank, found.id, score, found.title or found.text[:120], found.text, found.metadata)
        for rank, (found, score) in enumerate(ranking(), start=1)
    ]
    return System(name, kind, about, hits, took_ms=_milliseconds(start))


def _milliseconds(start: float) -> float:
    """The time since `start`, which perf_counter gave."""
    return round((perf_counter() - start) * 1000, 3)
