"""Words: what lexical BM25 counts, and its index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.errors import MissingExtraError


def words(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text that BM25 counts: lower-cased, without English stop words and single letters."""
    found: list[list[str]] = _library().tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)
    return found


def all_words(texts: Sequence[str]) -> list[list[str]]:
    """All words of each text, lower-cased: stop words and single letters too."""
    settings = {"stopwords": [], "token_pattern": r"(?u)\b\w+\b", "return_ids": False, "show_progress": False}
    found: list[list[str]] = _library().tokenize(list(texts), **settings)
    return found


@dataclass(frozen=True, slots=True)
class WordIndex:
    """BM25 over words: bm25s with its defaults."""

    documents: list[list[str]]
    retriever: Any
    """None where no document has a word: bm25s cannot index that."""

    @staticmethod
    def of(texts: Sequence[str], *, backend: str = "numpy") -> WordIndex:
        """backend: how bm25s computes, numpy or numba."""
        documents = words(texts)
        if not any(documents):
            return WordIndex(documents, None)
        retriever = _library().BM25(method="lucene", k1=1.5, b=0.75, backend=backend)
        retriever.index(documents, show_progress=False)
        return WordIndex(documents, retriever)

    @property
    def bytes(self) -> int:
        """All that a search reads of the postings; the words themselves come on top."""
        if self.retriever is None:
            return 0
        return sum(int(self.retriever.scores[part].nbytes) for part in ("data", "indices", "indptr"))

    def top(self, queries: Sequence[list[str]], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Positions and scores of the k best documents of each query, -1 where none is left that shares a word."""
        depth = min(k, len(self.documents))
        if self.retriever is None:
            return np.full((len(queries), depth), -1, np.int64), np.zeros((len(queries), depth), np.float32)
        found, scores = self.retriever.retrieve(list(queries), k=depth, show_progress=False)
        # bm25s fills up with documents that share no word with the query
        return np.where(scores > 0, found, -1).astype(np.int64), scores


def _library() -> Any:
    try:
        import bm25s
    except ImportError as error:
        raise MissingExtraError("bm25s", extra="eval", purpose="the baseline bm25") from error
    return bm25s
