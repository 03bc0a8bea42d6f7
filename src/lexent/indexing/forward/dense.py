"""The encoder's own vectors of documents, kept for comparison with dense search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.stores import Column, Store

BLOCK = 16_384
"""Vectors that are held as float32 at a time."""


@dataclass(frozen=True)
class DenseStore(Store):
    """One vector of length 1 a document, in half precision."""

    name: ClassVar[str] = "dense"
    columns: ClassVar[dict[str, Column]] = {"vectors": Column((np.float16,), width=-1)}

    @staticmethod
    def of(vectors: NDArray[Any]) -> DenseStore:
        """vectors: float[n_documents, width], of any length."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return DenseStore({"vectors": (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float16)})

    def __len__(self) -> int:
        return len(self.arrays["vectors"])

    @property
    def rows(self) -> int:
        return len(self)

    def take(self, documents: NDArray[np.int64]) -> Self:
        return type(self)({"vectors": self.arrays["vectors"][documents]})

    def fits(self, *, size: int, n_documents: int) -> bool:
        return len(self) == n_documents

    def cosines(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32[n_documents]: the cosine of each document with a query of length 1."""
        vectors, found = self.arrays["vectors"], np.empty(len(self), np.float32)
        for start in range(0, len(vectors), BLOCK):
            found[start : start + BLOCK] = vectors[start : start + BLOCK].astype(np.float32) @ query
        return found
