"""Test collections cut into passages: a system ranks passages, and a document has the score of its best one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lexent.corpus.passages import text_of
from lexent.encoders import Encoder
from lexent.evaluation.collections import Collection
from lexent.evaluation.runs import Run, ranked, self_matches
from lexent.evaluation.systems import Dense, Expanded, RecipeSystem, System
from lexent.indexing.passages import passages_of
from lexent.recipes import Recipe
from lexent.types import Document


@dataclass(frozen=True, slots=True)
class CutCollection:
    """A collection whose documents are passages, with numbers as ids."""

    whole: Collection
    passages: Collection
    owners: list[str]
    """The document of each passage."""
    most: int
    """Passages of the document that has most of them."""

    @staticmethod
    def of(collection: Collection, encoder: Encoder, recipe: Recipe) -> CutCollection:
        """The passages that an index of that encoder and recipe would hold."""
        cut = passages_of(collection.documents, encoder, recipe)
        owners = [document.id for document, own in zip(collection.documents, cut, strict=True) for _ in own]
        texts = [
            text_of(document.content, pieces)
            for document, own in zip(collection.documents, cut, strict=True)
            for pieces in own
        ]
        made = [Document(str(number), text) for number, text in enumerate(texts)]
        return CutCollection(collection, replace(collection, documents=made), owners, max(map(len, cut), default=1))

    @property
    def searched(self) -> Collection:
        """What a system ranks: the passages, or the documents themselves where each is one passage."""
        return self.passages if self.most > 1 else self.whole

    def depth(self, depth: int) -> int:
        """How many results a system must give for a query, so that so many documents are among them."""
        return depth if self.most == 1 else min((depth + 1) * self.most, len(self.owners))

    def run(self, system: System, *, depth: int) -> Run:
        """What a system finds of the whole collection by its passages."""
        return self.documents(system.run(self.searched, depth=self.depth(depth)), depth=depth)

    def documents(self, run: Run, *, depth: int) -> Run:
        """The documents of what was searched, each with the score of its best passage."""
        if self.most == 1:
            return run
        own = self_matches(self.whole)
        found: Run = {}
        for query, results in run.items():
            best: dict[str, float] = {}
            for number, score in ranked(results):
                best.setdefault(self.owners[int(number)], score)
            best.pop(own.get(query, ""), None)
            found[query] = dict(list(best.items())[:depth])
        return found


class Runner:
    """Runs systems over a collection, each by the passages that its recipe cuts; the dense baseline by the first's."""

    def __init__(self, collection: Collection, systems: Sequence[System]) -> None:
        self._collection = collection
        self._recipe = next((each.recipe for each in map(_first, systems) if isinstance(each, RecipeSystem)), None)
        self._cut: dict[tuple[str, int | None, int], CutCollection] = {}

    def run(self, system: System, *, depth: int) -> Run:
        """The documents that a system finds for each query, with their scores."""
        cut = self._cut_for(system)
        return system.run(self._collection, depth=depth) if cut is None else cut.run(system, depth=depth)

    def searched(self, system: System) -> Collection:
        """What a system ranks: the passages of the collection, or its documents."""
        cut = self._cut_for(system)
        return self._collection if cut is None else cut.searched

    def _cut_for(self, system: System) -> CutCollection | None:
        inner = _first(system)
        if isinstance(inner, RecipeSystem):
            recipe: Recipe | None = inner.recipe
        else:
            recipe = self._recipe if isinstance(inner, Dense) else None
        if recipe is None or recipe.whole_texts:
            return None
        assert isinstance(inner, RecipeSystem | Dense)
        key = (inner.encoder.fingerprint, recipe.passage_tokens, recipe.passage_overlap)
        if key not in self._cut:
            self._cut[key] = CutCollection.of(self._collection, inner.encoder, recipe)
        return self._cut[key]


def _first(system: System) -> System:
    """The system itself; of one with feedback the one that searches first."""
    return system.first if isinstance(system, Expanded) else system
