"""Which test queries are new to a system that learned from train queries: the headline is theirs.

A test query is
    query seen      if a train query is nearly the same: the Jaccard index of their content words is 0.6 or more
    document seen   if not, and one of its relevant documents is relevant to a train query
    new             otherwise

At 0.6, two queries of four content words that differ in one are nearly the same. Content words are those of the
baseline bm25: lower-cased, of two letters or more, without English stop words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lexent.errors import InputError, NotFoundError
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.lexical import words
from lexent.evaluation.training_split import split_beside

Group = Literal["new", "document seen", "query seen"]
GROUPS: tuple[Group, ...] = ("new", "document seen", "query seen")
ALL = "all"
NEAR_DUPLICATE_JACCARD = 0.6
"""Jaccard index of content words from which on two queries are nearly the same."""
RULE = (
    "new: no train query asks for one of its documents or is nearly the same (Jaccard index of content words "
    f"{NEAR_DUPLICATE_JACCARD} or more)"
)
CHUNK_QUERIES = 256
"""Test queries that are compared with all train queries at a time."""


@dataclass(frozen=True, slots=True)
class Part:
    """The values of all systems over some of the queries."""

    queries: int
    values: dict[str, dict[str, float]]
    """System to measure to mean."""
    p_values: dict[str, dict[str, float]]
    """System to measure to the paired t-test against the reference, over these queries."""


def groups_of(tested: Collection, train: Collection) -> dict[str, Group]:
    """Test query to its group."""
    relevant = {id for judged in train.qrels.values() for id, grade in judged.items() if grade > 0}
    texts = {document.id: document.content for document in tested.documents if document.id in relevant}
    # Some collections number the documents of each split anew: a document that was seen has the same text too.
    known = {document.id for document in train.documents if texts.get(document.id) == document.content}
    similar = nearest_overlap(list(tested.queries.values()), list(train.queries.values()))
    found: dict[str, Group] = {}
    for query, overlap in zip(tested.queries, similar.tolist(), strict=True):
        seen = any(id in known for id, grade in tested.qrels[query].items() if grade > 0)
        found[query] = "query seen" if overlap >= NEAR_DUPLICATE_JACCARD else "document seen" if seen else "new"
    return found


def train_groups(
    source: str | Path | Collection, tested: Collection, train_split: str | None = None
) -> dict[str, Group]:
    """Test query to its group, by the train split beside it; nothing where none can be read."""
    try:
        train = split_beside(source, tested, train_split)
    except (InputError, NotFoundError):  # it cannot be read: what was measured stands all the same
        return {}
    return {} if train is None else groups_of(tested, train)


def parts_of(
    groups: Mapping[str, Group], scores: Mapping[str, scoring.Scores], reference: str | None
) -> dict[str, Part]:
    """The groups that have queries, new ones first, and all queries at the end; nothing where there are no groups.

    A query without a value counts as 0.
    """
    if not groups:
        return {}
    members = {group: [query for query, own in groups.items() if own == group] for group in GROUPS}
    found: dict[str, Part] = {}
    for name, queries in (*members.items(), (ALL, list(groups))):
        if queries:
            part = {system: score.among(queries) for system, score in scores.items()}
            means = {system: score.means for system, score in part.items()}
            found[name] = Part(len(queries), means, scoring.p_values(part, reference))
    return found


def nearest_overlap(texts: Sequence[str], others: Sequence[str]) -> NDArray[np.float64]:
    """float64[n_texts]: the highest Jaccard index of a text's content words with those of any other text."""
    from scipy.sparse import csr_array

    both = [*texts, *others]
    # The distinct content words of each text; the whole text where it has none.
    rows = [sorted(set(found)) or [text.casefold()] for found, text in zip(words(both), both, strict=True)]
    numbers: dict[str, int] = {}
    columns = [numbers.setdefault(word, len(numbers)) for row in rows for word in row]
    starts = np.cumsum([0, *map(len, rows)])
    matrix = csr_array((np.ones(len(columns), np.int32), columns, starts), shape=(len(rows), len(numbers)))
    sizes = np.array([len(row) for row in rows])
    found = np.zeros(len(texts))
    rest = matrix[len(texts) :].T.tocsr()
    for start in range(0, len(texts) if len(others) else 0, CHUNK_QUERIES):
        stop = min(start + CHUNK_QUERIES, len(texts))
        shared = (matrix[start:stop] @ rest).toarray()
        union = sizes[start:stop, None] + sizes[None, len(texts) :] - shared
        found[start:stop] = (shared / union).max(axis=1)
    return found
