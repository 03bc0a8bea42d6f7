"""Exact top-k coding on a CPU at the price of 8-bit arithmetic.

The product of a state with tens of thousands of latents costs more than the encoder that made it. Here the product is
taken in 8 bits first. Rounding moves a pre-activation by at most

    |w.x - w'.x'|  <=  |w - w'| |x|  +  |w'| |x - x'|          (Cauchy-Schwarz)

so a latent whose upper bound is below the k-th best lower bound cannot be among the k best. What is left, a few dozen
latents, is computed again in float32. The result is that of the full float32 product.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

ROWS = 128
"""States at a time: their 32-bit products with 32,768 latents fill half of a common third-level cache."""
BLOCK = 64


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

        m, d = rows.shape
        padded = -(-m // BLOCK) * BLOCK
        if scale is None:
            scale = (np.maximum(np.abs(rows).max(axis=1), 1e-12) / 127).astype(np.float32)
            coarse = np.round(rows / scale[:, None]).astype(np.int8)
            rounding = np.linalg.norm(rows - coarse * scale[:, None], axis=1).astype(np.float32)
        else:
            coarse, rounding = rows, np.zeros(m, np.float32)
        self.exact = np.ascontiguousarray(rows)
        self.exact_scale = scale if rows.dtype == np.int8 else np.ones(m, np.float32)
        length = np.linalg.norm(coarse.astype(np.float32), axis=1) * scale
        self.coarse = torch.from_numpy(_pad(coarse, padded, 0)).t()
        self.scale = _pad(scale, padded, 0.0)
        self.bias = _pad(b_enc.astype(np.float32), padded, -np.inf)
        self.length = _pad(length.astype(np.float32), padded, 0.0)
        self.rounding = _pad(rounding, padded, 0.0)
        self.b_dec = torch.from_numpy(b_dec)
        self.m = m

    def encode(self, states: torch.Tensor, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """ids int32[n, k] and activations float32[n, k], strongest first; places without an active latent hold 0."""
        import torch

        n = len(states)
        ids = np.zeros((n, k), np.int32)
        values = np.zeros((n, k), np.float32)
        with ThreadPoolExecutor(torch.get_num_threads()) as pool, torch.inference_mode():
            for start in range(0, n, ROWS):
                centred = states[start : start + ROWS].float() - self.b_dec
                step = centred.abs().amax(dim=1).clamp_min(1e-12) / 127
                rounded = (centred / step[:, None]).round_()
                error = (centred - rounded * step[:, None]).norm(dim=1).numpy()
                products = torch._int_mm(_at_least(rounded.to(torch.int8), 17), self.coarse).numpy()
                x, norm, steps = centred.numpy(), centred.norm(dim=1).numpy(), step.numpy()
                parts = np.array_split(np.arange(len(centred)), torch.get_num_threads())
                list(
                    pool.map(
                        lambda part: _refine(  # noqa: B023 - every call ends before the next round
                            products, steps, error, norm, x, self.scale, self.bias, self.length, self.rounding,
                            self.exact, self.exact_scale, part, ids[start:], values[start:],
                        ),
                        [part for part in parts if len(part)],
                    )
                )  # fmt: skip
        return ids, values


def _pad(array: NDArray[Any], length: int, fill: float) -> NDArray[Any]:
    out = np.full((length, *array.shape[1:]), fill, dtype=array.dtype)
    out[: len(array)] = array
    return out


def _at_least(rows: torch.Tensor, n: int) -> torch.Tensor:
    """Rows of zeros behind the given ones where they are fewer than n: the 8-bit product asks for more than 16."""
    import torch

    return rows if len(rows) >= n else torch.cat([rows, rows.new_zeros(n - len(rows), rows.shape[1])])


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _refine(products, steps, errors, norms, x, scale, bias, length, rounding, exact, exact_scale, rows, ids, values):  # type: ignore[no-untyped-def]
    m, k = len(scale), ids.shape[1]
    blocks = m // BLOCK
    upper = np.empty(m, np.float32)
    top_upper = np.empty(blocks, np.float32)
    best_lower = np.empty(k, np.float32)
    for row in rows:
        step, error, norm = steps[row], errors[row] * np.float32(1.0001), norms[row] * np.float32(1.0001)
        product = products[row]
        best_lower[:] = 0.0  # an activation is positive, so 0 is a lower bound to beat from the start
        for block in range(blocks):
            most, most_lower = np.float32(-np.inf), np.float32(-np.inf)
            for j in range(block * BLOCK, block * BLOCK + BLOCK):
                guess = np.float32(product[j]) * (scale[j] * step) + bias[j]
                margin = length[j] * error + rounding[j] * norm
                upper[j] = guess + margin
                most = max(most, guess + margin)
                most_lower = max(most_lower, guess - margin)
            top_upper[block] = most
            if most_lower > best_lower[k - 1]:
                place = k - 1
                while place > 0 and best_lower[place - 1] < most_lower:
                    best_lower[place] = best_lower[place - 1]
                    place -= 1
                best_lower[place] = most_lower
        bar = best_lower[k - 1]
        for block in range(blocks):
            if top_upper[block] < bar or top_upper[block] <= 0:
                continue
            for j in range(block * BLOCK, block * BLOCK + BLOCK):
                if upper[j] < bar or upper[j] <= 0:
                    continue
                total = np.float32(0)
                for i in range(x.shape[1]):
                    total += x[row, i] * np.float32(exact[j, i])
                value = total * exact_scale[j] + bias[j]
                if value > values[row, k - 1]:
                    place = k - 1
                    while place > 0 and values[row, place - 1] < value:
                        values[row, place] = values[row, place - 1]
                        ids[row, place] = ids[row, place - 1]
                        place -= 1
                    values[row, place] = value
                    ids[row, place] = j
