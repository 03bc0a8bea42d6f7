"""Pairs of a query and a document that was found for it, with some of their concepts taken away or put back.

A `Side` is one text of a pair with the concepts that may be taken from it, a column each. Masks say which columns are
there, a row a state of the text; the answer is the document's score and rank for each row, as the index or the dense
retriever sees them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import unit
from lexent.encoders.encoder import encode
from lexent.evaluation.collections import Collection
from lexent.evaluation.pooling import pooling_of, weights
from lexent.evaluation.runs import self_matches
from lexent.evaluation.systems import Latent
from lexent.evaluation.vector_search import nearest_by_cosine
from lexent.indexing.codes import Codes
from lexent.studies.state_reconstruction import coefficients
from lexent.types import Kind, States

MAX_RANKED_DOCUMENTS = 20_000
"""Up to so many documents, ranks are counted among all; in larger collections among the best of each query."""
BEST_DOCUMENTS = 1_000
"""How many those are."""

Masks = NDArray[np.bool_]
"""bool[n_states, n_concepts]: the concepts that a text still has."""


class Seen(NamedTuple):
    """The document's score and place for each state of the changed text."""

    scores: NDArray[np.float64]  # [n_states]
    places: NDArray[np.float64]  # [n_states], one over the rank; 0 where the document is not found


@dataclass(frozen=True, slots=True)
class IndexText:
    """A text in the index: the weights of its concepts. A document's length counts as before."""

    weights: NDArray[np.float64]  # [n_concepts]

    def without(self, masks: Masks) -> NDArray[Any]:
        """float64[n_states, n_concepts]: the weights of the concepts that are left."""
        return masks * self.weights

    alone = without


@dataclass(frozen=True, slots=True)
class DenseText:
    """A text in dense retrieval: its vector, and what each concept adds to it through the decoder."""

    vector: NDArray[np.float32]  # [d_in], before it is brought to length 1
    ground: NDArray[np.float32]  # [d_in], what the decoder gives without any concept
    parts: NDArray[np.float32]  # [n_concepts, d_in]

    def without(self, masks: Masks) -> NDArray[Any]:
        """float32[n_states, d_in]: the vector less the concepts that are not there; what no concept explains stays."""
        return unit(self.vector - (~masks).astype(np.float32) @ self.parts)

    def alone(self, masks: Masks) -> NDArray[Any]:
        """float32[n_states, d_in]: what the concepts alone make."""
        return unit(self.ground + masks.astype(np.float32) @ self.parts)


@dataclass(frozen=True, slots=True)
class Side:
    """One text of a pair, as a retriever sees it, and the documents that ranks are counted among: its rivals."""

    text: IndexText | DenseText
    rivals: NDArray[Any]
    """Of a query: their vectors, [n_rivals, width]. Of a document: their scores, [n_rivals], which stay."""
    target: int
    """The place of the pair's document among the rivals."""
    query: NDArray[Any] | None = None
    """Of a document: the vector [width] that gives its score."""

    def without(self, masks: Masks) -> Seen:
        """Scores and ranks when the other concepts are taken away and all else of the text stays."""
        return self._seen(self.text.without(masks))

    def alone(self, masks: Masks) -> Seen:
        """Scores and ranks when nothing but these concepts is there."""
        return self._seen(self.text.alone(masks))

    def _seen(self, rows: NDArray[Any]) -> Seen:
        if self.query is None:
            scores = rows @ self.rivals.T
        else:
            scores = np.tile(self.rivals, (len(rows), 1))
            scores[:, self.target] = rows @ self.query
        return placed(scores, self.target, found_above=0.0 if isinstance(self.text, IndexText) else -np.inf)


