"""Exact top-k over many latents: of each row, or of a whole batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

BLOCK = 64


def top_latents(pre: torch.Tensor, k: int) -> torch.Tensor:
    """int64[n, k]: the columns of the k largest values of each row of pre [n, m], largest first.

    In two steps: the k largest values stand in the k blocks of largest maxima, so only those blocks are looked into.
    Several times faster than `topk` over a wide row.
    """
    n, m = pre.shape
    if m < 32 * BLOCK or m % BLOCK or k * BLOCK > m // 2:
        return pre.topk(min(k, m), dim=1).indices
    # Block b holds every (m / BLOCK)-th column from b on: reducing over an outer axis reads memory in order.
    blocked = pre.view(n, BLOCK, m // BLOCK)
    best = blocked.amax(dim=1).topk(k, dim=1).indices  # [n, k]
    inside = blocked.gather(2, best[:, None, :].expand(n, BLOCK, k)).reshape(n, BLOCK * k)
    place = inside.topk(k, dim=1).indices
    return place // k * (m // BLOCK) + best.gather(1, place % k)


def top_of_batch(pre: torch.Tensor, count: int) -> torch.Tensor:
    """int64[count]: where the largest values of the flattened matrix pre [n, m] stand, in no order."""
    flat = pre.flatten()
    return flat.topk(min(count, len(flat)), sorted=False).indices
