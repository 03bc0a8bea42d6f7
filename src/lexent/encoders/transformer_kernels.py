"""The arithmetic of a transformer on a CPU, in float32 and on one thread.

A query has about ten tokens, so a layer is bound by reading its weights. BLAS copies them into tiles at each product;
here they are kept in tiles, and each is read once. A row's result does not depend on the rows beside it: a text has the
same states, bit for bit, alone and in a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lexent.cpu_features import CPU_FEATURES
from lexent.jit import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 6
"""Rows whose sums are accumulated together."""
LANES = 32 if "+avx512f" in CPU_FEATURES else 16
"""Columns whose sums are accumulated together: with ROWS they fill 12 vector registers of AVX-512 or of AVX2."""
_SUMS = ir.VectorType(ir.FloatType(), LANES)


def padded(n: int) -> int:
    """Rows that an array of n rows needs, so that ROWS of them can be read from any of the n."""
    return n + ROWS


def tiled(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32[tiles, k, LANES] of float32[m, k], whose rows are the columns of a product; zeros fill the last tile."""
    m, k = matrix.shape
    tiles = -(-m // LANES)
    rows = np.zeros((tiles * LANES, k), np.float32)
    rows[:m] = matrix
    return np.ascontiguousarray(rows.reshape(tiles, LANES, k).transpose(0, 2, 1))


@intrinsic
def _tile(
    _context: Any, x: Any, at: Any, stride: Any, weights: Any, place: Any, depth: Any, out: Any, to: Any, step: Any
) -> Any:
    """ROWS x LANES sums: out[to + r * step + lane] = sum over i of x[at + r * stride + i] * weights[place + i, lane].

    Places are those of flat arrays. Nothing is checked.
    """

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        given, packed, result = (
            target.make_array(signature.args[one])(target, builder, values[one]).data for one in (0, 3, 6)
        )
        long, zero = ir.IntType(64), ir.Constant(_SUMS, [0.0] * LANES)
        name = f"llvm.fmuladd.v{LANES}f32"
        fused = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(_SUMS, [_SUMS] * 3), name
        )
        undefined, first = ir.Constant(_SUMS, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        every_lane = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        sums = [cgutils.alloca_once(builder, _SUMS) for _ in range(ROWS)]  # type: ignore[no-untyped-call]
        for sum_ in sums:
            builder.store(zero, sum_)
        with cgutils.for_range(builder, values[5], intp=long) as loop:
            source = builder.add(values[4], builder.mul(loop.index, ir.Constant(long, LANES)))
            own = builder.load(builder.bitcast(builder.gep(packed, [source]), _SUMS.as_pointer()), align=4)
            start = builder.add(values[1], loop.index)
            for row, sum_ in enumerate(sums):
                there = builder.add(start, builder.mul(values[2], ir.Constant(long, row)))
                one = builder.insert_element(undefined, builder.load(builder.gep(given, [there]), align=4), first)
                spread = builder.shuffle_vector(one, undefined, every_lane)
                builder.store(builder.call(fused, [spread, own, builder.load(sum_)]), sum_)
        for row, sum_ in enumerate(sums):
            there = builder.add(values[7], builder.mul(values[8], ir.Constant(long, row)))
            builder.store(
                builder.load(sum_), builder.bitcast(builder.gep(result, [there]), _SUMS.as_pointer()), align=4
            )
        return target.get_dummy_value()

    size = types.int64
    return types.void(x, size, size, weights, size, size, out, size, size), emit


@njit(cache=True, nogil=True)
def linear(x, n, tiles, bias, out):  # type: ignore[no-untyped-def]
    """out[:n] = x[:n] @ W + bias. x, out: float32[padded(n), k] and [padded(n), m]."""
    k, m = x.shape[1], out.shape[1]
    sums = np.empty((ROWS, LANES), np.float32)
    for tile in range(len(tiles)):
        first = tile * LANES
        columns = min(LANES, m - first)
        for row in range(0, n, ROWS):
            _tile(x, row * k, k, tiles, tile * k * LANES, k, sums, 0, LANES)  # type: ignore[call-arg]
            for r in range(ROWS):
                for lane in range(columns):
                    out[row + r, first + lane] = sums[r, lane] + bias[first + lane]


@njit(cache=True, nogil=True, fastmath=True)
def gelu(x, n):  # type: ignore[no-untyped-def]
    """x[:n] = x (1 + erf(x / sqrt(2))) / 2, in place. erf(y) = y P(y * y) / Q(y * y) within 5e-7, as in Eigen."""
    one, half, edge = np.float32(1), np.float32(0.5), np.float32(4)
    root = np.float32(0.7071067811865476)
    p0, p1, p2 = np.float32(-1.60960333262415e-02), np.float32(-2.95459980854025e-03), np.float32(-7.34990630326855e-04)
    p3, p4, p5 = np.float32(-5.69250639462346e-05), np.float32(-2.10102402082508e-06), np.float32(2.77068142495902e-08)
    p6 = np.float32(-2.72614225801306e-10)
    q0, q1, q2 = np.float32(-1.42647390514189e-02), np.float32(-7.37332916720468e-03), np.float32(-1.68282697438203e-03)
    q3, q4 = np.float32(-2.13374055278905e-04), np.float32(-1.45660718464996e-05)
    for row in range(n):
        own = x[row]
        for at in range(len(own)):
            value = own[at]
            y = value * root
            y = edge if y > edge else y
            y = -edge if y < -edge else y
            z = y * y
            above = (((((p6 * z + p5) * z + p4) * z + p3) * z + p2) * z + p1) * z + p0
            below = (((q4 * z + q3) * z + q2) * z + q1) * z + q0
            own[at] = half * value * (one + y * above / below)


@njit(cache=True, nogil=True, fastmath=True)
def add_and_norm(x, other, n, gain, shift, epsilon, out):  # type: ignore[no-untyped-def]
    """out[:n] = the layer norm of x[:n] + other[:n]."""
    width = x.shape[1]
    for row in range(n):
        total = np.float32(0)
        for at in range(width):
            value = x[row, at] + other[row, at]
            out[row, at] = value
            total += value
        mean, squares = total / np.float32(width), np.float32(0)
        for at in range(width):
            value = out[row, at] - mean
            squares += value * value
        scale = np.float32(1) / np.sqrt(squares / np.float32(width) + epsilon)
        for at in range(width):
            out[row, at] = (out[row, at] - mean) * scale * gain[at] + shift[at]


@njit(cache=True, nogil=True)
def _powers(row, n, most, scale, bits, factors):  # type: ignore[no-untyped-def]
    """row[:n] = exp((row - most) * scale), within 2e-7 of it; bits and factors: one buffer, read as both types."""
    for at in range(n):
        value = max((row[at] - most) * scale, np.float32(-87))
        whole = np.floor(value * np.float32(1.44269504088896341) + np.float32(0.5))
        rest = value - whole * np.float32(0.693359375) + whole * np.float32(2.12194440e-4)
        power = np.float32(1.9875691500e-4)
        power = power * rest + np.float32(1.3981999507e-3)
        power = power * rest + np.float32(8.3334519073e-3)
        power = power * rest + np.float32(4.1665795894e-2)
        power = power * rest + np.float32(1.6666665459e-1)
        power = power * rest + np.float32(5.0000001201e-1)
        row[at] = power * rest * rest + rest + np.float32(1)
        bits[at] = (np.int32(whole) + np.int32(127)) << np.int32(23)
    for at in range(n):
        row[at] *= factors[at]


@njit(cache=True, nogil=True, fastmath=True)
def _highest(row, n):  # type: ignore[no-untyped-def]
    most = row[0]
    for at in range(1, n):
        most = max(most, row[at])
    return most


@njit(cache=True, nogil=True, fastmath=True)
def _total(row, n):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for at in range(n):
        total += row[at]
    return total


@njit(cache=True, nogil=True)
def attend(qkv, offsets, heads, distances, out):  # type: ignore[no-untyped-def]
    """Self-attention within each text. qkv: float32[padded(n), 3 * width], out: float32[padded(n), width].

    distances: float32[heads, 2 * most + 1], what is added to a score by how far the one token is after the other, from
    -most to most; empty where nothing is.
    """
    width = out.shape[1]
    d, stride = width // heads, qkv.shape[1]
    depth_tiles = -(-d // LANES)
    scale = np.float32(1) / np.sqrt(np.float32(d))
    longest = 0
    for text in range(len(offsets) - 1):
        longest = max(longest, offsets[text + 1] - offsets[text])
    tiles = -(-longest // LANES)
    keys, values = np.empty((tiles, d, LANES), np.float32), np.zeros((depth_tiles, longest, LANES), np.float32)
    scores, sums = np.empty((ROWS, tiles * LANES), np.float32), np.empty((ROWS, LANES), np.float32)
    bits = np.empty(tiles * LANES, np.int32)
    factors = bits.view(np.float32)
    for text in range(len(offsets) - 1):
        start, n = offsets[text], offsets[text + 1] - offsets[text]
        for head in range(heads):
            at = head * d
            for token in range(n):
                for i in range(d):
                    keys[token // LANES, i, token % LANES] = qkv[start + token, width + at + i]
                    values[i // LANES, token, i % LANES] = qkv[start + token, 2 * width + at + i]
            for first in range(0, n, ROWS):
                for tile in range(-(-n // LANES)):
                    place = tile * d * LANES
                    _tile(
                        qkv, (start + first) * stride + at, stride, keys, place, d,
                        scores, tile * LANES, scores.shape[1],
                    )  # type: ignore[call-arg]  # fmt: skip
                rows = min(ROWS, n - first)
                for r in range(rows):
                    row = scores[r]
                    if len(distances):
                        zero = distances.shape[1] // 2 - first - r
                        for token in range(n):
                            row[token] += distances[head, zero + token] / scale
                    _powers(row, n, _highest(row, n), scale, bits, factors)
                for tile in range(depth_tiles):
                    place = tile * longest * LANES
                    _tile(scores, 0, scores.shape[1], values, place, n, sums, 0, LANES)  # type: ignore[call-arg]
                    columns = min(LANES, d - tile * LANES)
                    for r in range(rows):
                        part = np.float32(1) / _total(scores[r], n)
                        for lane in range(columns):
                            out[start + first + r, at + tile * LANES + lane] = sums[r, lane] * part


@njit(cache=True, nogil=True)
def layer(  # type: ignore[no-untyped-def]
    x, offsets, heads, distances, epsilon, qkv, qkv_bias, merge, merge_bias, gain_1, shift_1,
    widen, widen_bias, narrow, narrow_bias, gain_2, shift_2, wide, states, attended, hidden,
):  # fmt: skip
    """One layer of a transformer with the norms after the sums, in place on x float32[padded(n), width].

    wide, states, attended, hidden: buffers of padded(n) rows.
    """
    n = offsets[-1]
    linear(x, n, qkv, qkv_bias, wide)
    attend(wide, offsets, heads, distances, attended)
    linear(attended, n, merge, merge_bias, states)
    add_and_norm(states, x, n, gain_1, shift_1, epsilon, attended)
    linear(attended, n, widen, widen_bias, hidden)
    gelu(hidden, n)
    linear(hidden, n, narrow, narrow_bias, states)
    add_and_norm(states, attended, n, gain_2, shift_2, epsilon, x)
