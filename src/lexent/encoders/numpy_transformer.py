"""The states of tokens with NumPy: the twin of `transformer_kernels`, for a query and a few documents.

A matrix is multiplied as it lies in the file, which is mapped: nothing is copied or compiled first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    Tensor = Callable[[str, str], Matrix]

_ABOVE = (
    -1.60960333262415e-02, -2.95459980854025e-03, -7.34990630326855e-04, -5.69250639462346e-05, -2.10102402082508e-06,
    2.77068142495902e-08, -2.72614225801306e-10,
)  # fmt: skip
_BELOW = (
    -1.42647390514189e-02, -7.37332916720468e-03, -1.68282697438203e-03, -2.13374055278905e-04, -1.45660718464996e-05
)  # fmt: skip
"""erf(y) = y P(y * y) / Q(y * y): the coefficients of P and Q, of the lowest power first. See the kernel."""
ELEMENTS_AT_A_TIME = 1 << 15
"""Elements of the widest layer whose activation is computed at a time, so that they stay in a core's cache."""


def layer(x: Matrix, offsets: NDArray[np.int64], heads: int, distances: Matrix, epsilon: float, held: Tensor) -> Matrix:
    """One layer of a transformer with the norms after the sums. held: a tensor by its part and its kind."""
    query, key, value = (_linear(x, held, part) for part in ("query", "key", "value"))
    attended = np.empty_like(x)
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        own = slice(start, stop)
        attended[own] = _attend(query[own], key[own], value[own], heads, distances)
    x = norm(_linear(attended, held, "merge") + x, held("norm_1", "weight"), held("norm_1", "bias"), epsilon)
    hidden = _linear(x, held, "widen")
    step = max(1, ELEMENTS_AT_A_TIME // hidden.shape[1])
    for start in range(0, len(hidden), step):
        _gelu(hidden[start : start + step])
    return norm(_linear(hidden, held, "narrow") + x, held("norm_2", "weight"), held("norm_2", "bias"), epsilon)


def norm(x: Matrix, gain: Matrix, shift: Matrix, epsilon: float) -> Matrix:
    """The layer norm of each row."""
    mean: Matrix = x.mean(axis=1, keepdims=True)
    centred = x - mean
    variance = np.einsum("ij,ij->i", centred, centred)[:, None] / np.float32(x.shape[1])
    centred *= 1 / np.sqrt(variance + np.float32(epsilon))
    centred *= gain
    centred += shift
    return centred


def _linear(x: Matrix, held: Tensor, part: str) -> Matrix:
    found: Matrix = x @ held(part, "weight").T
    found += held(part, "bias")
    return found


def _attend(query: Matrix, key: Matrix, value: Matrix, heads: int, distances: Matrix) -> Matrix:
    """Self-attention within a text. distances: as the kernel's."""
    n, width = query.shape
    queries, keys, values = (part.reshape(n, heads, -1).transpose(1, 0, 2) for part in (query, key, value))
    scores = queries @ keys.transpose(0, 2, 1)
    scores *= np.float32(1) / np.sqrt(np.float32(width // heads))
    if len(distances):
        after = np.arange(n)[None, :] - np.arange(n)[:, None]
        scores += distances[:, distances.shape[1] // 2 + after]
    scores -= scores.max(axis=2, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=2, keepdims=True)
    mixed = np.empty((heads, n, width // heads), np.float32)
    np.matmul(scores, values, out=mixed)
    return mixed.transpose(1, 0, 2).reshape(n, width)


def _gelu(x: Matrix) -> None:
    """x (1 + erf(x / sqrt(2))) / 2, in place."""
    y: Matrix = np.clip(x * np.float32(0.7071067811865476), np.float32(-4), np.float32(4))
    z: Matrix = y * y
    above, below = _polynomial(z, _ABOVE), _polynomial(z, _BELOW)
    y *= above
    y /= below
    y += np.float32(1)
    y *= np.float32(0.5)
    x *= y


def _polynomial(z: Matrix, coefficients: tuple[float, ...]) -> Matrix:
    found: Matrix = z * np.float32(coefficients[-1])
    for one in coefficients[-2:0:-1]:
        found += np.float32(one)
        found *= z
    found += np.float32(coefficients[0])
    return found
