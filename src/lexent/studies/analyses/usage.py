"""What a system stores and touches: FLOPs, lengths, index size and vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lexent.studies.analyses.table import Cell
from lexent.types import SparseVectors

if TYPE_CHECKING:
    from lexent.evaluation.lexical import WordIndex
    from lexent.search.document_scorer import DocumentScorer

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
