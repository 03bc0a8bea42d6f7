"""The words of a collection, for recipes that weigh words: those of its documents and of its queries."""

from __future__ import annotations

from dataclasses import dataclass

from lexent.bounded_cache import BoundedCache
from lexent.evaluation.collections import Collection
from lexent.recipes import Recipe
from lexent.search.query_words import QueryWords
from lexent.types import SparseVectors
from lexent.vocabulary import NewWords, Vocabulary, splitter_of

_made: BoundedCache[tuple[int, str], tuple[Collection, CollectionWords]]


@dataclass(frozen=True)
class CollectionWords:
    """How often the documents of a collection have each of their words."""

    documents: SparseVectors
    """Numbered from 0."""
    vocabulary: Vocabulary
    queries: tuple[str, ...]
    language: str

    @staticmethod
    def of(collection: Collection, recipe: Recipe) -> CollectionWords | None:
        """None where the recipe does not weigh words. Counted once for a collection."""
        if not recipe.words:
            return None
        key = (id(collection), recipe.language)
        found = _made.get(key)
        if found is None or found[0] is not collection:
            new = NewWords({})
            documents = new.counts(map(splitter_of(recipe.language).counted, collection.texts))
            queries = tuple(collection.query_texts)
            found = collection, CollectionWords(documents, Vocabulary([new.table()]), queries, recipe.language)
            _made.put(key, found)
        return found[1]

    def beside(self, concepts: SparseVectors, recipe: Recipe) -> SparseVectors:
        """The queries' concepts with their words behind them, as an index searches them."""
        words = QueryWords(self.vocabulary, language=self.language, first=concepts.size)
        return words.beside(concepts, self.queries, power=recipe.power_for("query"))


_made = BoundedCache(2)
