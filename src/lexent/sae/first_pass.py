"""Exact top-k coding on a CPU at the price of 8-bit arithmetic.

The product of a state with tens of thousands of latents costs more than the encoder that made it. Here the product is
taken in 8 bits first. Rounding moves a pre-activation by at most

    |w.x - w'.x'|  <=  |w - w'| |x|  +  |w'| |x - x'|          (Cauchy-Schwarz)

so a latent whose upper bound is below the k-th best lower bound cannot be among the k best. What is left, a few dozen
latents, is computed again in float32. The result is that of the full float32 product.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

ROWS = 128
"""States at a time: their 32-bit products with 32,768 latents fill half of a common third-level cache."""
FEW = 8
"""States are made up to a multiple of this."""
MANY = 64 * ROWS
"""States that are rounded at a time: small steps would make the threads wait for each other more than work."""
BLOCK = 64
NEVER = np.float32(-1e30)
"""Stands for minus infinity, which fast floating-point code may not meet."""


class FirstPass:
    """Latent rows, ready for the 8-bit product."""

    def __init__(
        self,
        rows: NDArray[Any],
        *,
        scale: NDArray[np.float32] | None,
        b_enc: NDArray[np.float32],
        b_dec: NDArray[np.float32],
    ) -> None:
        """rows: int8[m, d] with a scale each, or float32[m, d], which are rounded for the first pass only."""
        import torch

        m = len(rows)
        padded = -(-m // BLOCK) * BLOCK
        if scale is None:
            scale = (np.maximum(np.abs(rows).max(axis=1), 1e-12) / 127).astype(np.float32)
            coarse = np.round(rows / scale[:, None]).astype(np.int8)
            rounding = np.linalg.norm(rows - coarse * scale[:, None], axis=1).max()
        else:
            coarse, rounding = rows, 0.0
        self.exact = np.ascontiguousarray(rows)
        self.exact_scale = scale if rows.dtype == np.int8 else np.ones(m, np.float32)
        length = np.linalg.norm(coarse.astype(np.float32), axis=1) * scale
        self.coarse = torch.from_numpy(_pad(coarse, padded, 0)).t()
        self.scale = _pad(scale, padded, 0.0)
        self.bias = _pad(b_enc.astype(np.float32), padded, float(NEVER))
        self.length = _pad(length.astype(np.float32), padded, 0.0)
        self.rounding = np.float32(rounding)
        self.b_dec = torch.from_numpy(b_dec)

    def encode(self, states: torch.Tensor, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """ids int32[n, k] and activations float32[n, k], strongest first; places without an active latent hold 0.

        The states must be finite: the kernel trusts its bounds.
        """
        import torch

        n = len(states)
        ids = np.zeros((n, k), np.int32)
        values = np.zeros((n, k), np.float32)
        at_once = min(ROWS, -(-n // FEW) * FEW)  # a query has few states: products for more would be in vain
        # One buffer for all rounds: a fresh one of this size would be given by the system page by page each time.
        buffer = torch.empty(at_once, len(self.scale), dtype=torch.int32)
        with ThreadPoolExecutor(torch.get_num_threads()) as pool, torch.inference_mode():
            for start in range(0, n, MANY):
                centred = states[start : start + MANY].float() - self.b_dec
                step = centred.abs().amax(dim=1).clamp_min(1e-12) / 127
                whole = (centred / step[:, None]).round_()
                error = (centred - whole * step[:, None]).norm(dim=1).numpy()
                rounded = torch.zeros(-(-len(whole) // at_once) * at_once, whole.shape[1], dtype=torch.int8)
                rounded[: len(whole)] = whole
                steps, norms, x = step.numpy(), centred.norm(dim=1).numpy(), centred.numpy()
                for first in range(0, len(whole), at_once):
                    products = torch._int_mm(rounded[first : first + at_once], self.coarse, out=buffer).numpy()
                    refine = partial(
                        _refine, products, steps[first:], error[first:], norms[first:], x[first:],
                        self.scale, self.bias, self.length, self.rounding, self.exact, self.exact_scale,
                        ids[start + first :], values[start + first :],
                    )  # fmt: skip
                    parts = np.array_split(np.arange(min(at_once, len(whole) - first)), torch.get_num_threads())
                    list(pool.map(refine, [part for part in parts if len(part)]))
        return ids, values


def _pad(array: NDArray[Any], length: int, fill: float) -> NDArray[Any]:
    out = np.full((length, *array.shape[1:]), fill, dtype=array.dtype)
    out[: len(array)] = array
    return out


@numba.njit(cache=True, nogil=True, fastmath=True)
def _bounds(product, scale, bias, length, step, error, slack, upper, top_upper):  # type: ignore[no-untyped-def]
    """Upper bounds of all pre-activations, and their maxima over blocks.

    Block b holds the columns b, b + blocks, b + 2 * blocks, ..., so that both loops run through memory in order.
    """
    blocks = len(top_upper)
    for j in range(len(scale)):
        upper[j] = np.float32(product[j]) * (scale[j] * step) + (bias[j] + length[j] * error + slack)
    top_upper[:] = NEVER
    for start in range(0, len(scale), blocks):
        part = upper[start : start + blocks]
        for block in range(blocks):
            if part[block] > top_upper[block]:
                top_upper[block] = part[block]


@numba.njit(cache=True, nogil=True, fastmath=True)
def _refine(products, steps, errors, norms, x, scale, bias, length, rounding, exact, exact_scale, ids, values, rows):  # type: ignore[no-untyped-def]
    m, k = len(scale), ids.shape[1]
    blocks = m // BLOCK
    upper = np.empty(m, np.float32)
    top_upper = np.empty(blocks, np.float32)
    best = np.empty(k, np.float32)
    longest = length.max()
    for row in rows:
        error, slack = errors[row] * np.float32(1.0001), rounding * norms[row] * np.float32(1.0001)
        _bounds(products[row], scale, bias, length, steps[row], error, slack, upper, top_upper)
        # The latent behind a block's maximum is at least twice its margin below that. Activations are above 0.
        margin = 2 * (longest * error + slack)
        best[:] = margin
        for block in range(blocks):
            bound = top_upper[block]
            if bound > best[k - 1]:
                place = k - 1
                while place > 0 and best[place - 1] < bound:
                    best[place] = best[place - 1]
                    place -= 1
                best[place] = bound
        bar = best[k - 1] - margin
        for block in range(blocks):
            if top_upper[block] < bar:
                continue
            for j in range(block, m, blocks):
                if upper[j] < bar:
                    continue
                total = np.float32(0)
                for i in range(x.shape[1]):
                    total += x[row, i] * np.float32(exact[j, i])
                value = total * exact_scale[j] + bias[j]
                # Of equal values the lower number comes first, whatever the order in which they are met.
                if value > values[row, k - 1] or (value == values[row, k - 1] > 0 and j < ids[row, k - 1]):
                    place = k - 1
                    while place > 0 and (
                        values[row, place - 1] < value or (values[row, place - 1] == value and ids[row, place - 1] > j)
                    ):
                        values[row, place] = values[row, place - 1]
                        ids[row, place] = ids[row, place - 1]
                        place -= 1
                    values[row, place] = value
                    ids[row, place] = j
