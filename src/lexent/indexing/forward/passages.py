"""Passages of a segment: which documents they belong to and where they stand in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lexent import array_files
from lexent.corpus.passages import WHOLE, Pieces
from lexent.indexing.forward.stores import Column, ForwardStore


@dataclass(frozen=True)
class PassageStore(ForwardStore):
    """The passages of documents, in order: posting lists hold passages, and documents are runs of them."""

    name: ClassVar[str] = "passages"
    columns: ClassVar[dict[str, Column]] = {
        "first": Column((np.bool_,)),  # [n_passages]: whether it begins a document
        "ends": Column((np.int64,), mode="running"),  # [n_passages + 1]: the first piece of each passage
        "pieces": Column((np.uint32,), width=2),  # spans of the document's content; the last is the passage's own text
    }

    @staticmethod
    def of(passages: Sequence[Sequence[Pieces]]) -> PassageStore:
        """From the passages of each document; every document has one or more."""
        first = [place == 0 for own in passages for place in range(len(own))]
        counts = [len(pieces) for own in passages for pieces in own]
        spans = [span for own in passages for pieces in own for span in pieces]
        return PassageStore(
            {
                "first": np.array(first, np.bool_),
                "ends": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
                "pieces": np.array(spans, np.uint32).reshape(-1, 2),
            }
        )

    @staticmethod
    def single(n_documents: int) -> PassageStore:
        """Documents of one passage each."""
        pieces = np.tile(np.array(WHOLE, np.uint32), (n_documents, 1))
        return PassageStore(
            {"first": np.ones(n_documents, np.bool_), "ends": np.arange(n_documents + 1), "pieces": pieces}
        )

    def __len__(self) -> int:
        return len(self.arrays["first"])

    @property
    def is_single(self) -> bool:
        """Whether every document has one passage."""
        return bool(self.arrays["first"].all())

    @property
    def rows(self) -> int:
        """Number of passages."""
        return len(self)

    def take(self, documents: NDArray[np.int64]) -> Self:
        """Selects passages, in that order; whole documents stay whole."""
        ends = self.arrays["ends"]
        counts = np.diff(ends)[documents]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.repeat(ends[documents] - offsets[:-1], counts) + np.arange(offsets[-1])
        arrays: dict[str, NDArray[Any]] = {"first": self.arrays["first"][documents], "ends": offsets}
        return type(self)({**arrays, "pieces": self.arrays["pieces"][places]})

    def fits(self, *, size: int, n_documents: int) -> bool:
        """Whether the arrays fit together, and every passage has pieces. n_documents: number of passages."""
        first, ends, pieces = (self.arrays[name] for name in self.columns)
        return (
            len(first) == n_documents
            and len(ends) == n_documents + 1
            and bool(
                ends[0] == 0 and ends[-1] == len(pieces) and array_files.ascends(ends) and (np.diff(ends) > 0).all()
            )
            and bool((not n_documents or first[0]) and (pieces[:, 0] <= pieces[:, 1]).all())
        )

    def pieces(self, passage: int) -> Pieces:
        """The spans of a passage."""
        start, stop = self.arrays["ends"][passage : passage + 2]
        return tuple((first, last) for first, last in self.arrays["pieces"][start:stop].tolist())

    @cached_property
    def runs(self) -> PassageRuns:
        """Which passages each document has."""
        return PassageRuns(np.append(np.flatnonzero(self.arrays["first"]), len(self)))


@dataclass(frozen=True)
class PassageRuns:
    """Documents of a segment as runs of passages."""

    starts: NDArray[np.int64]  # [n_documents + 1]: the first passage of each document

    @staticmethod
    def single(n_documents: int) -> PassageRuns:
        """Documents of one passage each."""
        return PassageRuns(np.arange(n_documents + 1))

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.starts) - 1

    def document(self, passage: int) -> int:
        """The document of a passage."""
        return int(np.searchsorted(self.starts, passage, side="right")) - 1

    def passages(self, document: int) -> range:
        """The passages of a document."""
        return range(int(self.starts[document]), int(self.starts[document + 1]))

    def by_passage(self, values: NDArray[Any]) -> NDArray[Any]:
        """What holds of each document, for each of its passages."""
        return values if len(values) == self.starts[-1] else np.repeat(values, np.diff(self.starts))
