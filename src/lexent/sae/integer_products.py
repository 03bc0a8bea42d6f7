"""Exact integer products of states with latents, on any processor.

torch's 8-bit product (`torch._int_mm`) is fast with VNNI instructions alone. Without them it adds pairs of products in
16 bits, which saturate at 32,767, so that large products come out too small; or it is exact and takes 30 times as long
as the product in float32. `int_mm_is_fit` says where it is to be used.

The kernel here multiplies 16-bit integers and adds in 32 bits (pmaddwd on x86), which cannot overflow within `limits`.
It also reads only the inputs that a group of latents has weights for.
"""

from __future__ import annotations

from functools import cache
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

LANES = 16
"""Latents whose products are accumulated together."""
TILE_ROWS = 6
"""States whose products are accumulated together: with LANES latents they fill 12 of 16 AVX2 registers."""
_SUMS, _PAIRS = ir.VectorType(ir.IntType(32), LANES), ir.VectorType(ir.IntType(16), 2 * LANES)


def int_mm_is_fit(width: int) -> bool:
    """Whether torch's 8-bit product of this width is both fast and exact here."""
    return "+avx512vnni" in CPU_FEATURES and int_mm_is_exact(width)


@cache
def int_mm_is_exact(width: int) -> bool:
    """Whether torch's 8-bit product of this width is exact at the extreme values: checked once a process."""
    import torch

    signs = torch.tensor([127, -127], dtype=torch.int8).repeat(32)[:, None]
    states, latents = signs[:32].repeat(1, width), signs.repeat(1, width)
    exact = states.long() @ latents.t().long()
    return bool((torch._int_mm(states, latents.t()).long() == exact).all())


def limits(width: int, *, latents: int | None = None) -> tuple[int, int]:
    """The largest absolute values of states and latents whose products over `width` inputs fit in 32 bits.

    latents: the largest value of the latents where it is given; else both get the same room.
    """
    most = (2**31 - 1) // max(1, width)
    own = min(32767, int(most**0.5)) if latents is None else latents
    return min(32767, most // own), own


class LatentTiles:
    """Rows of integers in tiles of LANES, without the inputs that are 0 for a whole group of rows.

    Tile t holds the latents from starts[t] on, counts[t] of them, and reads the inputs live[groups[t]].
    """

    def __init__(self, rows: NDArray[Any], live: NDArray[np.int64] | None) -> None:
        """rows: integers[m, d]. live: int64[groups, n], the inputs that each group reads; groups as in `groups_of`."""
        m, width = rows.shape
        self.live = np.arange(width)[None] if live is None else live
        n_groups, inputs = self.live.shape
        size = -(-m // n_groups)
        ends = [min(m, (group + 1) * size) for group in range(n_groups)]
        found = [
            (group, start, min(LANES, end - start))
            for group, end in enumerate(ends)
            for start in range(group * size, end, LANES)
        ]
        self.groups, self.starts, self.counts = np.array(found, np.int64).reshape(-1, 3).T.copy()
        self.pairs = -(-inputs // 2)
        self.packed = np.zeros((len(found), self.pairs, LANES, 2), np.int16)
        for tile, (group, start, count) in enumerate(found):
            own = np.zeros((count, 2 * self.pairs), np.int16)
            own[:, :inputs] = rows[start : start + count, self.live[group]]
            self.packed[tile, :, :count] = own.reshape(count, self.pairs, 2).transpose(1, 0, 2)

    def __len__(self) -> int:
        return len(self.starts)

    def tiled(self, values: NDArray[Any], fill: float) -> NDArray[Any]:
        """[tiles, LANES]: a number a latent, in the order of the tiles; lanes without a latent hold `fill`."""
        out = np.full((len(self), LANES), fill, values.dtype)
        for tile, (start, count) in enumerate(zip(self.starts, self.counts, strict=True)):
            out[tile, :count] = values[start : start + count]
        return out


@njit(cache=True, nogil=True)
def padded(n):  # type: ignore[no-untyped-def]
    """States are multiplied TILE_ROWS at a time."""
    return -(-n // TILE_ROWS) * TILE_ROWS


def _named(builder: Any, name: str, returned: Any, *given: Any) -> Any:
    """The LLVM function of that name, declared where it is not yet."""
    return builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(returned, given), name)


def _spread(builder: Any, number: Any, vector: Any) -> Any:
    """A vector of that type whose lanes all hold the number."""
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(_SUMS, [0] * LANES))


def _part(builder: Any, vector: Any, places: list[int]) -> Any:
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))


