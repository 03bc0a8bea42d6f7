"""Explanations of an adapter on a collection: what it did to a query, in names, and whether the names matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from lexent import lexicon as lexicons
from lexent import recipes
from lexent.adapters import Adapter
from lexent.adapters.adapter import unit
from lexent.adapters.changes import QueryChange, Structure, View, change_of, explain_query, lift
from lexent.adapters.corpus import AdaptedCorpus
from lexent.adapters.directions import Directions, Reading, Table, telling_words
from lexent.adapters.modulation import Rows
from lexent.encoders import Encoder
from lexent.errors import InputError, NotFoundError
from lexent.evaluation.baselines import pooled
from lexent.evaluation.collections import Collection
from lexent.evaluation.systems import LexiconLike

if TYPE_CHECKING:
    from lexent.adapters.deletion import Deletion

COMMON_CHANGE_QUERIES = 100
"""Queries that say which change is common to all."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One query under an adapter, at three levels."""

    query: str
    structure: Structure
    """The parameters."""
    change: QueryChange
    """Vectors and scores."""
    common_share: float
    """Of the change's squared length, the share along the change that queries of the collection have in common."""
    readings: dict[str, Reading]
    """Table to what the query's change means there."""
    documents: dict[int, str]
    """Position to id."""
    document_readings: dict[str, Reading]
    """Document id to the change of its own vector by the projector and the query, in the first table."""

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        found = asdict(self)
        del found["documents"]
        found["change"] = self.change.to_json()
        for row in found["change"]["documents"]:
            row["id"] = self.documents[row["position"]]
        return found


class Explainer:
    """An adapter over the documents of a collection, with the tables that its changes are read with."""

    def __init__(
        self, collection: Collection, adapter: Adapter, *, encoder: Encoder, lexicon: LexiconLike = None
    ) -> None:
        adapter.check(encoder)
        self.collection, self.adapter, self.encoder = collection, adapter, encoder
        self._lexicon = lexicon
        self._tables: dict[str, Directions] = {}
        self._common: Rows | None = None
        documents = pooled(encoder, collection.texts, kind="document")
        self.corpus: AdaptedCorpus = AdaptedCorpus(adapter, documents)

    def table(self, name: str) -> Directions:
        """concepts, words or tokens."""
        if name not in get_args(Table):
            raise NotFoundError(f'no table "{name}"; what a change can be read with: {", ".join(get_args(Table))}')
        if name not in self._tables:
            if name == "concepts":
                chosen = lexicons.load(self._lexicon, recipe=recipes.get("clsr-efficient"))
                chosen.check(self.encoder, level="pooled")
                self._tables[name] = Directions.of_concepts(chosen)
            elif name == "words":
                words = telling_words(self.collection.texts)
                rows = pooled(self.encoder, words, kind="document")
                self._tables[name] = Directions.of_words(words, rows)
            else:
                self._tables[name] = Directions.of_tokens(self.encoder)
        return self._tables[name]

    def explain(
        self,
        query: str,
        *,
        by: Sequence[str] = ("concepts",),
        document: str | None = None,
        k: int = 5,
        names: int = 8,
        view: View = "effective",
    ) -> Explained:
        """What the adapter does to a query: its own change, and what becomes of the best documents and of one more."""
        if k < 1 or names < 1 or not by:
            raise InputError(f"{k} documents, {names} names and {len(by)} tables were requested; allowed: 1 or more")
        ids = [each.id for each in self.collection.documents]
        if document is not None and document not in ids:
            raise NotFoundError(f'{self.collection.name} has no document "{document}"; its ids are such as "{ids[0]}"')
        vector = pooled(self.encoder, [query], kind="query")[0]
        change = explain_query(self.corpus, vector, k=k, others=() if document is None else (ids.index(document),))
        adapted = self.corpus.query(vector)
        whole, common = change_of(self.adapter, adapted), self.common()
        moved = change_of(self.adapter, adapted, "modulation") if view == "modulation" else whole
        moved = moved - common if view == "own" else moved
        lengths = float(whole @ whole) * float(common @ common)  # squared
        first = self.table(by[0])
        upward = lift(self.adapter)
        read: dict[str, Reading] = {}
        for row in change.documents:
            after = unit(adapted.upon.apply(self.corpus.projected[[row.position]])) @ upward.T
            read[ids[row.position]] = first.read(unit(after)[0] - self.corpus.base[row.position], n=names)
        return Explained(
            query=query,
            structure=Structure.of(self.adapter),
            change=change,
            common_share=float(whole @ common) ** 2 / lengths if lengths > 0 else 0.0,
            readings={name: self.table(name).read(moved, n=names) for name in by},
            documents={row.position: ids[row.position] for row in change.documents},
            document_readings=read,
        )

    def common(self) -> Rows:
        """float32[dim]: the mean change of the collection's queries, of 100 of them where it has more."""
        if self._common is None:
            vectors = pooled(self.encoder, self.collection.query_texts, kind="query")
            drawn = vectors[:: max(1, len(vectors) // COMMON_CHANGE_QUERIES)][:COMMON_CHANGE_QUERIES]
            changes = [change_of(self.adapter, self.corpus.query(vector)) for vector in drawn]
            self._common = np.mean(changes, axis=0).astype(np.float32)
        return self._common

    def deletion(
        self, *, by: str = "concepts", queries: int = 200, names: int = 8, draws: int = 5, seed: int = 0
    ) -> Deletion:
        """Whether the named directions matter, on queries of the collection that have a relevant document."""
        from lexent.adapters.deletion import deletion

        grades = self.collection.relevant
        good = np.array([row for row, judged in enumerate(grades) if judged], np.int64)
        chosen = np.sort(np.random.default_rng(seed).permutation(good)[:queries])
        vectors = pooled(self.encoder, self.collection.query_texts, kind="query")
        return deletion(
            self.corpus,
            vectors[chosen],
            [grades[row] for row in chosen],
            directions=self.table(by),
            n=names,
            draws=draws,
            seed=seed,
        )
