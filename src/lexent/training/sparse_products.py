"""Products with a matrix of which only some rows are wanted, with gradients that never make a dense [n, m] tensor.

Both are exact in float32, and of a fixed order of summation on a CPU. PyTorch's own way, to gather the rows as
[n, k, d], holds k times as much for the backward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from lexent.sae.top_latents import top_latents

CHUNK = {"cpu": 2**24, "cuda": 2**28}
"""Numbers that are gathered at a time."""
MAX_DENSE_VALUES = 2**30
"""Numbers of a dense matrix of coefficients at a time, on a GPU."""


def selected_products(x: torch.Tensor, rows: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """float[n, k]: the products of each x [n, d] with its rows, ids int64[n, k] into rows [m, d]."""
    found: torch.Tensor = _Selected.apply(x, rows, ids)  # type: ignore[no-untyped-call]
    return found


def weighted_rows(weights: torch.Tensor, ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """float[n, d]: for each of n the sum of its rows, ids int64[n, k] into rows [m, d], times their weights [n, k]."""
    found: torch.Tensor = _Weighted.apply(weights, ids, rows)  # type: ignore[no-untyped-call]
    return found


@torch.no_grad()
def strongest(x: torch.Tensor, rows: torch.Tensor, bias: torch.Tensor, k: int, *, most: int) -> torch.Tensor:
    """int64[n, k]: the rows with the largest products with each x [n, d], strongest first; `most` products a time."""
    step = max(1, most // len(rows))
    parts = [top_latents(F.linear(x[start : start + step], rows, bias), k) for start in range(0, len(x), step)]
    return torch.cat(parts) if parts else torch.empty(0, k, dtype=torch.long, device=x.device)


class _Selected(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, rows: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, rows, ids)
        return _products(x, rows, ids)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, rows, ids = ctx.saved_tensors
        (grad,) = gradients
        of_x = _sums(grad, ids, rows) if ctx.needs_input_grad[0] else None
        of_rows = _spread(grad, ids, x, len(rows)) if ctx.needs_input_grad[1] else None
        return of_x, of_rows, None


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: torch.Tensor, ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(weights, ids, rows)
        return _sums(weights, ids, rows)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        weights, ids, rows = ctx.saved_tensors
        (grad,) = gradients
        of_weights = _products(grad, rows, ids) if ctx.needs_input_grad[0] else None
        of_rows = _spread(weights, ids, grad, len(rows)) if ctx.needs_input_grad[2] else None
        return of_weights, None, of_rows


def _products(x: torch.Tensor, rows: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    step = max(1, CHUNK.get(x.device.type, CHUNK["cpu"]) // max(1, ids.shape[1] * x.shape[1]))
    parts = [
        torch.einsum("nd,nkd->nk", x[start : start + step], rows[ids[start : start + step]])
        for start in range(0, len(x), step)
    ]
    return torch.cat(parts) if parts else x.new_zeros(ids.shape)


def _sums(weights: torch.Tensor, ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    if not len(ids):
        return rows.new_zeros(0, rows.shape[1])
    return F.embedding_bag(ids, rows, per_sample_weights=weights.contiguous(), mode="sum")


def _spread(weights: torch.Tensor, ids: torch.Tensor, x: torch.Tensor, m: int) -> torch.Tensor:
    """float[m, d]: for each row the sum of the x that chose it, times their weights."""
    if x.device.type == "cuda":
        return _spread_densely(weights, ids, x, m)
    flat, order = ids.flatten().sort(stable=True)
    starts = torch.searchsorted(flat, torch.arange(m, device=x.device))
    return F.embedding_bag(order // ids.shape[1], x, starts, per_sample_weights=weights.flatten()[order], mode="sum")


def _spread_densely(weights: torch.Tensor, ids: torch.Tensor, x: torch.Tensor, m: int) -> torch.Tensor:
    """The same by matrix units: a few latents are chosen by most tokens, where threads would wait for each other."""
    total = x.new_zeros(m, x.shape[1])
    step = max(1, MAX_DENSE_VALUES // m)
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        dense = torch.zeros(len(x[part]), m, dtype=torch.bfloat16, device=x.device)
        dense.scatter_(1, ids[part], weights[part].bfloat16())
        total += (dense.t() @ x[part].bfloat16()).float()
    return total
