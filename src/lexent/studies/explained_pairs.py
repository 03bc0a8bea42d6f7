"""Pairs of a query and a document that was found for it, each text with the concepts that may be taken from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexent.evaluation.baselines import SCORES_PER_CHUNK
from lexent.evaluation.collections import Collection
from lexent.evaluation.pooling import pooling_of, unit
from lexent.evaluation.progress import Progress
from lexent.evaluation.runs import self_matches
from lexent.evaluation.systems import Latent
from lexent.indexing.segment import Codes
from lexent.studies import perturbed
from lexent.studies.nearest import nearest
from lexent.types import Kind

if TYPE_CHECKING:
    from lexent.studies.perturbed import DenseText, Side

MAX_RANKED_DOCUMENTS = 20_000
"""Up to so many documents, ranks are counted among all; in larger collections among the best of each query."""
BEST_DOCUMENTS = 1_000
"""How many those are."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a document, ready to be changed."""

    explained: NDArray[np.int32]
    """The concepts of the explanation, strongest first."""
    columns: dict[Kind, NDArray[np.int64]]
    """The same as places among the concepts of each side."""
    sizes: dict[Kind, int]
    """How many concepts each side has."""
    sides: dict[Kind, dict[Any, Side]]
    """Side to retriever ("index", and "dense" where it can be watched) to the text as that one sees it."""


class Pairs:
    """The pairs of a collection under one recipe, made one at a time."""

    def __init__(
        self,
        collection: Collection,
        system: Latent,
        *,
        dense: tuple[NDArray[np.float32], NDArray[np.float32]],
        target: str,
        progress: Progress | None = None,
    ) -> None:
        """dense: the encoder's vectors of documents and of queries, as it gives them."""
        self.collection, self.system, self.target = collection, system, target
        self.texts: dict[Kind, list[str]] = {"document": collection.texts, "query": list(collection.queries.values())}
        self.states: dict[Kind, NDArray[np.float32]] = {"document": dense[0], "query": dense[1]}
        documents = system.pooled(collection.texts, kind="document", progress=progress)
        self.document_scorer = system.scorer(collection, progress=progress)
        self.queries = self.document_scorer.query_weights(system.queries(collection, progress=progress))
        self.found = self.document_scorer.top_weighted(self.queries, BEST_DOCUMENTS + 1).positions
        self.nearest = self._nearest()
        self.ids = list(collection.queries)
        self.own = self_matches(collection)
        self.targets = [self._target(row) for row in range(len(self.ids))]
        explained = sorted({target for target in self.targets if target is not None})
        self.places = {target: place for place, target in enumerate(explained)}
        self.documents = Codes.of(documents.take(np.array(explained, np.int64)), system.recipe)
        self.pooling = None
        self.watches_dense = system.recipe.level == "pooled"
        self.note = ""
        if not self.watches_dense:
            self.pooling = pooling_of(system.encoder, self.texts["query"], kind="query")
            self.watches_dense = self.pooling is not None
        if not self.watches_dense:
            self.note = (
                f"how {system.encoder.id} makes one vector of token states is not known: dense retrieval is not watched"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, row: int) -> Pair | None:
        """The pair of a query; None where the query has no such document."""
        target = self.targets[row]
        if target is None:
            return None
        ids, weights = self.queries.of(row)
        ids, weights = ids[weights != 0], weights[weights != 0]
        held, parts = self.document_scorer.contributions(target, ids, weights)
        strength = np.lexsort((ids, -np.abs(parts)))
        explained = ids[strength][held[strength] != 0]
        if not len(explained):
            return None
        concepts = {"query": ids, "document": self.documents.ids[self._entries(target)]}
        columns: dict[Kind, NDArray[np.int64]] = {
            "query": np.searchsorted(concepts["query"], explained),
            "document": np.searchsorted(concepts["document"], explained),
        }
        sides: dict[Kind, dict[Any, Side]] = {"query": {}, "document": {}}
        self._index_sides(sides, row, target, weights, parts, concepts, held != 0)
        if self.watches_dense:
            self._dense_sides(sides, row, target, concepts)
        return Pair(explained, columns, {"query": len(ids), "document": len(concepts["document"])}, sides)

    def _target(self, row: int) -> int | None:
        query = self.ids[row]
        relevant = {id for id, grade in self.collection.qrels[query].items() if grade > 0}
        for position in self.found[row]:
            if position < 0:
                return None
            id = self.collection.documents[position].id
            if id != self.own.get(query) and (self.target == "top" or id in relevant):
                return int(position)
        return None

    def _entries(self, document: int) -> slice:
        place = self.places[document]
        return slice(int(self.documents.offsets[place]), int(self.documents.offsets[place + 1]))

    def _rivals(self, best: NDArray[np.int64], target: int) -> tuple[NDArray[np.int64], int]:
        """Positions of the documents that ranks are counted among, and where the target is among them."""
        n = len(self.collection.documents)
        if n <= MAX_RANKED_DOCUMENTS:
            return np.arange(n), target
        positions = np.union1d(best[best >= 0], [target])
        return positions, int(np.searchsorted(positions, target))

    def _index_sides(
        self,
        sides: dict[Kind, dict[Any, Side]],
        row: int,
        target: int,
        weights: NDArray[np.float32],
        parts: NDArray[np.float64],
        concepts: dict[str, NDArray[np.int32]],
        shared: NDArray[np.bool_],
    ) -> None:
        rivals, at = self._rivals(self.found[row], target)
        one = np.ones(1, np.float32)
        ids = concepts["query"]
        held = np.stack(
            [self.document_scorer.scores(ids[[place]], one)[0][rivals] for place in range(len(ids))], axis=1
        )
        sides["query"]["index"] = perturbed.IndexQuery(weights.astype(np.float64), held, at)
        gains = np.zeros(len(concepts["document"]))
        gains[np.searchsorted(concepts["document"], ids[shared])] = parts[shared]
        sides["document"]["index"] = perturbed.IndexDocument(gains, held @ weights.astype(np.float64), at)

    def _dense_sides(
        self, sides: dict[Kind, dict[Any, Side]], row: int, target: int, concepts: dict[str, NDArray[np.int32]]
    ) -> None:
        rivals, at = self._rivals(self.nearest[row], target)
        vectors = unit(self.states["document"][rivals])
        query = unit(self.states["query"][[row]])[0]
        of_query = self._dense_text("query", row, concepts["query"])
        of_document = self._dense_text("document", target, concepts["document"])
        sides["query"]["dense"] = perturbed.DenseQuery(of_query, vectors, at)
        sides["document"]["dense"] = perturbed.DenseDocument(of_document, query, vectors @ query, at)

    def _dense_text(self, kind: Kind, position: int, concepts: NDArray[np.int32]) -> DenseText:
        return perturbed.dense_text(
            self.texts[kind][position],
            concepts,
            kind=kind,
            encoder=self.system.encoder,
            lexicon=self.system.lexicon,
            recipe=self.system.recipe,
            pooling=self.pooling,
            state=self.states[kind][position],
        )

    def _nearest(self) -> NDArray[np.int64]:
        """The best documents of dense retrieval, where ranks are counted among them."""
        documents, queries = self.states["document"], self.states["query"]
        if len(documents) <= MAX_RANKED_DOCUMENTS:
            return np.zeros((len(queries), 0), np.int64)
        block = max(1, SCORES_PER_CHUNK // max(len(queries), 1))
        blocks = (unit(documents[start : start + block]) for start in range(0, len(documents), block))
        return nearest(unit(queries), blocks, k=BEST_DOCUMENTS)[0]
