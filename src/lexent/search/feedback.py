"""Relevance feedback in concept space: a query takes on concepts of documents, and is searched again.

The documents are the first hits of a first search, or those that a caller marks. Either way the new query is the old
one plus a gain for each of a limited number of concepts, so its scores are exact sums of named concepts as before.

- Rocchio: the gain is the mean of the documents' vectors (stored weight times idf, each of length 1), less a share of
  the mean of those marked as not wanted. It is given `weight` times the length of the query.
- RM3: documents are distributions over concepts; the query becomes a mixture of itself and of theirs, before idf.
  Scaled so that the query's own concepts keep their weights, that is a gain too: the share `weight` of the whole.

In both, the first hits count by how close their scores come to the best; a marked document counts as the best.
No weight falls below 0: a concept of unwanted documents is taken out of the query, not searched against.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lexent import arguments
from lexent.errors import InputError
from lexent.search.document_scorer import DocumentScorer, Masks
from lexent.types import SparseVectors

if TYPE_CHECKING:
    from lexent.indexing.reader import IndexReader

Method = Literal["rocchio", "rm3"]
WEIGHT, MARKED_WEIGHT = 0.2, 0.6
"""How much concepts gain by default: from first hits, which may be wrong, and from documents that a caller marked."""
QUERIES_PER_BATCH = 1024
"""Queries whose documents are held at once."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """How much a query takes from documents."""

    method: Method = "rocchio"
    """How: rocchio or rm3."""
    documents: int = 10
    """How many of the first hits to learn from."""
    concepts: int = 300
    """How many concepts may gain weight, at most."""
    weight: float | None = None
    """How much they gain: for rocchio over the query's own weight, for rm3 the share of the whole; 0.2 where it is left
    out, and 0.6 where documents are marked."""
    focus: float = 20.0
    """How much less a hit counts that scores less than the best: its share of the best score, to this power."""
    against: float = 0.5
    """How much documents marked as not wanted count against the others."""

    def __post_init__(self) -> None:
        arguments.fields_of(self, of="the feedback")
        known = isinstance(self.method, str) and self.method in get_args(Method)
        _check(known, "method", self.method, " or ".join(get_args(Method)))
        _check(self.documents >= 0, "documents", self.documents, "0 or more")
        _check(self.concepts >= 1, "concepts", self.concepts, "1 or more")
        highest = np.nextafter(1, 0) if self.method == "rm3" else arguments.HIGHEST_WEIGHT
        bound = "from 0 to below 1 for rm3" if self.method == "rm3" else f"from 0 to {arguments.HIGHEST_WEIGHT:,}"
        _check(self.weight is None or bool(0 <= self.weight <= highest), "weight", self.weight, bound)
        _check(0 <= self.focus <= 1000, "focus", self.focus, "from 0 to 1000")
        _check(0 <= self.against <= 1, "against", self.against, "from 0 to 1")

    def strength(self, *, marked: bool) -> float:
        """The weight, or the default for documents that are marked or not."""
        return (MARKED_WEIGHT if marked else WEIGHT) if self.weight is None else self.weight

    @staticmethod
    def of(given: Feedback | int) -> Feedback:
        """A number is how many of the first hits to learn from."""
        if isinstance(given, Feedback):
            return given
        return Feedback(documents=arguments.whole("feedback", given, least=0, remedy="or a lexent.search.Feedback"))


def _check(good: bool, name: str, given: object, allowed: str) -> None:
    if not good:
        raise InputError(f"{name} of the feedback is {given}; allowed: {allowed}")


@dataclass(frozen=True, slots=True)
class Expansion:
    """A query after feedback, and what changed."""

    ids: NDArray[np.int32]  # [n_concepts], ascending
    weights: NDArray[np.float32]  # [n_concepts], final; 0 where all of it was taken away
    changed: NDArray[np.int32]  # [n_changed]: concepts whose weight changed, ascending
    gains: NDArray[np.float32]  # [n_changed]: by how much; negative where documents marked as not wanted have them
    documents: NDArray[np.int64]  # [n_documents]: the positions of those it learned from
    vectors: SparseVectors
    """Theirs: the concepts with their stored weights."""

    @property
    def query(self) -> SparseVectors:
        """The query alone, as a container of one vector."""
        return SparseVectors(self.ids, self.weights, np.array([0, len(self.ids)], np.int64), self.vectors.size)

    def sources(self, concept: int) -> NDArray[np.int64]:
        """The positions of the documents that a concept came from, strongest first."""
        at = np.flatnonzero(self.vectors.ids == concept)
        rows = np.searchsorted(self.vectors.offsets, at, side="right") - 1
        return self.documents[rows[np.argsort(-self.vectors.values[at], kind="stable")]]


@dataclass(frozen=True, slots=True)
class Marked:
    """Documents that a caller marked, by position."""

    like: tuple[int, ...] = ()
    unlike: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Learning:
    """What a search learns from: its first hits, and documents that the caller marked by their ids."""

    feedback: Feedback
    like: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()

    @staticmethod
    def of(
        feedback: Feedback | int | None, *, like: str | Sequence[str] = (), unlike: str | Sequence[str] = ()
    ) -> Learning | None:
        """None where there is nothing to learn from. With marked documents alone, no others are learned from.

        like, unlike: ids of documents; a single string is one id.
        """
        like = arguments.names("like", like, allowed="the id of a document, or a list of ids")
        unlike = arguments.names("unlike", unlike, allowed="the id of a document, or a list of ids")
        both = sorted(set(like) & set(unlike))
        if both:
            raise InputError(f'the document "{both[0]}" is marked as like and as unlike; choose one')
        if feedback is None and not like and not unlike:
            return None
        chosen = Feedback.of(0 if feedback is None else feedback)
        return Learning(chosen, tuple(dict.fromkeys(like)), tuple(dict.fromkeys(unlike)))

    def marked(self, documents: IndexReader) -> Marked:
        """The passages of the marked documents; an id that is not there is a NotFoundError."""
        sides = (self.like, self.unlike)
        like, unlike = (tuple(chain(*(documents.run(documents.position(id)) for id in ids))) for ids in sides)
        return Marked(like, unlike)


def expansions(
    scorer: DocumentScorer,
    queries: SparseVectors,
    feedback: Feedback,
    *,
    factors: NDArray[np.float64] | None = None,
    allowed: Masks | None = None,
    marked: Marked | None = None,
    blocked: Collection[int] = (),
    skipped: Sequence[int] | None = None,
) -> Iterator[Expansion]:
    """Queries with their final weights, each after feedback, in order.

    factors: the idf that the weights hold. allowed: which documents may be learned from, beside those that are marked.
    blocked: concepts that must not gain. skipped: for each query, the position of a document not to learn from, or -1.
    """
    marked = marked or Marked()
    factors = scorer.factors if factors is None else factors
    never = np.array(sorted(blocked), np.int64)
    weight = feedback.strength(marked=bool(marked.like or marked.unlike))
    for start in range(0, len(queries), QUERIES_PER_BATCH):
        part = queries.take(np.arange(start, min(start + QUERIES_PER_BATCH, len(queries))))
        first = scorer.top_weighted(part, feedback.documents + 1 if skipped else feedback.documents, allowed=allowed)
        chosen = []
        for row in range(len(part)):
            own = skipped[start + row] if skipped else -1
            pairs = zip(first.positions[row].tolist(), first.scores[row].tolist(), strict=True)
            hits = [(place, score) for place, score in pairs if place >= 0 and place != own][: feedback.documents]
            chosen.append(_Chosen.of(hits, marked, feedback.focus))
        vectors = scorer.documents([place for one in chosen for place in (*one.liked, *one.unliked)])
        ends = np.cumsum([0, *(len(one.liked) + len(one.unliked) for one in chosen)])
        for row, one in enumerate(chosen):
            places, middle = np.arange(ends[row], ends[row + 1]), len(one.liked)
            liked, unliked = vectors.take(places[:middle]), vectors.take(places[middle:])
            ids, weights = part.of(row)
            known, query = ids < scorer.size, np.zeros(scorer.size)
            query[ids[known]] = weights[known]
            model = _model(liked, one.trust, factors, feedback.method)
            against = np.full(len(unliked), feedback.against / max(len(unliked), 1))
            model -= _model(unliked, against, factors, feedback.method)
            kept = _strongest(model, query, factors, never, feedback.concepts)
            gains = _gains(query, kept, factors, feedback.method, weight)
            documents = np.array((*one.liked, *one.unliked), np.int64)
            yield _expansion(ids, weights, gains, documents, vectors.take(places))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The documents that one query learns from, by position."""

    liked: tuple[int, ...]
    unliked: tuple[int, ...]
    trust: NDArray[np.float64]
    """[n_liked], sums to 1: how much each counts."""

    @staticmethod
    def of(hits: Sequence[tuple[int, float]], marked: Marked, focus: float) -> _Chosen:
        apart = {*marked.like, *marked.unlike}
        others = [(place, score) for place, score in hits if place not in apart]
        best = max((score for _, score in hits), default=0.0)
        shares = [max(score, 0.0) / best if best > 0 else 1.0 for _, score in others]
        trust = np.array([1.0] * len(marked.like) + shares, np.float64) ** focus
        total = float(trust.sum())
        trust = trust / total if total > 0 else np.full(len(trust), 1 / max(len(trust), 1))
        return _Chosen((*marked.like, *(place for place, _ in others)), marked.unlike, trust)


