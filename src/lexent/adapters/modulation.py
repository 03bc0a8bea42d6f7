"""A modulation: an affine map W x + b that one text puts upon another, in one of three forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Diagonal:
    """W is a factor a dimension."""

    scale: Rows  # [m]
    bias: Rows  # [m]

    def apply(self, rows: Rows) -> Rows:
        """float32[n, m]: W x + b of each row."""
        return rows * self.scale + self.bias

    def transposed(self, vector: Rows) -> Rows:
        """float32[m]: what a vector weighs rows with before they are modulated, W' v."""
        return self.scale * vector

    @property
    def distance(self) -> float:
        """The Frobenius length of W - I."""
        return float(np.linalg.norm(self.scale - 1))


@dataclass(frozen=True, slots=True)
class LowRank:
    """W is the identity and the mean of some products U V'."""

    left: Rows  # [terms, m, r]
    right: Rows  # [terms, m, r]
    bias: Rows  # [m]

    def apply(self, rows: Rows) -> Rows:
        """The modulated rows."""
        inner = np.einsum("nm,tmr->ntr", rows, self.right)
        found: Rows = rows + np.einsum("ntr,tmr->nm", inner, self.left) / np.float32(len(self.left)) + self.bias
        return found

    def transposed(self, vector: Rows) -> Rows:
        """The transposed matrix times a vector."""
        inner = np.einsum("m,tmr->tr", vector, self.left)
        found: Rows = vector + np.einsum("tr,tmr->m", inner, self.right) / np.float32(len(self.left))
        return found

    @property
    def distance(self) -> float:
        """The Frobenius norm of the matrix minus the identity."""
        product = np.einsum("tmr,tnr->mn", self.left, self.right) / len(self.left)
        return float(np.linalg.norm(product))


@dataclass(frozen=True, slots=True)
class Full:
    """W is any matrix."""

    matrix: Rows  # [m, m]
    bias: Rows  # [m]

    def apply(self, rows: Rows) -> Rows:
        """The modulated rows."""
        return rows @ self.matrix.T + self.bias

    def transposed(self, vector: Rows) -> Rows:
        """The transposed matrix times a vector."""
        return self.matrix.T @ vector

    @property
    def distance(self) -> float:
        """The Frobenius norm of the matrix minus the identity."""
        return float(np.linalg.norm(self.matrix - np.eye(len(self.matrix))))


Modulation: TypeAlias = Diagonal | LowRank | Full


def of_outputs(outputs: Rows, *, mode: str, width: int, rank: int) -> Modulation:
    """The mean modulation that the outputs [n, size] of an adapter stand for; every form is the identity at 0.

    A low-rank one is so where its left half is 0: both halves at 0 could never leave it.
    """
    m = width
    if mode == "diag":
        return Diagonal(1 + np.tanh(outputs[:, :m]).mean(axis=0), outputs[:, m:].mean(axis=0))
    bias = outputs[:, -m:].mean(axis=0)
    if mode == "lowrank":
        left, right = (part.reshape(-1, m, rank) for part in (outputs[:, : m * rank], outputs[:, m * rank : -m]))
        return LowRank(left, right, bias)
    return Full(np.eye(m, dtype=np.float32) + outputs[:, :-m].mean(axis=0).reshape(m, m), bias)
