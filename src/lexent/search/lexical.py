"""The lexical side of an index: BM25 over its words, by the same kernels that search concepts.

An index that holds words is searched by those. Of any other, the words of the stored texts are counted in memory when
the side is first needed, and live as long as the searcher that they belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.codes import Codes
from lexent.indexing.reader import IndexReader
from lexent.indexing.segment import Segment, Tombstones
from lexent.recipes import BM25, Recipe
from lexent.search.document_ranking import top_documents
from lexent.search.document_scorer import DocumentScorer, Masks, TopDocuments
from lexent.search.groups import Line
from lexent.search.query import Query
from lexent.search.query_words import QueryWords
from lexent.search.results import SharedTerm
from lexent.vocabulary import NewWords, Vocabulary, WrittenTerm, splitter_of

RECIPE = Recipe("words", power=1.0, query_power=None, weighting=BM25(k1=1.5, b=0.75, idf="lucene"))
"""How words are weighed that are counted in memory."""
_PASSAGES_PER_STEP = 4096
"""Passages whose texts are held at once."""


class Lexical:
    """The documents of an index by their words. Positions are those of the index."""

    def __init__(self, words: QueryWords, document_scorer: DocumentScorer, reader: IndexReader | None = None) -> None:
        """reader: that of the index, whose documents have passages; without one every text is a document."""
        self.words = words
        self.document_scorer = document_scorer
        every = int(document_scorer.bases[-1])
        self._owners = np.arange(every) if reader is None else reader.owners
        self._n_documents = every if reader is None else len(reader)

    @staticmethod
    def of_index(reader: IndexReader, concepts: DocumentScorer) -> Lexical:
        """The side of an index whose concepts are searched by `concepts`."""
        language = reader.manifest.words
        if language is None:
            return Lexical.counted(reader)
        words = QueryWords(reader.vocabulary, language=language, first=concepts.concepts)
        recipe = concepts.recipe.having(words=1.0, rarity=1.0)
        scorer = DocumentScorer(
            concepts.segments, recipe, size=concepts.size, concepts=concepts.concepts, tombstones=concepts.tombstones
        )
        return Lexical(words, scorer, reader)

    @staticmethod
    def counted(reader: IndexReader) -> Lexical:
        """From the stored texts, in memory."""
        language = Recipe.from_dict(reader.manifest.recipe).language
        new = NewWords({})
        counted = [_counted(reader, place, new, language) for place in range(len(reader.segments))]
        segments = [Segment.pack(codes, size=len(new), recipe=RECIPE) for codes in counted]
        tombstones = [
            None if gone is None else Tombstones.of(segment, gone.mask)
            for segment, gone in zip(segments, reader.tombstones, strict=True)
        ]
        words = QueryWords(Vocabulary([new.table()]), language=language, first=0)
        return Lexical(words, DocumentScorer(segments, RECIPE, size=len(new), tombstones=tombstones), reader)

    @staticmethod
    def of_texts(texts: Iterable[str]) -> Lexical:
        """From English texts, in memory."""
        new = NewWords({})
        codes = Codes.of(new.counts(map(splitter_of("english").counted, texts)), RECIPE)
        words = QueryWords(Vocabulary([new.table()]), language="english", first=0)
        segment = Segment.pack(codes, size=len(new), recipe=RECIPE)
        return Lexical(words, DocumentScorer([segment], RECIPE, size=len(new)))

    def query(self, text: str) -> Query:
        """A query with its final weights; words that no document has are left out."""
        return Query.of(text, self.document_scorer.query_weights(self.words.counts([text])))

    def top(self, query: Query, k: int, *, allowed: Masks | None = None) -> TopDocuments:
        """The k best documents of a query, by the positions of their best passages."""
        vectors = query.vectors(self.document_scorer.size)

        def search(_: Sequence[int], depth: int) -> TopDocuments:
            return self.document_scorer.top_weighted(vectors, depth, allowed=allowed)

        return top_documents(search, self._owners, 1, k, n_documents=self._n_documents)

    def contributions(self, query: Query, position: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """For each word of the query the document's weight, and what the word adds to its score: exact."""
        return self.document_scorer.contributions(position, query.ids, query.weights)

    def named(self, terms: Sequence[int]) -> list[tuple[str, bool]]:
        """The word of each number."""
        return [(self.words.label(term), True) for term in terms]

    def lines(self, query: Query, position: int, terms: Sequence[SharedTerm]) -> list[Line]:
        """Words have no groups."""
        return []


def _counted(reader: IndexReader, place: int, words: NewWords, language: str) -> Codes:
    """The words of a segment's passages as codes; the vocabulary takes on new ones."""
    splitter = splitter_of(language)
    first, last = reader.bases[place : place + 2].tolist()

    def texts() -> Iterator[list[WrittenTerm]]:
        for start in range(first, last, _PASSAGES_PER_STEP):
            yield from map(splitter.counted, reader.contents(range(start, min(start + _PASSAGES_PER_STEP, last))))

    return Codes.of(words.counts(texts()), RECIPE)