def _model(
    documents: SparseVectors, shares: NDArray[np.float64], factors: NDArray[np.float64], method: Method
) -> NDArray[np.float64]:
    """float64[n_concepts]: the documents' vectors, each of length 1 (of sum 1 before idf, for rm3), by their shares."""
    total = np.zeros(len(factors))
    for row, share in enumerate(shares):
        ids, weights = documents.of(row)
        values = weights * factors[ids]
        length = np.sqrt((values**2).sum()) if method == "rocchio" else weights.sum(dtype=np.float64)
        total[ids] += share * values / length if length > 0 else 0.0
    return total


def _gains(
    query: NDArray[np.float64],
    model: NDArray[np.float64],
    factors: NDArray[np.float64],
    method: Method,
    weight: float,
) -> NDArray[np.float64]:
    """float64[n_concepts]: what each concept's final weight gains."""
    if method == "rocchio":
        own, whole = np.sqrt((query**2).sum()), np.sqrt((model**2).sum())
    else:
        idf = np.where(factors > 0, factors, np.inf)
        own, whole = (query / idf).sum(), np.abs(model / idf).sum()
        weight = weight / (1 - weight)
    if not whole > 0:
        return model
    gains: NDArray[np.float64] = model / whole * (weight * own)  # in this order: the inverse of whole may overflow
    return gains


