"""What a system stores and touches: FLOPs, lengths, index size and vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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

    def to_json(self) -> dict[str, float]:
        """The values as JSON has them."""
        return asdict(self)


def of_concepts(scorer: DocumentScorer, queries: SparseVectors) -> Usage:
    """queries: as `DocumentScorer.top` takes them. Concepts of a query that weigh nothing are not counted."""
    weights = scorer.query_weights(queries)
    used = weights.ids[weights.values != 0]
    asked = np.bincount(used, minlength=scorer.size)
    return Usage(
        flops=_shared(asked, len(queries), scorer.df, scorer.n_documents),
        document_length=scorer.n_postings / max(scorer.n_documents, 1),
        query_length=len(used) / max(len(queries), 1),
        bytes=sum(segment.bytes for segment in scorer.segments),
        vocabulary=int(np.count_nonzero(scorer.df)),
    )


def of_words(index: WordIndex, queries: Sequence[Sequence[str]]) -> Usage:
    """The usage of a lexical index by these queries."""
    numbers: dict[str, int] = {}
    documents = [{numbers.setdefault(word, len(numbers)) for word in text} for text in index.documents]
    df = np.zeros(len(numbers), np.int64)
    for text in documents:
        df[list(text)] += 1
    asked = np.zeros(len(numbers), np.int64)
    known = [{numbers[word] for word in text if word in numbers} for text in queries]
    for query in known:
        asked[list(query)] += 1
    return Usage(
        flops=_shared(asked, len(queries), df, len(documents)),
        document_length=int(df.sum()) / max(len(documents), 1),
        query_length=int(asked.sum()) / max(len(queries), 1),
        bytes=index.bytes,
        vocabulary=len(numbers),
    )


def of_dense(n_documents: int, dim: int) -> Usage:
    """Every dimension of every pair is multiplied."""
    return Usage(float(dim), float(dim), float(dim), 4 * dim * n_documents, dim)


def _shared(asked: NDArray[np.int64], n_queries: int, df: NDArray[np.int64], n_documents: int) -> float:
    return float((asked / max(n_queries, 1)) @ (df / max(n_documents, 1)))
