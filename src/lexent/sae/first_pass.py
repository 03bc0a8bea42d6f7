"""Exact top-k coding on a CPU at the price of integer arithmetic.

The product of a state with tens of thousands of latents costs more than the encoder that made it. Here the product is
taken over rounded integers first. Rounding moves a pre-activation by at most

    |w.x - w'.x'|  <=  |w - w'| |x|  +  |w'| |x - x'|          (Cauchy-Schwarz)

so a latent whose upper bound is below the k-th best lower bound cannot be among the k best. What is left, a few dozen
latents, is computed again in float32. The result is that of the full float32 product.

States and latents are rounded to 8 bits where torch multiplies those exactly (on x86 with VNNI) and every latent reads
every input. Elsewhere states have up to 16 bits, and the product is that of `integer_products`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.jit import njit
from lexent.sae.integer_products import (
    LANES,
    LatentTiles,
    gather,
    highest,
    int_mm_is_fit,
    limits,
    multiply_one,
    multiply_tile,
    padded,
    transposed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.types import StateRows

TORCH_ROWS = 128
"""States at a time, of torch's product: their 32-bit products with 32,768 latents fill half of a common L3 cache."""
ROW_MULTIPLE = 8
"""States are made up to a multiple of this for torch's product."""
THREAD_ROWS = 192
"""States at a time in one thread, of our own product: all latents are read from memory once for these."""
FEW_ROWS = 64
"""Up to so many states, a query's, are coded on the caller's thread: to wait for another costs more than it saves."""
ROUNDED_ROWS = 8192
"""States that are rounded at a time: small steps would make the threads wait for each other more than work."""
LATENTS_PER_BLOCK = 64
FLOAT_ERROR = 2.0**-20
"""What float32 arithmetic adds to the error of a bound at most, relative to the terms of the sum."""
MINUS_INFINITY = np.float32(-1e30)
"""Stands for minus infinity, which fast floating-point code may not meet."""


@dataclass(frozen=True, slots=True)
class _Rounded:
    """States as integers, and how far these are from them."""

    integers: NDArray[Any]  # [n, d], to be multiplied by steps
    steps: NDArray[np.float32]  # [n]
    errors: NDArray[np.float32]  # [n], upper bounds of |x - x'|
    slack: NDArray[np.float32]  # [n], upper bounds of the error that does not depend on the norm of a latent
    centred: NDArray[np.float32]  # [n, d]