def _strongest(
    model: NDArray[np.float64],
    query: NDArray[np.float64],
    factors: NDArray[np.float64],
    blocked: NDArray[np.int64],
    n: int,
) -> NDArray[np.float64]:
    """The n strongest of a model, others 0: those that can count, and of the negative ones those of the query.

    A concept that is pruned, or whose idf falls below 0, gains nothing. Ties go to the lower id.
    """
    free = (factors > 0) & ((model > 0) | (query > 0)) & (query >= 0)
    free[blocked[blocked < len(free)]] = False
    strength = np.where(free, np.abs(model), 0.0)
    found = np.flatnonzero(strength)
    best = found[np.lexsort((found, -strength[found]))][:n]
    kept = np.zeros_like(model)
    kept[best] = model[best]
    return kept


def _expansion(
    ids: NDArray[np.int32],
    weights: NDArray[np.float32],
    gains: NDArray[np.float64],
    documents: NDArray[np.int64],
    vectors: SparseVectors,
) -> Expansion:
    """A query with the gains added. documents, vectors: those that it learned from."""
    touched = np.flatnonzero(gains).astype(np.int32)
    new_ids = np.union1d(ids, touched).astype(np.int32)
    before = np.zeros(len(new_ids), np.float32)
    before[np.searchsorted(new_ids, ids)] = weights
    after = before.copy()
    places = np.searchsorted(new_ids, touched)
    after[places] = np.maximum(before[places] + gains[touched], 0.0).astype(np.float32)
    changes = after[places] - before[places]
    return Expansion(new_ids, after, touched[changes != 0], changes[changes != 0], documents, vectors)