def _sums_of_pairs(builder: Any, one: Any, other: Any) -> Any:
    """int32[16]: for each lane the sum of its two products, of int16[32] and int16[32]."""
    if "+avx512bw" in CPU_FEATURES:
        return builder.call(_named(builder, "llvm.x86.avx512.pmaddw.d.512", _SUMS, _PAIRS, _PAIRS), [one, other])
    if "+avx2" in CPU_FEATURES:
        half, result = ir.VectorType(ir.IntType(16), LANES), ir.VectorType(ir.IntType(32), LANES // 2)
        function, halves = _named(builder, "llvm.x86.avx2.pmadd.wd", result, half, half), []
        for places in (list(range(LANES)), list(range(LANES, 2 * LANES))):
            halves.append(builder.call(function, [_part(builder, one, places), _part(builder, other, places)]))
        joined = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(LANES)))
        return builder.shuffle_vector(halves[0], halves[1], joined)
    parts = []
    for places in (list(range(0, 2 * LANES, 2)), list(range(1, 2 * LANES, 2))):
        wide = [builder.sext(_part(builder, vector, places), _SUMS) for vector in (one, other)]
        parts.append(builder.mul(*wide))
    return builder.add(*parts)


def _tile_intrinsic(rows: int) -> Any:
    """A kernel for the products of `rows` states with LANES latents.

    Its arguments: states int32[pairs * stride], pairs of inputs as `gather` makes them, from `row` on; weights, from
    `place` on, as packed; the products go to the places `to`, `to + LANES`, ... of out. Nothing is checked.
    """

    def tile(
        _context: Any, states: Any, row: Any, weights: Any, place: Any, pairs: Any, out: Any, to: Any, stride: Any
    ) -> Any:
        def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
            arrays = [target.make_array(signature.args[at])(target, builder, values[at]).data for at in (0, 2, 5)]
            x, w, y = arrays
            long = ir.IntType(64)
            sums = [cgutils.alloca_once(builder, _SUMS) for _ in range(rows)]  # type: ignore[no-untyped-call]
            for sum_ in sums:
                builder.store(ir.Constant(_SUMS, [0] * LANES), sum_)
            with cgutils.for_range(builder, values[4], intp=long) as loop:
                at = builder.add(values[3], builder.mul(loop.index, ir.Constant(long, 2 * LANES)))
                latents = builder.load(builder.bitcast(builder.gep(w, [at]), _PAIRS.as_pointer()), align=2)
                start = builder.add(values[1], builder.mul(loop.index, values[7]))
                for number, sum_ in enumerate(sums):
                    pair = builder.load(builder.gep(x, [builder.add(start, ir.Constant(long, number))]), align=4)
                    more = _sums_of_pairs(builder, latents, builder.bitcast(_spread(builder, pair, _SUMS), _PAIRS))
                    builder.store(builder.add(builder.load(sum_), more), sum_)
            for number, sum_ in enumerate(sums):
                own = builder.add(values[6], ir.Constant(long, number * LANES))
                builder.store(builder.load(sum_), builder.bitcast(builder.gep(y, [own]), _SUMS.as_pointer()), align=4)
            return target.get_dummy_value()

        place_types = (types.int64, types.int64)
        return types.void(states, types.int64, weights, *place_types, out, *place_types), emit

    return intrinsic(tile)


_tile, _tile_of_one_state = _tile_intrinsic(TILE_ROWS), _tile_intrinsic(1)