def placed(scores: NDArray[np.floating], target: int, *, found_above: float = -np.inf) -> Seen:
    """The target's score and place in each row; of equal scores the earlier column is first, as in a search."""
    own = scores[:, [target]]
    margin = 1e-6 * np.maximum(np.abs(own), 1.0)  # equal texts differ in the last digits of a product
    above = (scores > own + margin).sum(axis=1) + (np.abs(scores[:, :target] - own) <= margin).sum(axis=1)
    places = np.where(own[:, 0] > found_above, 1.0 / (1.0 + above), 0.0)
    return Seen(own[:, 0].astype(np.float64), places)


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
    ) -> None:
        """dense: the encoder's vectors of documents and of queries, as it gives them."""
        self.collection, self.system, self.target = collection, system, target
        self.texts: dict[Kind, list[str]] = {"document": collection.texts, "query": collection.query_texts}
        self.states: dict[Kind, NDArray[np.float32]] = {"document": dense[0], "query": dense[1]}
        documents = system.pooled(collection.texts, kind="document")
        self.document_scorer = system.scorer(collection)
        self.queries = self.document_scorer.query_weights(system.queries(collection))
        self.found = self.document_scorer.top_weighted(self.queries, BEST_DOCUMENTS + 1).positions
        self.nearest = np.zeros((len(dense[1]), 0), np.int64)  # the best of dense retrieval, where ranks are among them
        if len(dense[0]) > MAX_RANKED_DOCUMENTS:
            self.nearest = nearest_by_cosine(dense[1], dense[0], k=BEST_DOCUMENTS)[0]
        self.ids = list(collection.queries)
        self.own = self_matches(collection)
        self.targets = [self._target(row) for row in range(len(self.ids))]
        explained = sorted({target for target in self.targets if target is not None})
        self.places = {target: place for place, target in enumerate(explained)}
        self.documents = Codes.of(documents.take(np.array(explained, np.int64)), system.recipe)
        pooled = system.recipe.level == "pooled"
        self.pooling = None if pooled else pooling_of(system.encoder, self.texts["query"], kind="query")
        self.watches_dense = pooled or self.pooling is not None
        self.note = ""
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
        ids, weighed = self.queries.of(row)
        ids, weighed = ids[weighed != 0], weighed[weighed != 0]
        stored, parts = self.document_scorer.contributions(target, ids, weighed)
        strength = np.lexsort((ids, -np.abs(parts)))
        explained = ids[strength][stored[strength] != 0]
        if not len(explained):
            return None
        place = self.places[target]
        concepts = self.documents.ids[int(self.documents.offsets[place]) : int(self.documents.offsets[place + 1])]
        own: dict[Kind, NDArray[np.int32]] = {"query": ids, "document": concepts}
        rivals, at = self._rivals(self.found[row], target)
        one, exact = np.ones(1, np.float32), weighed.astype(np.float64)
        held = np.stack([self.document_scorer.scores(ids[[each]], one)[0][rivals] for each in range(len(ids))], axis=1)
        contributions = np.zeros(len(concepts))
        contributions[np.searchsorted(concepts, ids[stored != 0])] = parts[stored != 0]
        sides: dict[Kind, dict[Any, Side]] = {
            "query": {"index": Side(IndexText(exact), held, at)},
            "document": {"index": Side(IndexText(np.ones(len(concepts))), held @ exact, at, contributions)},
        }
        if self.watches_dense:
            rivals, at = self._rivals(self.nearest[row], target)
            vectors = unit(self.states["document"][rivals])
            query = unit(self.states["query"][[row]])[0]
            sides["query"]["dense"] = Side(self._dense_text("query", row, ids), vectors, at)
            text = self._dense_text("document", target, concepts)
            sides["document"]["dense"] = Side(text, vectors @ query, at, query)
        columns = {kind: np.searchsorted(of_side, explained) for kind, of_side in own.items()}
        return Pair(explained, columns, {kind: len(of_side) for kind, of_side in own.items()}, sides)

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

    def _rivals(self, best: NDArray[np.int64], target: int) -> tuple[NDArray[np.int64], int]:
        """Positions of the documents that ranks are counted among, and where the target is among them."""
        n = len(self.collection.documents)
        if n <= MAX_RANKED_DOCUMENTS:
            return np.arange(n), target
        positions = np.union1d(best[best >= 0], [target])
        return positions, int(np.searchsorted(positions, target))

    def _dense_text(self, kind: Kind, position: int, concepts: NDArray[np.int32]) -> DenseText:
        """What each concept, in ascending order, adds to a text's vector. States of tokens are encoded here."""
        import torch

        recipe, lexicon = self.system.recipe, self.system.lexicon
        if self.pooling is None:
            rows, share = self.states[kind][position][None, :], np.ones(1, np.float32)
            states = States(torch.from_numpy(rows), np.array([0, 1]))
        else:
            states = encode(self.system.encoder, [self.texts[kind][position]], kind=kind, level="tokens")
            rows, share = states.numpy(), weights(len(states.values), self.pooling)
        codes = lexicon.codes(states, k=recipe.k_for(kind))
        lengths = np.linalg.norm(rows, axis=1).astype(np.float32)
        # Of unit states, or of states as they are.
        counts = share * lengths if lexicon.sae.config.unit_states else share
        values = (coefficients(lexicon, codes, lengths) * counts[:, None]).ravel()
        places = np.searchsorted(concepts, codes.ids.ravel())
        known = (places < len(concepts)) & (concepts[np.minimum(places, len(concepts) - 1)] == codes.ids.ravel())
        totals = np.zeros(len(concepts))
        np.add.at(totals, places[known], values[known])
        return DenseText(
            vector=(share @ rows).astype(np.float32),
            ground=(counts.sum() * lexicon.sae.b_dec).astype(np.float32),
            parts=(totals[:, None] * lexicon.sae.decoder_rows[concepts]).astype(np.float32),
        )
