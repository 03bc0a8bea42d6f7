"""The section about latency: counting, weighing, and BM25 over words, on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexent.evaluation import baselines
from lexent.evaluation import measures as scoring
from lexent.evaluation.lexical import WordIndex, words
from lexent.studies.analyses.table import Table
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.counts import trials_of
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study

if TYPE_CHECKING:
    from lexent.search.document_scorer import DocumentScorer
    from lexent.types import SparseVectors

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
            asked = [weighed.take(np.array([row])) for row in range(len(weighed))]
            row = {
                "name": system.name if cap is None else f"{system.name}, query cap {cap}",
                "values": trials.scores(recipe).means,
                "terms": float(np.mean([len(query.ids) for query in asked])),
                "read": float(np.mean([scorer.df[query.ids].sum() for query in asked])),
                "bytes": sum(segment.bytes for segment in scorer.segments),
                "postings": scorer.n_postings,
            }
            yield row, partial(_search, scorer, asked)


def _search(scorer: DocumentScorer, asked: Sequence[SparseVectors], row: int) -> None:
    scorer.top_weighted(asked[row], TIMED_HITS, threads=1)


def _words(study: Study) -> Iterator[tuple[Result, Search]]:
    """bm25s over words, by each of its ways to compute; its queries are numbers of words, as ours are of units."""
    collection = study.collection
    run = baselines.bm25(collection, k=1000)
    values = scoring.score(collection.qrels, run, scoring.parse(list(study.measures))).means
    split = words(list(collection.queries.values()))
    for backend in BACKENDS:
        index = WordIndex.of(collection.texts, backend=backend)
        if index.retriever is None:
            continue
        known, starts = index.retriever.vocab_dict, np.asarray(index.retriever.scores["indptr"], np.int64)
        asked = [[known[word] for word in text if word in known] for text in split]
        row = {
            "name": f"bm25s, {backend}",
            "values": values,
            "terms": float(np.mean([len(query) for query in asked])),
            "read": float(np.mean([np.diff(starts)[query].sum() for query in asked])),
            "bytes": index.bytes,
            "postings": int(starts[-1]),
        }
        yield row, partial(_search_words, index.retriever, asked, min(TIMED_HITS, len(collection.documents)))


def _search_words(retriever: Any, asked: Sequence[list[int]], k: int, row: int) -> None:
    if asked[row]:
        retriever.retrieve([asked[row]], k=k, show_progress=False, n_threads=0)


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


def _speed_tables(result: Result) -> list[Table]:
    measures = tuple(result["rows"][0]["values"])
    rows = tuple(
        (
            row["name"],
            *row["values"].values(),
            f"{row['ms']:.3f}",
            f"{row['ms_p95']:.3f}",
            f"{row['terms']:,.1f}",
            f"{row['read']:,.0f}",
            f"{row['bytes'] / 1e6:,.2f}",
            f"{row['bytes'] / max(row['postings'], 1):.2f}",
        )
        for row in result["rows"]
    )
    head = ("search", *measures, "ms", "ms, 95 %", "terms", "postings", "index MB", "bytes a posting")
    note = (
        f"{result['documents']:,} documents, {result['queries']:,} queries; ms: the median search for {TIMED_HITS} "
        "hits on one thread, the query already coded or split into words; terms: units or words of a query; "
        "postings: on their lists; a list's fixed costs weigh more in a small collection"
    )
    return [Table("counting, weighing, and BM25 over words", head, rows, note)]


def _speed_figures(result: Result) -> list[Figure]:
    values = {row["name"]: row["ms"] for row in result["rows"]}
    draw = partial(plots.bars, values, label="ms a search", ours={name for name in values if name.startswith("uhd")})
    return [Figure(draw, "Latency of a search on one thread, the query already coded")]


SECTIONS = (
    Section(
        "speed",
        "Latency and size",
        "Is counting faster and smaller than weighing, and how does it compare with BM25 over words?",
        _speed,
        _speed_tables,
        _speed_figures,
        reading="Times are of this machine and of a small collection; make bench-uhd has more passages. What coding a "
        "query takes comes on top, as splitting it into words does.",
        papers=("uhd",),
    ),
)
