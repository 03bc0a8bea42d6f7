"""Which words raised which concepts, for queries and documents, and which words gave a hit its score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.explain.alignment import AlignedText
from lexent.explain.contributions import shared_terms
from lexent.explain.ranking import best_passage
from lexent.indexing.passages import PassageText
from lexent.search.coded_text import CodedText
from lexent.search.results import Hit
from lexent.server.bodies import WordsBody
from lexent.server.replies import ConceptShares, ConceptTokens, DocumentWords, Shares, WordsReply
from lexent.server.served import ServedIndex

if TYPE_CHECKING:
    from lexent.explain.word_pairs import WordMatch
    from lexent.search.query import Query
    from lexent.search.searcher import Searcher

MAX_CONCEPTS = 40
"""Concepts of a hit whose words are given, the strongest ones."""
CONCEPTS_PER_WORD = 4
"""Concepts that are given of each word of a document."""
FOUND_WORDS = 12
"""Words of a document that are given with each word of the query."""
MAX_PASSAGES = 32
"""Passages of a document whose words are given."""
DOCUMENTS_PER_BATCH = 32
"""Documents that are encoded together; a searcher keeps more than so many."""


def matches(searcher: Searcher, query: Query, positions: Sequence[int]) -> list[Sequence[WordMatch] | None]:
    """What each word of a query got from which words of each document; None where the recipe has no words."""
    if searcher.recipe.level != "tokens":
        return [None for _ in positions]
    found: list[Sequence[WordMatch] | None] = []
    for start in range(0, len(positions), DOCUMENTS_PER_BATCH):
        batch = positions[start : start + DOCUMENTS_PER_BATCH]
        if query.rows is None:
            searcher.coded_documents(batch)  # together; one at a time is slower
        for position, document in zip(batch, searcher.reader.at(batch), strict=True):
            facts = (document.id, 0.0, document.title, document.text, document.metadata)
            words = Hit(0, *facts, position, query, searcher).words()  # its rank and score do not matter
            found.append(words.top(len(words.matches), words=FOUND_WORDS).matches)
    return found


def of_hits(served: ServedIndex, body: WordsBody) -> WordsReply:
    """For the query and for some of its hits: the words that raised each of the concepts that they share."""
    searcher = body.searcher(served)
    query = body.weighed(searcher)
    known = searcher.reader.positions(body.documents)
    places = {id: best_passage(searcher, query, known[id]) for id in dict.fromkeys(body.documents) if id in known}
    if searcher.recipe.level != "tokens":
        return WordsReply([], [])
    own = searcher.coded_query(body.query)
    assert own is not None
    texts: Sequence[AlignedText | CodedText]
    if query.rows is not None:
        texts = [AlignedText.of(searcher, query, position) for position in places.values()]
    else:
        texts = searcher.coded_documents(list(places.values()))
    documents = []
    pairs = matches(searcher, query, list(places.values()))
    passages = searcher.reader.passages(list(places.values()))
    for (id, position), passage, text, words in zip(places.items(), passages, texts, pairs, strict=True):
        strongest = [term for term, *_, value in shared_terms(searcher, query, position)[:MAX_CONCEPTS] if value != 0]
        concepts = [_concept_shares(searcher, text, concept, passage) for concept in strongest]
        documents.append(DocumentWords(id, concepts, list(words or ())))
    mine = [_concept_shares(searcher, own, concept) for concept in query.ids.tolist()]
    return WordsReply([shares for shares in mine if shares.tokens], documents)


def behind(searcher: Searcher, query: str, position: int, concepts: Sequence[int]) -> list[ConceptTokens]:
    """The words behind some concepts, on both sides of a hit. position: of its passage."""
    if searcher.recipe.level != "tokens" or not concepts:
        return []
    own, document = searcher.coded_query(query), searcher.coded_documents([position])[0]
    assert own is not None
    label, passage = searcher.label, searcher.reader.passages([position])[0]
    return [ConceptTokens(one, label(one), _shares(own, one), _shares(document, one, passage)) for one in concepts]


def of_document(searcher: Searcher, position: int) -> list[dict[str, Any]]:
    """The words of a document in order, each with the concepts that it raised most; none where the recipe has none.

    Of a long document, those of its first passages.
    """
    if searcher.recipe.level != "tokens":
        return []
    rows: dict[tuple[int, int, str], dict[int, float]] = {}
    run = searcher.reader.run(position)[:MAX_PASSAGES]
    for passage, text in zip(searcher.reader.passages(run), searcher.coded_documents(run), strict=True):
        for concept in np.unique(text.ids[text.values > 0]).tolist():
            for share in passage.in_content(text.shares(concept)):
                if share.stop > share.start:
                    rows.setdefault((share.start, share.stop, share.token), {})[concept] = share.share
    reply = []
    for (start, stop, token), raised in sorted(rows.items()):
        best = sorted(raised, key=lambda concept: (-raised[concept], concept))[:CONCEPTS_PER_WORD]
        concepts = [{"id": one, "label": searcher.lexicon.label(one), "value": raised[one]} for one in best]
        reply.append({"token": token, "start": start, "stop": stop, "concepts": concepts})
    return reply


def _shares(text: AlignedText | CodedText, concept: int, passage: PassageText | None = None) -> Shares:
    """passage: what the text is of a document, whose places the words get."""
    shares = text.shares(concept) if passage is None else passage.in_content(text.shares(concept))
    return Shares(sum(share.share for share in shares), shares)


def _concept_shares(
    searcher: Searcher, text: AlignedText | CodedText, concept: int, passage: PassageText | None = None
) -> ConceptShares:
    found = _shares(text, concept, passage)
    return ConceptShares(found.pooled, found.tokens, concept, searcher.label(concept))
