"""The autoencoder as it is trained for retrieval, and the losses of SSR (equations 7 to 10)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from lexent.training.pair_states import TextStates
from lexent.training.reconstruction.model import TopKModel, _at
from lexent.training.sparse_products import selected_products, strongest, weighted_rows
from lexent.training.ssr.config import RetrievalConfig

WHOLE_TEXT_WEIGHT = 0.5
"""What the cosine of whole texts counts beside the mean over a query's tokens of their best cosine."""
WIDE_FACTOR = 4
"""The second reconstruction has this many times the latents of the first."""
MAX_PREACTIVATIONS = {"cpu": 2**26, "cuda": 2**29}
"""Pre-activations that are held at a time."""


@dataclass(frozen=True, slots=True)
class Unsupervised:
    """What a code is worth without any query; `total` is the weighted sum and carries the gradient."""

    total: torch.Tensor
    fvu: torch.Tensor  # share of the variance not explained, at k
    wide: torch.Tensor  # the same at 4 k
    auxiliary: torch.Tensor
    contrast: torch.Tensor


class RetrievalModel(TopKModel):
    """A TopK autoencoder whose codes carry gradient: (ids, values) of the k strongest latents, exact in float32."""

    def __init__(self, d_in: int, d_sae: int, *, tied: bool, seed: int, gains: bool = False) -> None:
        """gains: learn how much each latent of a query counts, from 0 to 2; all begin with 1."""
        super().__init__(d_in, d_sae, tied=tied, seed=seed)
        self.liking = nn.Parameter(torch.zeros(d_sae)) if gains else None

    def query_gain(self) -> torch.Tensor | None:
        """float[d_sae]: how much each latent of a query counts."""
        return None if self.liking is None else 1 + torch.tanh(self.liking)

    def autoencoder(self) -> list[nn.Parameter]:
        """All parameters but the gains."""
        return [parameter for name, parameter in self.named_parameters() if name != "liking"]

    def code(self, x: torch.Tensor, k: int, *, autocast: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """ids int64[n, k] and activations float[n, k], strongest first. The wide product only selects."""
        centred = x - self.b_dec
        most = MAX_PREACTIVATIONS.get(x.device.type, MAX_PREACTIVATIONS["cpu"])
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=autocast):
            ids = strongest(centred.detach(), self.encoder_rows(), self.b_enc, k, most=most)
        pre = selected_products(centred, self.W_dec if self.W_enc is None else self.W_enc, ids)
        if self.gain is not None:
            pre = pre * _at(self.gain, ids)
        return ids, F.relu(pre + _at(self.b_enc, ids))

    def unsupervised(
        self, x: torch.Tensor, *, k: int, dead: torch.Tensor, weights: RetrievalConfig, autocast: bool
    ) -> Unsupervised:
        """Reconstruction of x [n, d_in] at k and 4 k, AuxK over the dead, contrast between the first rows of x.

        The first three are shares of the same variance. AuxK predicts the detached residual, without the bias.
        """
        variance = (x - x.mean(dim=0)).square().sum().detach().clamp_min(1e-12)
        wide_k = min(WIDE_FACTOR * k, len(self.b_enc)) if weights.wide else k
        ids, values = self.code(x, wide_k, autocast=autocast)
        centred = x - self.b_dec
        residual = centred - weighted_rows(values[:, :k], ids[:, :k], self.W_dec)
        fvu = residual.square().sum() / variance
        wide = auxiliary = contrast = x.new_zeros(())
        if weights.wide:
            wide = (centred - weighted_rows(values, ids, self.W_dec)).square().sum() / variance
        if weights.alpha and len(dead):
            most = min(weights.k_aux, len(dead))
            auxiliary = self._auxiliary(centred, residual.detach(), dead, most, autocast) / variance
        if weights.beta:
            first = slice(0, weights.contrasted)
            codes = self.dense(ids[first, :k], values[first, :k])
            contrast = token_contrast(codes, temperature=weights.contrast_temperature, autocast=autocast)
        share = min(len(dead) / weights.k_aux, 1.0)
        total = fvu + weights.wide * wide + weights.alpha * share * auxiliary + weights.beta * contrast
        return Unsupervised(total, fvu.detach(), wide.detach(), auxiliary.detach(), contrast.detach())

    def dense(self, ids: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """float[n, d_sae]: codes as rows with zeros; for a few hundred of them."""
        return values.new_zeros(len(ids), len(self.b_enc)).scatter(1, ids, values)


def token_contrast(codes: torch.Tensor, *, temperature: float, autocast: bool) -> torch.Tensor:
    """The non-negative contrastive loss: each code [n, m] should be nearer to itself than to all others."""
    with torch.autocast(codes.device.type, dtype=torch.bfloat16, enabled=autocast):
        products = (codes @ codes.t()).float() / temperature
    return (products.logsumexp(dim=1) - products.diagonal()).mean()


def document_contrast(scores: torch.Tensor, target: torch.Tensor, excluded: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of each query's own document [n] among all [n, n_documents] that are not excluded."""
    return F.cross_entropy(scores.masked_fill(excluded, -torch.inf), target)


def unit(values: torch.Tensor) -> torch.Tensor:
    """Codes [..., k] at length 1: what is compared. A code without an active latent stays 0."""
    found: torch.Tensor = values / values.norm(dim=-1, keepdim=True).clamp_min(1e-6)
    return found


@torch.no_grad()
def teacher_scores(queries: TextStates, documents: TextStates, weights: torch.Tensor) -> torch.Tensor:
    """float[n_queries, n_documents]: MaxSim between the encoder's own states, and cosines of its vectors of texts.

    weights: float[n_rows] of the tokens of queries; those of one query are brought to a sum of 1.
    """
    device = queries.rows.device
    ours, theirs = (torch.from_numpy(side.counts).to(device) for side in (queries, documents))
    rows = F.normalize(queries.rows, dim=1) @ F.normalize(documents.rows, dim=1).t()
    owner = torch.arange(len(theirs), device=device).repeat_interleave(theirs)
    best = rows.new_full((len(rows), len(theirs)), -1.0)
    best = best.scatter_reduce(1, owner.expand(len(rows), -1), rows, "amax")
    query = torch.arange(len(ours), device=device).repeat_interleave(ours)
    total = weights.new_zeros(len(ours)).index_add(0, query, weights).clamp_min(1e-6)
    found = best.new_zeros(len(ours), len(theirs)).index_add(0, query, best * (weights / total[query])[:, None])
    return found + WHOLE_TEXT_WEIGHT * F.normalize(queries.whole, dim=1) @ F.normalize(documents.whole, dim=1).t()


def divergence(scores: torch.Tensor, wanted: torch.Tensor, excluded: torch.Tensor) -> torch.Tensor:
    """The mean Kullback-Leibler divergence of the documents' softmax scores [n, n_documents] from the wanted ones."""
    ours, theirs = (F.log_softmax(one.masked_fill(excluded, -1e4), dim=1) for one in (scores, wanted))
    return F.kl_div(ours, theirs, log_target=True, reduction="batchmean")
