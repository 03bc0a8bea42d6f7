"""Dense store of the forward index: the encoder's own vectors of documents, for dense search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lexent.errors import InputError
from lexent.indexing.forward.stores import Column, ForwardStore

VECTORS_PER_BLOCK = 16_384
"""Vectors that are converted to float32 at a time."""


@dataclass(frozen=True)
class DenseStore(ForwardStore):
    """One float16 vector of length 1 a document."""

    name: ClassVar[str] = "dense"
    columns: ClassVar[dict[str, Column]] = {"vectors": Column((np.float16,), width=-1)}

    @staticmethod
    def of(vectors: NDArray[Any]) -> DenseStore:
        """vectors: float[n_documents, width], of any length."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            row = int(np.flatnonzero(~np.isfinite(lengths))[0])
            raise InputError(f"the vector of document {row} of {len(vectors)} is not finite; give finite vectors")
        return DenseStore({"vectors": (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float16)})

    def __len__(self) -> int:
        return len(self.arrays["vectors"])

    @property
    def rows(self) -> int:
        """Number of documents."""
        return len(self)

    def take(self, documents: NDArray[np.int64]) -> Self:
        """Selects documents, in that order."""
        return type(self)({"vectors": self.arrays["vectors"][documents]})

    def fits(self, *, size: int, n_documents: int) -> bool:
        """Whether there is a vector for each document."""
        return len(self) == n_documents

    def cosines(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32[n_documents]: cosine of each document with a query of length 1.

        Products are summed in float64: in float32 the last digit of a matrix product depends on the place of a row, and
        equal documents would not tie.
        """
        vectors, found = self.arrays["vectors"], np.empty(len(self), np.float32)
        for start in range(0, len(vectors), VECTORS_PER_BLOCK):
            block = vectors[start : start + VECTORS_PER_BLOCK].astype(np.float64)
            found[start : start + VECTORS_PER_BLOCK] = block @ query.astype(np.float64)
        return found
