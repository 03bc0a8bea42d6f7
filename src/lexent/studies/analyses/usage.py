"""The cost of systems beside their quality: FLOPs, lengths, index size and vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.errors import InputError
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.lexical import WordIndex, words
from lexent.evaluation.passages import Runner
from lexent.evaluation.systems import Dense, Latent, Lexical, System
from lexent.studies.analyses.table import Cell, Table
from lexent.types import SparseVectors

if TYPE_CHECKING:
    from lexent.search.document_scorer import DocumentScorer

RANKING_DEPTH = 1000
HEAD = ("FLOPs", "doc. length", "query length", "index MB", "vocabulary")


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one system on one collection. A term is a concept, a word, or a dimension of a dense vector."""

    flops: float
    """Terms that a query and a document are expected to share: the sum of p_query * p_document over terms."""
    document_length: float
    """Terms of a document, the mean."""
    query_length: float
    """Terms of a query that count, the mean."""
    bytes: int
    """What a search reads: packed lists, bm25s's arrays, or float32 rows."""
    vocabulary: int
    """Terms that any document has."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Under `HEAD`."""
        lengths = f"{self.document_length:,.1f}", f"{self.query_length:,.1f}"
        return f"{self.flops:,.2f}", *lengths, f"{self.bytes / 1e6:,.2f}", self.vocabulary


def of_concepts(scorer: DocumentScorer, queries: SparseVectors) -> Usage:
    """queries: as `DocumentScorer.top` takes them. Concepts of a query that weigh nothing are not counted."""
    weights = scorer.query_weights(queries)
    used = weights.ids[weights.values != 0]
    n_documents, n_queries = max(scorer.n_documents, 1), max(len(queries), 1)
    return Usage(
        flops=float(scorer.df[used].sum()) / (n_queries * n_documents),
        document_length=scorer.n_postings / n_documents,
        query_length=len(used) / n_queries,
        bytes=sum(segment.bytes for segment in scorer.segments),
        vocabulary=int(np.count_nonzero(scorer.df)),
    )


def of_words(index: WordIndex, queries: Sequence[Sequence[str]]) -> Usage:
    """The usage of a lexical index by these queries."""
    df = Counter(word for text in index.documents for word in set(text))
    queried = Counter(word for text in queries for word in set(text) if word in df)
    n_documents, n_queries = max(len(index.documents), 1), max(len(queries), 1)
    return Usage(
        flops=sum(count * df[word] for word, count in queried.items()) / (n_queries * n_documents),
        document_length=df.total() / n_documents,
        query_length=queried.total() / n_queries,
        bytes=index.bytes,
        vocabulary=len(df),
    )


def of_dense(n_documents: int, dim: int) -> Usage:
    """Every dimension of every pair is multiplied."""
    return Usage(float(dim), float(dim), float(dim), 4 * dim * n_documents, dim)


@dataclass(frozen=True, slots=True)
class Cost:
    """One system: what it finds and what it takes."""

    system: str
    values: dict[str, float]
    """Measure to its mean over all queries."""
    usage: Usage

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        return {"system": self.system, "values": self.values, **asdict(self.usage)}


@dataclass(frozen=True, slots=True)
class Costs:
    """Systems side by side on one collection."""

    collection: str
    split: str
    documents: int
    rows: tuple[Cost, ...]

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        head = {"collection": self.collection, "split": self.split, "documents": self.documents}
        return {**head, "systems": [row.to_json() for row in self.rows]}

    def tables(self) -> list[Table]:
        """The results as tables."""
        measures = list(self.rows[0].values) if self.rows else []
        head = ("system", *measures, *HEAD)
        rows = tuple((row.system, *row.values.values(), *row.usage.cells) for row in self.rows)
        note = "FLOPs: terms that a query and a document are expected to share; a term is a concept, word or dimension"
        return [Table("quality and cost", head, rows, note)]


def costs(
    collection: Collection,
    systems: Sequence[System],
    *,
    measures: str | Sequence[str] = ("nDCG@10", "R@100"),
    depth: int = RANKING_DEPTH,
) -> Costs:
    """What each system finds, and what its index and its queries take."""
    wanted = scoring.parse(measures)
    runner, rows = Runner(collection, systems), []
    for system in systems:
        if isinstance(system, Latent):
            scorer = system.scorer(runner.searched(system))
            used = of_concepts(scorer, system.queries(runner.searched(system)))
        elif isinstance(system, Lexical):
            used = of_words(WordIndex.of(collection.texts), words(list(collection.queries.values())))
        elif isinstance(system, Dense):
            used = of_dense(len(runner.searched(system).documents), system.encoder.dim)
        else:
            raise InputError(f'the cost of "{system.name}" is not known; systems: dense, bm25, and recipes')
        run = runner.run(system, depth=depth)
        rows.append(Cost(system.name, scoring.score(collection.qrels, run, wanted).means, used))
    return Costs(collection.name, collection.split, len(collection.documents), tuple(rows))
