"""Which words raised which concepts, for queries and documents, with what was encoded remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexent.explain.alignment import Piece, align
from lexent.explain.attribution import words
from lexent.search.token_rows import of_text
from lexent.server.bodies import WordsBody
from lexent.server.queries import checked, weighed
from lexent.server.served import ServedIndex
from lexent.types import Kind, Tokens, TokenShare

if TYPE_CHECKING:
    from lexent.search.query import Query
    from lexent.search.searcher import Searcher

MAX_CONCEPTS = 40
"""Concepts of a hit whose words are given, the strongest ones."""
CONCEPTS_PER_WORD = 4
"""Concepts that are given of each word of a document."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A text with the concepts of each of its tokens."""

    text: str
    tokens: Tokens
    ids: NDArray[np.int32]  # [n_tokens, k]
    values: NDArray[np.float32]  # [n_tokens, k]
    summed: bool
    """Whether tokens add up, or only the strongest one counts."""
    whole: bool = False
    """The last row is of the text as a whole."""

    def shares(self, concept: int) -> tuple[TokenShare, ...]:
        """What each word gave to a concept, strongest first."""
        activations = np.where(self.ids == concept, self.values, 0).sum(axis=1, dtype=np.float64)
        if not self.summed and len(activations):
            activations = np.where(np.arange(len(activations)) == activations.argmax(), activations, 0.0)
        return words(self.text, self.tokens, activations, whole=self.whole)


def coded(searcher: Searcher, texts: Sequence[str], kind: Kind) -> list[Coded]:
    """The texts, encoded and coded as the index codes them."""
    recipe, encoder = searcher.recipe, searcher.encoder
    if recipe.level != "tokens" or not texts:
        return []
    tokens = encoder.tokenize(texts, kind=kind, specials=recipe.specials)
    summed = recipe.pool == "sum" or (recipe.match == "maxsim" and kind == "query")
    parts, order = searcher.pipeline.collect(texts, lambda batch: batch.codes, kind=kind)
    rows = [of_text(codes, place) for codes in parts for place in range(len(codes.offsets) - 1)]
    return [
        Coded(text, own, rows[place].ids, rows[place].values, summed, recipe.whole > 0)
        for text, own, place in zip(texts, tokens, order.tolist(), strict=True)
    ]


def coded_documents(served: ServedIndex, searcher: Searcher, positions: Sequence[int]) -> list[Coded]:
    """The same for documents of the index; those that were asked for lately are not encoded again."""
    generation = searcher.manifest.generation
    known = {position: served.cache.get(("coded", generation, position)) for position in positions}
    fresh = [position for position, found in known.items() if found is None]
    texts = [document.content for document in searcher.reader.at(fresh)]
    for position, found in zip(fresh, coded(searcher, texts, "document"), strict=False):
        known[position] = served.cache.put(("coded", generation, position), found)
    return [one for position in positions if (one := known[position]) is not None]


def of_hits(served: ServedIndex, body: WordsBody) -> dict[str, Any]:
    """For the query and for some of its hits: the words that raised each of the concepts that they share."""
    checked(body, served.limits)
    searcher = served.searcher(body.settings)
    query = weighed(searcher, body)
    there = searcher.reader.positions(body.documents)
    places = {id: there[id] for id in dict.fromkeys(body.documents) if id in there}
    if searcher.recipe.level != "tokens":
        return {"query": [], "documents": []}
    own = coded(searcher, [body.query], "query")[0]
    asked = [side for concept in query.ids.tolist() if (side := _side(searcher, own, concept))["tokens"]]
    if query.rows is not None:
        return {"query": asked, "documents": [_aligned(searcher, query, id, place) for id, place in places.items()]}
    reply = []
    for (id, position), found in zip(
        places.items(), coded_documents(served, searcher, list(places.values())), strict=True
    ):
        _, values = searcher.contributions(query, position)
        strongest = [place for place in np.argsort(-np.abs(values), kind="stable")[:MAX_CONCEPTS] if values[place] != 0]
        concepts = [int(query.ids[place]) for place in strongest]
        reply.append({"id": id, "concepts": [_side(searcher, found, concept) for concept in concepts]})
    return {"query": asked, "documents": reply}


def _aligned(searcher: Searcher, query: Query, id: str, position: int) -> dict[str, Any]:
    """Where tokens are matched, a concept's words are those that the query's tokens found, by what they added."""
    text = searcher.reader.at([position])[0].content
    found: dict[int, dict[tuple[str, int, int], float]] = {}
    labels: dict[int, str] = {}
    for token in align(searcher, query, position, id=id, score=0.0).tokens:
        for part in token.concepts if token.document is not None else ():
            assert token.document is not None
            key = _whole_word(text, token.document)
            shares = found.setdefault(part.concept, {})
            shares[key] = shares.get(key, 0.0) + part.value
            labels[part.concept] = part.label
    totals = {concept: sum(shares.values()) for concept, shares in found.items()}
    strongest = sorted(found, key=lambda concept: (-abs(totals[concept]), concept))[:MAX_CONCEPTS]
    concepts = [
        {
            "concept": concept,
            "label": labels[concept],
            "pooled": totals[concept],
            "tokens": [TokenShare(*key, share) for key, share in found[concept].items()],
        }
        for concept in strongest
    ]
    return {"id": id, "concepts": concepts}


def _whole_word(text: str, piece: Piece) -> tuple[str, int, int]:
    """The word that a piece belongs to, and its place; the piece itself where it is no part of a word."""
    start, stop = piece.start, piece.stop
    if not text[start:stop].isalnum():
        return piece.word, start, stop
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    while stop < len(text) and text[stop].isalnum():
        stop += 1
    return text[start:stop], start, stop


def behind(
    served: ServedIndex, searcher: Searcher, query: str, position: int, concepts: Sequence[int]
) -> list[dict[str, Any]]:
    """The words behind some concepts, on both sides of a hit."""
    if searcher.recipe.level != "tokens" or not concepts:
        return []
    own, document = coded(searcher, [query], "query")[0], coded_documents(served, searcher, [position])[0]
    return [
        {
            "concept": concept,
            "label": searcher.lexicon.label(concept),
            "query": _shares(own, concept),
            "document": _shares(document, concept),
        }
        for concept in concepts
    ]


def of_document(served: ServedIndex, searcher: Searcher, position: int) -> list[dict[str, Any]]:
    """The words of a document in order, each with the concepts that it raised most."""
    found = coded_documents(served, searcher, [position])
    if not found:
        return []
    one = found[0]
    rows: dict[tuple[int, int], tuple[str, dict[int, float]]] = {}
    for concept in np.unique(one.ids[one.values > 0]).tolist():
        for share in one.shares(concept):
            if share.stop > share.start:
                word = rows.setdefault((share.start, share.stop), (share.token, {}))
                word[1][concept] = share.share
    reply = []
    for (start, stop), (token, raised) in sorted(rows.items()):
        best = sorted(raised, key=lambda concept: (-raised[concept], concept))[:CONCEPTS_PER_WORD]
        concepts = [{"id": one, "label": searcher.lexicon.label(one), "value": raised[one]} for one in best]
        reply.append({"token": token, "start": start, "stop": stop, "concepts": concepts})
    return reply


def _side(searcher: Searcher, found: Coded, concept: int) -> dict[str, Any]:
    return {"concept": concept, "label": searcher.lexicon.label(concept), **_shares(found, concept)}


def _shares(found: Coded, concept: int) -> dict[str, Any]:
    shares = found.shares(concept)
    return {"pooled": sum(share.share for share in shares), "tokens": shares}