class FirstPass:
    """Latent rows, ready for the integer product."""

    def __init__(
        self,
        rows: NDArray[Any],
        *,
        scale: NDArray[np.float32] | None,
        b_enc: NDArray[np.float32],
        b_dec: NDArray[np.float32],
        live: NDArray[np.int64] | None = None,
        with_torch: bool | None = None,
    ) -> None:
        """rows: int8[m, d] with a scale each, or float32[m, d], which are rounded for the first pass only.

        live: int64[groups, n], the inputs that each group of latents reads; all other weights are 0.
        with_torch: whether torch makes the product; by default where that is fast and exact.
        """
        m, width = rows.shape
        if with_torch is None:
            with_torch = live is None and int_mm_is_fit(width)
        inputs = width if live is None else live.shape[1]
        most = (127, 127) if with_torch else limits(inputs, latents=None if scale is None else 127)
        self.most, most_of_rows = most
        if scale is None:
            scale = (np.maximum(np.abs(rows).max(axis=1), 1e-12) / most_of_rows).astype(np.float32)
            coarse: NDArray[Any] = np.round(rows / scale[:, None]).astype(np.int8 if with_torch else np.int16)
            rounding = np.linalg.norm(rows - coarse * scale[:, None], axis=1).max()
        else:
            coarse, rounding = rows, 0.0
        self.exact = np.ascontiguousarray(rows)
        self.exact_scale = scale if rows.dtype == np.int8 else np.ones(m, np.float32)
        length = np.linalg.norm(coarse.astype(np.float32), axis=1).astype(np.float32) * scale
        self.coarse, self.tiles = None, None
        arranged: Callable[[NDArray[Any], float], NDArray[Any]] = _padded
        if with_torch:
            import torch

            self.coarse = torch.from_numpy(_padded(coarse, 0)).t()
        else:
            self.tiles = LatentTiles(coarse, live)
            arranged = self.tiles.tiled
        self.scale, self.length = arranged(scale, 0), arranged(length, 0)
        self.bias = arranged(b_enc.astype(np.float32), float(MINUS_INFINITY))
        self.rounding, self.bias_error = float(rounding), float(np.abs(b_enc).max(initial=0)) * FLOAT_ERROR
        self.b_dec = b_dec

    def encode(self, states: StateRows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """ids int32[n, k] and activations float32[n, k], strongest first; places without an active latent hold 0.

        The states must be finite: the kernel trusts its bounds.
        """
        n = len(states)
        ids, values = np.zeros((n, k), np.int32), np.zeros((n, k), np.float32)
        code = self._code_in_threads if self.coarse is None else self._code_with_torch
        threads = _threads(states)
        with ThreadPoolExecutor(threads) as pool:
            for start in range(0, n, ROUNDED_ROWS):
                part = slice(start, start + ROUNDED_ROWS)
                code(self._rounded(states[part]), ids[part], values[part], pool, threads)
        return ids, values

    def _rounded(self, states: StateRows) -> _Rounded:
        if isinstance(states, np.ndarray):
            return self._rounded_array(states)
        import torch

        centred = states.float() - torch.from_numpy(self.b_dec)
        norms = centred.norm(dim=1)
        steps = centred.abs().amax(dim=1).clamp_min(1e-12) / self.most
        integers = (centred / steps[:, None]).round_().clamp_(-self.most, self.most)
        errors = ((centred - integers * steps[:, None]).norm(dim=1) + norms * FLOAT_ERROR) * 1.0001
        slack = norms * (self.rounding * 1.0001) + self.bias_error
        integers = integers.to(torch.int16 if self.coarse is None else torch.int8)
        return _Rounded(integers.numpy(), steps.numpy(), errors.numpy(), slack.numpy(), centred.numpy())

    def _rounded_array(self, states: NDArray[np.float32]) -> _Rounded:
        centred = states.astype(np.float32, copy=False) - self.b_dec
        norms = np.linalg.norm(centred, axis=1)
        steps = np.maximum(np.abs(centred).max(axis=1, initial=0), np.float32(1e-12)) / np.float32(self.most)
        integers = np.clip(np.rint(centred / steps[:, None]), -self.most, self.most)
        missed = np.linalg.norm(centred - integers * steps[:, None], axis=1)
        errors = (missed + norms * np.float32(FLOAT_ERROR)) * np.float32(1.0001)
        slack = norms * np.float32(self.rounding * 1.0001) + np.float32(self.bias_error)
        return _Rounded(integers.astype(np.int16 if self.coarse is None else np.int8), steps, errors, slack, centred)

    def _code_in_threads(
        self, rounded: _Rounded, ids: Any, values: Any, pool: ThreadPoolExecutor, threads: int
    ) -> None:
        """Each thread multiplies and refines some states."""
        assert self.tiles is not None
        n, tiles, integers = len(ids), self.tiles, rounded.integers
        step = max(1, min(THREAD_ROWS, -(-n // threads)))

        def code(first: int) -> None:
            own = slice(first, first + step)
            _code_tiles(
                integers[own], rounded.steps[own], rounded.errors[own], rounded.slack[own], rounded.centred[own],
                tiles.live, tiles.groups, tiles.starts, tiles.counts, tiles.packed, self.scale, self.bias, self.length,
                self.exact, self.exact_scale, ids[own], values[own],
            )  # fmt: skip

        list((map if threads == 1 else pool.map)(code, range(0, n, step)))

    def _code_with_torch(
        self, rounded: _Rounded, ids: Any, values: Any, pool: ThreadPoolExecutor, threads: int
    ) -> None:
        """torch multiplies with all threads; then they refine some states each."""
        import torch

        assert self.coarse is not None
        n = len(ids)
        step = min(TORCH_ROWS, -(-n // ROW_MULTIPLE) * ROW_MULTIPLE)  # a query has few states: no more are multiplied
        buffer, integers = torch.empty(step, len(self.scale), dtype=torch.int32), torch.from_numpy(rounded.integers)
        for first in range(0, n, step):
            own = slice(first, first + step)
            given = integers[own]
            if len(given) < step:
                given = torch.cat([given, given.new_zeros(step - len(given), given.shape[1])])
            products = torch._int_mm(given, self.coarse, out=buffer).numpy()
            parts = np.array_split(np.arange(len(ids[own])), threads)
            refine = partial(
                _refine, products, rounded.steps[own], rounded.errors[own], rounded.slack[own], rounded.centred[own],
                self.scale, self.bias, self.length, self.exact, self.exact_scale, ids[own], values[own],
            )  # fmt: skip
            list(pool.map(refine, [part for part in parts if len(part)]))


def _threads(states: StateRows) -> int:
    """One for a query's states in an array; else as many as torch or Numba has."""
    if isinstance(states, np.ndarray):
        from lexent import cpu

        return 1 if len(states) <= FEW_ROWS else cpu.threads()
    import torch

    return torch.get_num_threads()


def _padded(array: NDArray[Any], fill: float) -> NDArray[Any]:
    """The array, made up to whole blocks of latents."""
    length = -(-len(array) // LATENTS_PER_BLOCK) * LATENTS_PER_BLOCK
    out = np.full((length, *array.shape[1:]), fill, dtype=array.dtype)
    out[: len(array)] = array
    return out


@njit(cache=True, nogil=True, fastmath=True)
def _threshold(tops, margin, best):  # type: ignore[no-untyped-def]
    """What a latent's upper bound must reach, given the largest upper bound of each block.

    The latent behind a block's maximum is at most twice its margin below that. Activations are above 0.
    """
    k = len(best)
    best[:] = margin
    for bound in tops:
        if bound > best[k - 1]:
            place = k - 1
            while place > 0 and best[place - 1] < bound:
                best[place] = best[place - 1]
                place -= 1
            best[place] = bound
    return best[k - 1] - margin


@njit(cache=True, nogil=True, fastmath=True)
def _consider(j, x, exact, exact_scale, bias, ids, values):  # type: ignore[no-untyped-def]
    """Take latent j among the k best of a state where its activation in float32 is one of these."""
    total = np.float32(0)
    for i in range(len(x)):
        total += x[i] * np.float32(exact[j, i])
    value = total * exact_scale[j] + bias
    place = len(ids) - 1
    # Of equal values the lower number comes first, whatever the order in which they are met.
    if value > values[place] or (value == values[place] > 0 and j < ids[place]):
        while place > 0 and (values[place - 1] < value or (values[place - 1] == value and ids[place - 1] > j)):
            values[place] = values[place - 1]
            ids[place] = ids[place - 1]
            place -= 1
        values[place] = value
        ids[place] = j


@njit(cache=True, nogil=True, fastmath=True)
def _bounds(product, scale, bias, length, step, error, slack, upper, top_upper):  # type: ignore[no-untyped-def]
    """Upper bounds of all pre-activations, and their maxima over blocks.

    Block b holds the columns b, b + blocks, b + 2 * blocks, ..., so that both loops run through memory in order.
    """
    blocks = len(top_upper)
    for j in range(len(scale)):
        upper[j] = np.float32(product[j]) * (scale[j] * step) + (bias[j] + length[j] * error + slack)
    top_upper[:] = MINUS_INFINITY
    for start in range(0, len(scale), blocks):
        part = upper[start : start + blocks]
        for block in range(blocks):
            if part[block] > top_upper[block]:
                top_upper[block] = part[block]


@njit(cache=True, nogil=True, fastmath=True)
def _refine(  # type: ignore[no-untyped-def]
    products, steps, errors, slack, x, scale, bias, length, exact, exact_scale, ids, values, rows
):
    """The k best latents of some rows, from products int32[n, m]."""
    m = len(scale)
    blocks = m // LATENTS_PER_BLOCK
    upper, top_upper = np.empty(m, np.float32), np.empty(blocks, np.float32)
    best = np.empty(ids.shape[1], np.float32)
    longest = length.max()
    for row in rows:
        _bounds(products[row], scale, bias, length, steps[row], errors[row], slack[row], upper, top_upper)
        threshold = _threshold(top_upper, 2 * (longest * errors[row] + slack[row]), best)
        for block in range(blocks):
            if top_upper[block] >= threshold:
                for j in range(block, m, blocks):
                    if upper[j] >= threshold:
                        _consider(j, x[row], exact, exact_scale, bias[j], ids[row], values[row])


@njit(cache=True, nogil=True, fastmath=True)
def _code_tiles(  # type: ignore[no-untyped-def]
    integers, steps, errors, slack, x, live, groups, starts, counts, packed, scale, bias, length, exact, exact_scale,
    ids, values,
):  # fmt: skip
    """The k best latents of some states.

    Of all products only the largest upper bound of each tile is kept: those of the few tiles that can hold one of the
    k best are made again, which costs less than to write and to read all of them.
    """
    n, pairs, rows, tiles = len(integers), packed.shape[1], padded(len(integers)), len(starts)
    by_input = transposed(integers, rows)
    gathered, products = np.zeros(rows * pairs, np.int32), np.empty(rows * LANES, np.int32)
    tops = np.empty((n, tiles), np.float32)
    last = -1
    for tile in range(tiles):
        if groups[tile] != last:
            last = groups[tile]
            gather(by_input, live[last], gathered)
        multiply_tile(gathered, rows, packed, tile, products)
        for row in range(n):
            at = row * LANES
            tops[row, tile] = highest(products, at, scale, bias, length, tile, steps[row], errors[row], slack[row])  # type: ignore[call-arg]
    best = np.empty(ids.shape[1], np.float32)
    longest = length.max()
    for row in range(n):
        threshold = _threshold(tops[row], 2 * (longest * errors[row] + slack[row]), best)
        for tile in range(tiles):
            if tops[row, tile] < threshold:
                continue
            multiply_one(integers, row, live[groups[tile]], packed, tile, gathered, products)
            for lane in range(counts[tile]):
                bound = np.float32(products[lane]) * (scale[tile, lane] * steps[row]) + (
                    bias[tile, lane] + length[tile, lane] * errors[row] + slack[row]
                )
                if bound >= threshold:
                    j = starts[tile] + lane
                    _consider(j, x[row], exact, exact_scale, bias[tile, lane], ids[row], values[row])
