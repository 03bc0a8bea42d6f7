"""The sparse autoencoders as they are trained. What is saved is `sae.SparseAutoencoder`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from lexent.errors import InputError
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.sae.config import SAEConfig
from lexent.sae.top_latents import top_latents, top_of_batch


@dataclass(frozen=True, slots=True)
class Loss:
    """What one step measured; `total` carries the gradient."""

    total: torch.Tensor
    fvu: torch.Tensor  # share of the variance not explained, at k
    auxiliary: torch.Tensor
    active: torch.Tensor  # mean number of latents above 0
    ids: torch.Tensor  # int64[n, k] or [n * k], the latents that were selected
    fired: torch.Tensor  # bool, of the same shape: whether their activation is above 0


class TopKModel(nn.Module):
    """z = ReLU(TopK(W_enc (x - b_dec) + b_enc)); x' = z W_dec + b_dec, with unit rows in W_dec.

    Rows are latents in both matrices. A tied model has one matrix: the encoder row of a latent is its decoder row times
    a gain of its own. The wide product only selects; the k selected values are computed again, exactly and with
    gradient, so no dense [n, d_sae] tensor enters the backward pass.
    """

    def __init__(self, d_in: int, d_sae: int, *, tied: bool, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        rows = F.normalize(torch.randn(d_sae, d_in, generator=generator), dim=1)
        self.W_dec = nn.Parameter(rows)
        self.W_enc = None if tied else nn.Parameter(rows.clone())
        self.gain = nn.Parameter(torch.ones(d_sae)) if tied else None
        self.b_enc = nn.Parameter(torch.zeros(d_sae))
        self.b_dec = nn.Parameter(torch.zeros(d_in))

    def encoder_rows(self) -> torch.Tensor:
        """float[d_sae, d_in]: the encoder direction of each latent."""
        if self.W_enc is not None:
            return self.W_enc
        assert self.gain is not None
        return self.W_dec * self.gain[:, None]

    @torch.no_grad()
    def select(self, centred: torch.Tensor, k: int) -> torch.Tensor:
        """int64[n, k]: the k strongest latents of each row. Half precision where autocast says so."""
        return top_latents(F.linear(centred, self.encoder_rows(), self.b_enc), k)

    def values(self, centred: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The activations float[n, k] of the given latents and their decoder rows float[n, k, d_in]."""
        directions = F.embedding(ids, self.W_dec)
        if self.W_enc is not None:
            pre = torch.einsum("nd,nkd->nk", centred, F.embedding(ids, self.W_enc))
        else:
            assert self.gain is not None
            pre = torch.einsum("nd,nkd->nk", centred, directions) * _at(self.gain, ids)
        return F.relu(pre + _at(self.b_enc, ids)), directions

    def loss(
        self,
        x: torch.Tensor,
        *,
        k: int,
        dead: torch.Tensor,
        k_aux: int,
        aux_weight: float,
        autocast: bool,
        nested_k: int | None = None,
    ) -> Loss:
        """The loss of a batch x [n, d_in]: the unexplained variance, and AuxK over the `dead` latents.

        nested_k: the unexplained variance is the mean of that at k and that of the strongest nested_k latents. All
        terms are divided by the same variance. AuxK predicts the detached residual, without the bias.
        """
        variance = (x - x.mean(dim=0)).square().sum().detach().clamp_min(1e-12)
        centred = x - self.b_dec
        ids, fired, rebuilt, nested = self.rebuild(centred, k, autocast=autocast, nested_k=nested_k)
        residual = centred - rebuilt
        fvu = residual.square().sum() / variance
        unexplained = fvu if nested is None else (fvu + (centred - nested).square().sum() / variance) / 2
        auxiliary = x.new_zeros(())
        if len(dead) > 0:
            auxiliary = self._auxiliary(centred, residual.detach(), dead, min(k_aux, len(dead)), autocast) / variance
        total = unexplained + aux_weight * min(len(dead) / k_aux, 1.0) * auxiliary
        return Loss(total, fvu.detach(), auxiliary.detach(), fired.sum() / len(x), ids, fired)

    def rebuild(
        self, centred: torch.Tensor, k: int, *, autocast: bool, nested_k: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """The latents selected, which of them fired, and what the centred states are rebuilt as.

        Last, what they are rebuilt as by the strongest nested_k of the latents, where it is given.
        """
        with torch.autocast(centred.device.type, dtype=torch.bfloat16, enabled=autocast):
            ids = self.select(centred.detach(), k)
        values, directions = self.values(centred, ids)
        if nested_k is None:
            return ids, values.detach() > 0, torch.einsum("nk,nkd->nd", values, directions), None
        inner = torch.einsum("nk,nkd->nd", values[:, :nested_k], directions[:, :nested_k])
        outer = torch.einsum("nk,nkd->nd", values[:, nested_k:], directions[:, nested_k:])
        return ids, values.detach() > 0, inner + outer, inner

    def _auxiliary(
        self, centred: torch.Tensor, residual: torch.Tensor, dead: torch.Tensor, k: int, autocast: bool
    ) -> torch.Tensor:
        decoder = self.W_dec[dead]
        encoder = decoder * self.gain[dead, None] if self.gain is not None else self.encoder_rows()[dead]
        with torch.autocast(centred.device.type, dtype=torch.bfloat16, enabled=autocast):
            pre = F.relu(F.linear(centred.detach(), encoder, self.b_enc[dead]))
            kept = torch.zeros_like(pre).scatter_(1, top_latents(pre.detach(), k), 1.0)
            guess = (pre * kept) @ decoder
        return (residual - guess.float()).square().sum()

    @torch.no_grad()
    def remove_parallel_gradient(self) -> None:
        """Take from the decoder's gradient what would only change the rows' length."""
        grad = self.W_dec.grad
        if grad is not None:
            grad.sub_((grad * self.W_dec).sum(dim=1, keepdim=True) * self.W_dec)

    @torch.no_grad()
    def normalise_decoder(self) -> None:
        """Unit decoder rows; to be called after the optimiser's step, not before.

        A gain stays above 0: what is saved of a tied model are the encoder rows, and their directions are the decoder.
        """
        self.W_dec.div_(self.W_dec.norm(dim=1, keepdim=True).clamp_min(1e-8))  # [d_sae, d_in]: a row is a latent
        if self.gain is not None:
            self.gain.clamp_min_(1e-4)

    @torch.no_grad()
    def exported(
        self,
        *,
        k: int,
        scale: float,
        unit_states: bool,
        mean_length: float,
        query_gain: torch.Tensor | None = None,
    ) -> SparseAutoencoder:
        """The autoencoder in the units of the encoder: the scale of the states is folded into the biases."""
        check_weights(self)
        m, d = self.W_dec.shape
        found = SAEConfig(
            d_in=d,
            d_sae=m,
            k=k,
            activation_scale=scale,
            unit_states=unit_states,
            mean_length=mean_length,
            tied=self.W_enc is None,
        )
        return SparseAutoencoder(
            found,
            encoder=_array(self.encoder_rows()),
            decoder=None if self.W_enc is None else _array(self.W_dec),
            b_enc=_array(self.b_enc / scale),
            b_dec=_array(self.b_dec / scale),
            query_gain=None if query_gain is None else _array(query_gain),
        )

    @torch.no_grad()
    def take(self, sae: SparseAutoencoder) -> None:
        """The weights of a trained autoencoder, of this shape: the inverse of `exported`."""
        scale = sae.config.activation_scale
        rows = torch.from_numpy(sae.encoder_rows)
        self.W_dec.copy_(torch.from_numpy(sae.decoder_rows))
        if self.W_enc is not None:
            self.W_enc.copy_(rows)
        else:
            assert self.gain is not None
            self.gain.copy_(rows.norm(dim=1))
        self.b_enc.copy_(torch.from_numpy(sae.b_enc) * scale)
        self.b_dec.copy_(torch.from_numpy(sae.b_dec) * scale)


class BatchTopKModel(TopKModel):
    """The same, with the n * k largest pre-activations of a whole batch of n states in place of k for each.

    A state then has as many latents as it needs, k on average. Meant for pooled states, of which there are few: the
    code is a dense [n, d_sae] matrix, mostly zeros.
    """

    def rebuild(
        self, centred: torch.Tensor, k: int, *, autocast: bool, nested_k: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """As for topk, with k latents a state on average; nested_k has no meaning here."""
        with torch.autocast(centred.device.type, dtype=torch.bfloat16, enabled=autocast):
            pre = F.linear(centred, self.encoder_rows(), self.b_enc)
            places = top_of_batch(pre.detach(), len(centred) * k)  # into the flattened matrix
            values = F.relu(pre.flatten().gather(0, places))
            codes = torch.zeros_like(pre).flatten().scatter(0, places, values).view_as(pre)
            rebuilt = codes @ self.W_dec
        return places % pre.shape[1], values.detach() > 0, rebuilt.float(), None


MODELS: dict[str, type[TopKModel]] = {"topk": TopKModel, "batchtopk": BatchTopKModel}
"""By the name of the architecture."""


def check_weights(model: nn.Module) -> None:
    """Refuse a model whose weights are not finite: the last step of a training may have been its first bad one."""
    for name, parameter in model.named_parameters():
        if not bool(parameter.isfinite().all()):
            raise InputError(
                f"the training diverged: {name} is not finite; begin anew with a lower learning rate: --lr"
            )


def _at(vector: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """vector[ids], by the embedding kernel: its backward pass is several times faster than indexing's."""
    return F.embedding(ids, vector[:, None]).squeeze(-1)


def _array(tensor: torch.Tensor) -> NDArray[np.float32]:
    found: NDArray[np.float32] = tensor.detach().float().cpu().contiguous().numpy()
    return found
