"""What an adapter learns from: queries with their relevant documents, hard negatives, and the base's candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.config import HeldOut
from lexent.adapters.modulation import Rows
from lexent.errors import InputError

SCORES_PER_CHUNK = 1 << 25
"""How many scores are held at a time."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Queries of a train split. All vectors are the encoder's, at unit length."""

    queries: Rows  # [n, dim]
    documents: Rows  # [N, dim]
    grades: tuple[dict[int, int], ...]
    """Of each query: document position to its grade, above 0."""
    candidates: NDArray[np.int64]  # [n, c], the base retriever's best, strongest first; -1 where there are no more
    negatives: NDArray[np.int64]  # [n, k], hard negatives, hardest first; -1 where there are no more

    def __len__(self) -> int:
        return len(self.queries)

    @staticmethod
    def of(
        queries: Rows,
        documents: Rows,
        grades: Sequence[Mapping[int, int]],
        *,
        candidates: int,
        n_negatives: int,
        ranked: NDArray[np.int64] | None = None,
        own: Mapping[int, int] | None = None,
    ) -> Examples:
        """Check the vectors and judgements, and rank documents where no ranking is given.

        ranked: int64[n, k], where hard negatives are taken from, strongest first; the base's own ranking where it is
        not given. own: query to the document that is the query itself, which is no candidate.
        """
        if len(queries) != len(grades) or len(queries) < 2:
            raise InputError(f"{len(queries)} queries with {len(grades)} judgements were given; two or more are needed")
        for name, rows in (("query", queries), ("document", documents)):
            wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
            if len(wrong):
                raise InputError(
                    f"the vector of {name} {wrong[0]} of {len(rows)} is not finite: nothing can be learned from it; "
                    "see what the encoder gives for that text"
                )
        kept = tuple({place: grade for place, grade in row.items() if grade > 0} for row in grades)
        if any(not row for row in kept):
            raise InputError("a query has no relevant document: nothing can be learned from it; leave it out")
        most = max(map(len, kept))
        found = nearest(queries, documents, k=max(candidates, n_negatives + most) + 1)
        for row, place in (own or {}).items():
            found[row] = _without(found[row], {place})
        source = found if ranked is None else ranked
        negatives = np.stack(
            [_without(source[row], {*kept[row], (own or {}).get(row, -2)}) for row in range(len(kept))]
        )
        return Examples(queries, documents, kept, found[:, :candidates], negatives[:, :n_negatives])

    def groups(self) -> NDArray[np.int64]:
        """int64[n]: the same number for queries that share a relevant document, also by way of others."""
        parent = list(range(len(self)))

        def root(row: int) -> int:
            while parent[row] != row:
                parent[row] = parent[parent[row]]
                row = parent[row]
            return row

        first: dict[int, int] = {}
        for row, grades in enumerate(self.grades):
            for place in grades:
                parent[root(row)] = root(first.setdefault(place, row))
        return np.array([root(row) for row in range(len(self))], np.int64)

    def folds(self, n: int, *, seed: int, by: HeldOut) -> NDArray[np.int64]:
        """int64[n]: which of n parts a query is in.

        By document, queries that share a relevant document stay together: those that are held out ask for documents
        that were no training query's answer.
        """
        groups = self.groups() if by == "document" else np.arange(len(self))
        names = np.unique(groups)
        if len(names) < n:
            raise InputError(
                f"{len(names)} queries that share no document were given, and {n} folds are wanted; give fewer or "
                "a split with more queries"
            )
        order = np.random.default_rng(seed).permutation(names)
        part = {int(name): place % n for place, name in enumerate(order)}
        return np.array([part[int(group)] for group in groups], np.int64)


def nearest(queries: Rows, documents: Rows, *, k: int) -> NDArray[np.int64]:
    """int64[n, k]: the documents of highest cosine for each query, strongest first."""
    k = min(k, len(documents))
    found = np.empty((len(queries), k), np.int64)
    step = max(1, SCORES_PER_CHUNK // len(documents))
    for start in range(0, len(queries), step):
        scores = queries[start : start + step] @ documents.T
        kept = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        order = np.lexsort((kept, -np.take_along_axis(scores, kept, axis=1)), axis=1)
        found[start : start + step] = np.take_along_axis(kept, order, axis=1)
    return found


def _without(row: NDArray[np.int64], left_out: set[int]) -> NDArray[np.int64]:
    """The row without some positions, filled up with -1."""
    kept = [place for place in row.tolist() if place not in left_out and place >= 0]
    return np.array(kept + [-1] * (len(row) - len(kept)), np.int64)
