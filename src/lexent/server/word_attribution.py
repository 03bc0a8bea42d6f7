"""Which words raised which concepts, for queries and documents. Documents that were encoded are cached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.explain.alignment import AlignedText
from lexent.explain.contributions import shared_terms
from lexent.search.coded_text import CodedText, code_texts
from lexent.server.bodies import WordsBody
from lexent.server.replies import ConceptShares, ConceptTokens, DocumentWords, Shares, WordsReply
from lexent.server.served import ServedIndex

if TYPE_CHECKING:
    from lexent.search.searcher import Searcher

MAX_CONCEPTS = 40
"""Concepts of a hit whose words are given, the strongest ones."""
CONCEPTS_PER_WORD = 4
"""Concepts that are given of each word of a document."""


def coded_documents(served: ServedIndex, searcher: Searcher, positions: Sequence[int]) -> list[CodedText]:
    """Documents of the index with the concepts of their tokens; none where the recipe has no tokens."""
    if searcher.recipe.level != "tokens":
        return []
    generation = searcher.manifest.generation
    known: dict[int, Any] = {position: served.cache.get(("coded", generation, position)) for position in positions}
    fresh = [position for position, found in known.items() if found is None]
    texts = [document.content for document in searcher.reader.at(fresh)]
    for position, found in zip(fresh, code_texts(searcher.pipeline, texts, kind="document"), strict=True):
        known[position] = served.cache.put(("coded", generation, position), found)
    return [known[position] for position in positions]


def of_hits(served: ServedIndex, body: WordsBody) -> WordsReply:
    """For the query and for some of its hits: the words that raised each of the concepts that they share."""
    searcher = body.searcher(served)
    query = body.weighed(searcher)
    known = searcher.reader.positions(body.documents)
    places = {id: known[id] for id in dict.fromkeys(body.documents) if id in known}
    if searcher.recipe.level != "tokens":
        return WordsReply([], [])
    own = code_texts(searcher.pipeline, [body.query], kind="query")[0]
    texts: Sequence[AlignedText | CodedText]
    if query.rows is not None:
        texts = [AlignedText.of(searcher, query, position) for position in places.values()]
    else:
        texts = coded_documents(served, searcher, list(places.values()))
    documents = []
    for (id, position), text in zip(places.items(), texts, strict=True):
        strongest = [term for term, *_, value in shared_terms(searcher, query, position)[:MAX_CONCEPTS] if value != 0]
        documents.append(DocumentWords(id, [_concept_shares(searcher, text, concept) for concept in strongest]))
    mine = [_concept_shares(searcher, own, concept) for concept in query.ids.tolist()]
    return WordsReply([shares for shares in mine if shares.tokens], documents)


def behind(
    served: ServedIndex, searcher: Searcher, query: str, position: int, concepts: Sequence[int]
) -> list[ConceptTokens]:
    """The words behind some concepts, on both sides of a hit."""
    if searcher.recipe.level != "tokens" or not concepts:
        return []
    own = code_texts(searcher.pipeline, [query], kind="query")[0]
    document = coded_documents(served, searcher, [position])[0]
    label = searcher.lexicon.label
    return [ConceptTokens(one, label(one), _shares(own, one), _shares(document, one)) for one in concepts]


def of_document(served: ServedIndex, searcher: Searcher, position: int) -> list[dict[str, Any]]:
    """The words of a document in order, each with the concepts that it raised most."""
    rows: dict[tuple[int, int, str], dict[int, float]] = {}
    for text in coded_documents(served, searcher, [position]):
        for concept in np.unique(text.ids[text.values > 0]).tolist():
            for share in text.shares(concept):
                if share.stop > share.start:
                    rows.setdefault((share.start, share.stop, share.token), {})[concept] = share.share
    reply = []
    for (start, stop, token), raised in sorted(rows.items()):
        best = sorted(raised, key=lambda concept: (-raised[concept], concept))[:CONCEPTS_PER_WORD]
        concepts = [{"id": one, "label": searcher.lexicon.label(one), "value": raised[one]} for one in best]
        reply.append({"token": token, "start": start, "stop": stop, "concepts": concepts})
    return reply


def _shares(text: AlignedText | CodedText, concept: int) -> Shares:
    shares = text.shares(concept)
    return Shares(sum(share.share for share in shares), shares)


def _concept_shares(searcher: Searcher, text: AlignedText | CodedText, concept: int) -> ConceptShares:
    found = _shares(text, concept)
    return ConceptShares(found.pooled, found.tokens, concept, searcher.lexicon.label(concept))