@intrinsic
def highest(
    _context: Any, products: Any, place: Any, scale: Any, bias: Any, length: Any, tile: Any,
    step: Any, error: Any, slack: Any,
) -> Any:  # fmt: skip
    """The largest upper bound of a tile: of product * scale * step + bias + length * error + slack; unchecked.

    products: int32[n], from `place` on. scale, bias, length: float32[tiles, LANES].
    """

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        reals, long = ir.VectorType(ir.FloatType(), LANES), ir.IntType(64)

        def loaded(argument: int, at: Any, kind: Any) -> Any:
            data = target.make_array(signature.args[argument])(target, builder, values[argument]).data
            return builder.load(builder.bitcast(builder.gep(data, [at]), kind.as_pointer()), align=4)

        flags = ("contract", "nnan")
        found = builder.sitofp(loaded(0, values[1], _SUMS), reals)
        at = builder.mul(values[5], ir.Constant(long, LANES))
        scales, biases, lengths = (loaded(argument, at, reals) for argument in (2, 3, 4))
        steps, errors, slack = (_spread(builder, number, reals) for number in values[6:])
        rest = builder.fadd(biases, builder.fmul(lengths, errors, flags), flags)
        rest = builder.fadd(rest, slack, flags)
        bounds = builder.fadd(builder.fmul(found, builder.fmul(scales, steps, flags), flags), rest, flags)
        highest_lane = _named(builder, f"llvm.vector.reduce.fmax.v{LANES}f32", ir.FloatType(), reals)
        return builder.call(highest_lane, [bounds], fastmath=flags)

    numbers = (types.float32,) * 3
    return types.float32(products, types.int64, scale, bias, length, types.int64, *numbers), emit


@njit(cache=True, nogil=True)
def transposed(states, rows):  # type: ignore[no-untyped-def]
    """int16[d, rows]: the values of each input for states int16[n, d], then zeros."""
    n, width = states.shape
    out = np.zeros((width, rows), np.int16)
    for row in range(n):
        for at in range(width):
            out[at, row] = states[row, at]
    return out


@njit(cache=True, nogil=True)
def gather(by_input, inputs, out):  # type: ignore[no-untyped-def]
    """Some inputs of transposed states, two in 32 bits, as `multiply_tile` reads them: to out int32[pairs * rows]."""
    rows = by_input.shape[1]
    zeros = np.zeros(rows, np.int16)
    for at in range(0, len(inputs), 2):
        first, place = by_input[inputs[at]], at // 2 * rows
        second = by_input[inputs[at + 1]] if at + 1 < len(inputs) else zeros
        for row in range(rows):
            out[place + row] = (np.int32(first[row]) & np.int32(0xFFFF)) | (np.int32(second[row]) << np.int32(16))


@njit(cache=True, nogil=True)
def multiply_tile(gathered, rows, packed, tile, out):  # type: ignore[no-untyped-def]
    """The products of gathered states with one tile, to out int32[rows * LANES]; rows: a multiple of TILE_ROWS."""
    pairs = packed.shape[1]
    place = tile * pairs * 2 * LANES
    for row in range(0, rows, TILE_ROWS):
        _tile(gathered, row, packed, place, pairs, out, row * LANES, rows)


@njit(cache=True, nogil=True)
def multiply_one(states, row, inputs, packed, tile, gathered, out):  # type: ignore[no-untyped-def]
    """The products of one of states int16[n, d] with one tile, to out int32[LANES]. gathered: a buffer."""
    pairs = packed.shape[1]
    for at in range(0, len(inputs), 2):
        second = np.int32(states[row, inputs[at + 1]]) if at + 1 < len(inputs) else np.int32(0)
        gathered[at // 2] = (np.int32(states[row, inputs[at]]) & np.int32(0xFFFF)) | (second << np.int32(16))
    _tile_of_one_state(gathered, 0, packed, tile * pairs * 2 * LANES, pairs, out, 0, 1)
