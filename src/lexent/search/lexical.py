"""A lexical side for an index: BM25 over its words, in memory, by the same kernels that search concepts.

Words stand where concepts stand elsewhere: lists, exact top-k and contributions that sum to the score are the index's
own. The side is made from the stored texts when it is first needed, and lives as long as the searcher it belongs to.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.function_words import FUNCTION_WORDS
from lexent.indexing.reader import IndexReader
from lexent.indexing.segment import Codes, Segment, Tombstones
from lexent.recipes import BM25, Recipe
from lexent.search.document_ranking import top_documents
from lexent.search.document_scorer import DocumentScorer, Masks, TopDocuments
from lexent.search.groups import Line
from lexent.search.query import Query
from lexent.search.results import SharedTerm
from lexent.types import SparseVectors

RECIPE = Recipe("words", power=1.0, query_power=None, weighting=BM25(k1=1.5, b=0.75, idf="lucene"))
_WORD = re.compile(r"\w\w+")
_PASSAGES_PER_STEP = 4096
"""Passages whose texts are held at once."""


def words(text: str) -> list[str]:
    """The words of a text that count: two letters or more, no function words."""
    return [word for word in _WORD.findall(text.casefold()) if word not in FUNCTION_WORDS]


class Lexical:
    """The documents of an index by their words. Positions are those of the index."""

    def __init__(self, reader: IndexReader) -> None:
        self._reader = reader
        self.vocabulary: dict[str, int] = {}
        counted = [self._counted(reader, place) for place in range(len(reader.segments))]
        self.names = list(self.vocabulary)
        size = len(self.names)
        segments = [Segment.pack(codes, size=size, recipe=RECIPE) for codes in counted]
        tombstones = [
            None if gone is None else Tombstones.of(segment, gone.mask)
            for segment, gone in zip(segments, reader.tombstones, strict=True)
        ]
        self.document_scorer = DocumentScorer(segments, RECIPE, size=size, tombstones=tombstones)

    def query(self, text: str) -> Query:
        """A query with its final weights; words that no document has are left out."""
        vectors = counts(iter([words(text)]), self.vocabulary, grow=False)
        return Query.of(text, self.document_scorer.query_weights(vectors))

    def top(self, query: Query, k: int, *, allowed: Masks | None = None) -> TopDocuments:
        """The k best documents of a query, by the positions of their best passages."""
        vectors = query.vectors(len(self.names))

        def search(_: Sequence[int], depth: int) -> TopDocuments:
            return self.document_scorer.top_weighted(vectors, depth, allowed=allowed)

        return top_documents(search, self._reader.owners, 1, k, n_documents=len(self._reader))

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """For each word of the query the document's weight, and what the word adds to its score: exact."""
        return self.document_scorer.contributions(position, query.ids, query.weights)

    def label(self, term: int) -> str:
        """The word of that number."""
        return self.names[term]

    def lines(self, query: Query, position: int, terms: Sequence[SharedTerm]) -> list[Line]:
        """Words have no groups."""
        return []

    def _counted(self, reader: IndexReader, place: int) -> Codes:
        first, last = reader.bases[place : place + 2].tolist()

        def texts() -> Iterator[Sequence[str]]:
            for start in range(first, last, _PASSAGES_PER_STEP):
                yield from map(words, reader.contents(range(start, min(start + _PASSAGES_PER_STEP, last))))

        return Codes.of(counts(texts(), self.vocabulary, grow=True), RECIPE)


def counts(texts: Iterable[Sequence[str]], vocabulary: dict[str, int], *, grow: bool) -> SparseVectors:
    """How often each text, given as its words, has each word. grow: add words that the vocabulary does not have."""
    ids: list[NDArray[Any]] = [np.empty(0, np.int32)]
    values: list[NDArray[Any]] = [np.empty(0, np.float32)]
    ends = [0]
    for text in texts:
        counted = Counter(text)
        if grow:
            for word in counted:
                vocabulary.setdefault(word, len(vocabulary))
        known = {vocabulary[word]: count for word, count in counted.items() if word in vocabulary}
        found = np.array(sorted(known), np.int32)
        ids.append(found)
        values.append(np.array([known[word] for word in found.tolist()], np.float32))
        ends.append(ends[-1] + len(found))
    return SparseVectors(np.concatenate(ids), np.concatenate(values), np.array(ends, np.int64), len(vocabulary))
