"""MaxSim between the sparse codes of queries and documents, with gradient: equation 4 of SSR.

    s(Q, D) = sum over tokens i of Q of the largest sum_u z_i,u z_j,u over tokens j of D

Which token of a document is best for a token of a query is found first, without gradient. Then the products of those
pairs alone are computed again, in float32 and with gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional as F

MAX_DENSE_VALUES = 2**30
"""Numbers of a dense matrix at a time."""


@dataclass(frozen=True, slots=True)
class TextCodes:
    """Codes of some texts' tokens, each text padded to the same number of tokens; the padding has the value 0."""

    ids: torch.Tensor  # int64[n_texts, length, k]
    values: torch.Tensor  # float[n_texts, length, k], never negative
    counts: torch.Tensor  # int64[n_texts], tokens of each text

    @staticmethod
    def of(ids: torch.Tensor, values: torch.Tensor, *, counts: torch.Tensor) -> TextCodes:
        """From the rows of all texts one after the other: ids and values [n_rows, k]."""
        length = int(counts.max()) if len(counts) else 0
        inside = torch.arange(length, device=ids.device)[None, :] < counts[:, None]
        place = torch.nonzero(inside.flatten()).flatten()
        shape = len(counts) * length, ids.shape[1]
        padded_ids = ids.new_zeros(shape).index_copy(0, place, ids)
        padded = values.new_zeros(shape).index_copy(0, place, values)
        full = len(counts), length, ids.shape[1]
        return TextCodes(padded_ids.view(full), padded.view(full), counts)


def maxsim(queries: TextCodes, documents: TextCodes, *, size: int) -> torch.Tensor:
    """float[n_queries, n_documents]: MaxSim scores. size: how many latents there are.

    As activations are never negative, a padded token is never better than a token, and a text's scores need no mask.
    """
    n_queries, q_length, k = queries.ids.shape
    n_documents, d_length, _ = documents.ids.shape
    q_ids, q_values = queries.ids.reshape(-1, k), queries.values.reshape(-1, k)
    d_ids, d_values = documents.ids.reshape(-1, documents.ids.shape[2]), documents.values.flatten(0, 1)
    real = torch.nonzero(
        (torch.arange(q_length, device=q_ids.device)[None, :] < queries.counts[:, None]).flatten()
    ).flatten()
    q_ids, q_values = q_ids[real], q_values.index_select(0, real)
    with torch.no_grad():
        best = best_tokens(q_ids, q_values, d_ids, d_values, length=d_length, size=size)  # [tokens, documents]
    dense = torch.zeros(len(q_ids), size, device=q_ids.device).scatter(1, q_ids, q_values)
    chosen = best.flatten()
    token = torch.arange(len(q_ids), device=q_ids.device).repeat_interleave(n_documents)
    ours = dense.flatten().gather(0, (token[:, None] * size + d_ids[chosen]).flatten()).view(len(chosen), -1)
    sims = (ours * d_values.index_select(0, chosen)).sum(dim=1).view(len(q_ids), n_documents)
    return sims.new_zeros(n_queries, n_documents).index_add(0, real // q_length, sims)


def best_tokens(
    q_ids: torch.Tensor, q_values: torch.Tensor, d_ids: torch.Tensor, d_values: torch.Tensor, *, length: int, size: int
) -> torch.Tensor:
    """int64[n_tokens, n_documents]: the row of each document, of `length` rows each, that is nearest to a token."""
    n_documents = len(d_ids) // length
    first = torch.arange(n_documents, device=d_ids.device) * length
    find = _nearest_densely if q_ids.device.type == "cuda" else _nearest_sparsely
    # Only latents of some query matter: the others need no column.
    used = torch.unique(q_ids[q_values > 0])
    column = torch.full((size,), len(used), dtype=torch.long, device=q_ids.device)
    column[used] = torch.arange(len(used), device=q_ids.device)
    q_ids, d_ids = column[q_ids], column[d_ids]
    step = max(1, MAX_DENSE_VALUES // max(1, length * (len(used) + 1))) if q_ids.device.type == "cuda" else 16
    parts = []
    for start in range(0, n_documents, step):
        rows = slice(start * length, min(start + step, n_documents) * length)
        sims = find(q_ids, q_values, d_ids[rows], d_values[rows], len(used))
        parts.append(sims.view(len(q_ids), -1, length).argmax(dim=2))
    return torch.cat(parts, dim=1) + first[None, :] if parts else torch.empty(len(q_ids), 0, dtype=torch.long)


def _nearest_densely(
    q_ids: torch.Tensor, q_values: torch.Tensor, d_ids: torch.Tensor, d_values: torch.Tensor, used: int
) -> torch.Tensor:
    width = -(-(used + 1) // 64) * 64  # matrix units want even rows
    ours, theirs = (
        torch.zeros(len(ids), width, dtype=torch.bfloat16, device=ids.device).scatter_(1, ids, values.bfloat16())
        for ids, values in ((q_ids, q_values), (d_ids, d_values))
    )
    theirs[:, used] = 0  # where latents of no query were put
    return ours @ theirs.t()


def _nearest_sparsely(
    q_ids: torch.Tensor, q_values: torch.Tensor, d_ids: torch.Tensor, d_values: torch.Tensor, used: int
) -> torch.Tensor:
    theirs = torch.zeros(used + 1, len(d_ids))
    row = torch.arange(len(d_ids))[:, None].expand_as(d_ids)
    theirs[d_ids.flatten(), row.flatten()] = d_values.flatten()
    theirs[used] = 0
    return F.embedding_bag(q_ids, theirs, per_sample_weights=q_values, mode="sum")
