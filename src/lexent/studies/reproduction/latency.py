"""The section about latency: counting, weighing, and BM25 over words, on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.evaluation import baselines
from lexent.evaluation import measures as scoring
from lexent.evaluation.lexical import WordIndex, words
from lexent.studies.analyses.table import Table, measured
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.binary_retrieval import trials_of
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study

PAPER_QUERY_CAP = 100
"""The query cap of the paper's best row."""
TIMED_HITS = 10
"""Hits of a search that is timed."""
TIMING_ROUNDS = 3
MAX_TIMED_QUERIES = 300
"""Queries that are timed, at most."""
BACKENDS = ("numba", "numpy")
"""Of bm25s."""

Search = Callable[[int], Any]
"""Searches for the query of that number."""


def _speed(study: Study) -> Result:
    found = [*_concepts(study), *_words(study)]
    n = min(len(study.collection.queries), MAX_TIMED_QUERIES)
    rows = []
    for (row, _), times in zip(found, _raced([search for _, search in found], n), strict=True):
        rows.append({**row, "ms": float(np.median(times)), "ms_p95": float(np.quantile(times, 0.95))})
    return {"rows": rows, "documents": len(study.collection.documents), "queries": n}


def _concepts(study: Study) -> Iterator[tuple[Result, Search]]:
    """Each recipe as it is, and with the paper's cap."""
    for system in study.systems:
        trials = trials_of(study, system)
        for cap in dict.fromkeys((system.recipe.query_cap, PAPER_QUERY_CAP)):
            recipe = system.recipe.having(query_cap=cap)
            scorer = trials.scorer(recipe)
            weighed = scorer.query_weights(trials.queries(recipe))
            queries = [weighed.take(np.array([row])) for row in range(len(weighed))]
            row = {
                "name": system.name if cap is None else f"{system.name}, query cap {cap}",
                "values": trials.scores(recipe).means,
                "terms": float(np.mean([len(query.ids) for query in queries])),
                "read": float(np.mean([scorer.df[query.ids].sum() for query in queries])),
                "bytes": sum(segment.bytes for segment in scorer.segments),
                "postings": scorer.n_postings,
            }

            def search(number: int, scorer: Any = scorer, queries: Any = queries) -> None:
                scorer.top_weighted(queries[number], TIMED_HITS, threads=1)

            yield row, search


def _words(study: Study) -> Iterator[tuple[Result, Search]]:
    """bm25s over words, with each of its backends; its queries are numbers of words, as ours are of units."""
    collection = study.collection
    run = baselines.bm25(collection, k=1000)
    values = scoring.score(collection.qrels, run, scoring.parse(list(study.measures))).means
    split = words(list(collection.queries.values()))
    k = min(TIMED_HITS, len(collection.documents))
    for backend in BACKENDS:
        index = WordIndex.of(collection.texts, backend=backend)
        if index.retriever is None:
            continue
        known, starts = index.retriever.vocab_dict, np.asarray(index.retriever.scores["indptr"], np.int64)
        queries = [[known[word] for word in text if word in known] for text in split]
        row = {
            "name": f"bm25s, {backend}",
            "values": values,
            "terms": float(np.mean([len(query) for query in queries])),
            "read": float(np.mean([np.diff(starts)[query].sum() for query in queries])),
            "bytes": index.bytes,
            "postings": int(starts[-1]),
        }

        def search(number: int, retriever: Any = index.retriever, queries: Any = queries) -> None:
            if queries[number]:
                retriever.retrieve([queries[number]], k=k, show_progress=False, n_threads=0)

        yield row, search


def _raced(searches: Sequence[Search], n: int) -> NDArray[np.float64]:
    """Milliseconds of every query by each search, the median of rounds in which they take turns."""
    taken = np.zeros((len(searches), TIMING_ROUNDS, n))
    for search in searches:
        search(0)  # compiles
    for number in range(TIMING_ROUNDS):
        for place, search in enumerate(searches):
            for row in range(n):
                start = perf_counter()
                search(row)
                taken[place, number, row] = 1000 * (perf_counter() - start)
    found: NDArray[np.float64] = np.median(taken, axis=1)
    return found


def _show_speed(result: Result) -> list[Table | Figure]:
    columns = [
        ("search", "name"),
        *measured(result["rows"][0]["values"]),
        ("ms", "{ms:.3f}"),
        ("ms, 95 %", "{ms_p95:.3f}"),
        ("terms", "{terms:,.1f}"),
        ("postings", "{read:,.0f}"),
        ("index MB", lambda row: f"{row['bytes'] / 1e6:,.2f}"),
        ("bytes a posting", lambda row: f"{row['bytes'] / max(row['postings'], 1):.2f}"),
    ]
    note = (
        f"{result['documents']:,} documents, {result['queries']:,} queries; ms: the median search for {TIMED_HITS} "
        "hits on one thread, the query already coded or split into words; terms: units or words of a query; "
        "postings: on their lists; a list's fixed costs weigh more in a small collection"
    )
    values = {row["name"]: row["ms"] for row in result["rows"]}
    drawn = plots.bars(values, label="ms a search", ours={name for name in values if name.startswith("uhd")})
    return [
        Table.of("counting, weighing, and BM25 over words", result["rows"], columns, note),
        Figure(drawn, "Latency of a search on one thread, the query already coded"),
    ]


SECTIONS = (
    Section(
        "speed",
        "Latency and size",
        "Is counting faster and smaller than weighing, and how does it compare with BM25 over words?",
        _speed,
        _show_speed,
        reading="Times are of this machine and of a small collection; make bench-uhd has more passages. What coding a "
        "query takes comes on top, as splitting it into words does.",
        papers=("uhd",),
    ),
)
