"""The sparse autoencoder as it is used: what training saves, what codes states, what goes to and comes from disk."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.errors import ArtifactError, InputError
from lexent.types import RowCodes, States

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

CONFIG, WEIGHTS = "cfg.json", "sae_weights.safetensors"
"""SAELens' file names; the tensors have its names and shapes too."""


@dataclass(frozen=True, slots=True)
class SAEConfig:
    """What a sparse autoencoder is, beside its weights."""

    d_in: int
    """Width of the states."""
    d_sae: int
    """Number of latents."""
    k: int
    """Latents a state was trained with; more or fewer may be used."""
    activation_scale: float = 1.0
    """Activations times this are what is indexed: it makes states of unit mean norm, so that k1 transfers."""
    unit_states: bool = False
    """States are divided by their length before coding."""
    mean_length: float = 0.0
    """Above 0, activations of unit states are times the state's length over this, the mean: a loud one counts more."""
    tied: bool = False
    """The decoder row of a latent is its encoder row at unit length, and is not stored."""
    bits: int = 32
    """Precision of the stored matrices: 32, or 8 with one scale a latent."""
    architecture: str = "topk"


class SparseAutoencoder:
    """z = ReLU(TopK(W_enc (x - b_dec) + b_enc)); x' = z W_dec + b_dec. Rows of both matrices are latents here."""

    def __init__(
        self,
        config: SAEConfig,
        *,
        encoder: NDArray[Any],
        decoder: NDArray[np.float32] | None,
        b_enc: NDArray[np.float32],
        b_dec: NDArray[np.float32],
        scale: NDArray[np.float32] | None = None,
    ) -> None:
        """encoder: float32[d_sae, d_in], or int8 with scale float32[d_sae]. decoder: None where it is tied."""
        shape = (config.d_sae, config.d_in)
        # nn.Linear and SAELens disagree on the axes: a transposed matrix must not pass as a model.
        if encoder.shape != shape or (decoder is not None and decoder.shape != shape):
            given = encoder.shape if decoder is None else f"{encoder.shape} and {decoder.shape}"
            raise ArtifactError(f"the matrices need the shape [latents, width] {shape}; given: {given}")
        if b_enc.shape != shape[:1] or b_dec.shape != shape[1:] or (scale is not None and scale.shape != shape[:1]):
            raise ArtifactError(
                f"b_enc and the scale need one number a latent ({config.d_sae}), b_dec one a column ({config.d_in}); "
                f"given: {len(b_enc)}, {'none' if scale is None else len(scale)} and {len(b_dec)}"
            )
        if (encoder.dtype == np.int8) != (scale is not None):
            raise ArtifactError(f"8-bit rows need a scale and others have none; given: {encoder.dtype} rows")
        self.config = config
        self.b_enc, self.b_dec = b_enc, b_dec
        self._encoder, self._scale = encoder, scale
        self._decoder = decoder
        self._dense: NDArray[np.float32] | None = None
        self._fast: Any = None

    @property
    def encoder_rows(self) -> NDArray[np.float32]:
        """float32[d_sae, d_in]"""
        if self._dense is None:
            self._dense = self._encoder.astype(np.float32)
            if self._scale is not None:
                self._dense *= self._scale[:, None]
        return self._dense

    @property
    def decoder_rows(self) -> NDArray[np.float32]:
        """float32[d_sae, d_in], unit rows"""
        if self._decoder is None:
            rows = self.encoder_rows
            self._decoder = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return self._decoder

    def encode(self, states: States, *, k: int | None = None) -> RowCodes:
        """The k strongest latents of each state. Activations come in indexing scale."""
        k = self.config.k if k is None else k
        if k < 1:
            raise InputError(f"k is {k}; allowed: 1 or more")
        if states.values.shape[1] != self.config.d_in:
            raise InputError(
                f"the states are {states.values.shape[1]} wide and this lexicon reads {self.config.d_in}: "
                f"it was trained for another encoder"
            )
        k = min(k, self.config.d_sae)
        rows = states.values.float()
        lengths = rows.norm(dim=1, keepdim=True)
        if not bool(lengths.isfinite().all()):
            bad = int((~lengths.isfinite()).flatten().nonzero()[0])
            raise InputError(f"the state in row {bad} is not finite (its length is {float(lengths[bad])})")
        if self.config.unit_states:
            rows = rows / lengths.clamp_min(1e-12)
        # One column is no use to anyone, and torch's 8-bit product is wrong there.
        if rows.device.type == "cpu" and self.config.d_sae >= 4096 and self.config.d_in > 1:
            ids, values = self._first_pass().encode(rows, k)
        else:
            ids, values = _encode_plainly(self, rows, k)
        values *= self.config.activation_scale
        if self.config.unit_states and self.config.mean_length > 0:
            values *= (lengths / self.config.mean_length).cpu().numpy()
        return RowCodes(ids, values, states.offsets)

    def _first_pass(self) -> Any:
        if self._fast is None:
            from lexent.coders.first_pass import FirstPass

            self._fast = FirstPass(self._encoder, scale=self._scale, b_enc=self.b_enc, b_dec=self.b_dec)
        return self._fast

    def decode(self, codes: RowCodes, *, lengths: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """float32[n_rows, d_in]: the states that the codes stand for, of unit length where they were made so.

        lengths: float32[n_rows], of the states; needed where the activations hold them.
        """
        from scipy.sparse import csr_matrix

        n, k = codes.ids.shape
        values = codes.values.ravel() / self.config.activation_scale
        if self.config.unit_states and self.config.mean_length > 0:
            if lengths is None:
                raise InputError("the activations of this lexicon hold the lengths of the states; give lengths")
            values = values / np.repeat(np.maximum(lengths, 1e-12) / self.config.mean_length, k)
        sparse = csr_matrix((values, codes.ids.ravel(), np.arange(0, n * k + 1, k)), shape=(n, self.config.d_sae))
        return np.asarray(sparse @ self.decoder_rows, dtype=np.float32) + self.b_dec

    def quantised(self) -> SparseAutoencoder:
        """The same with 8-bit encoder rows, one scale a latent, and a tied decoder where it is tied."""
        from dataclasses import replace

        rows = self.encoder_rows
        scale = np.maximum(np.abs(rows).max(axis=1), 1e-12) / 127
        return SparseAutoencoder(
            replace(self.config, bits=8),
            encoder=np.round(rows / scale[:, None]).astype(np.int8),
            decoder=None if self.config.tied else self.decoder_rows,
            b_enc=self.b_enc,
            b_dec=self.b_dec,
            scale=scale.astype(np.float32),
        )

    def kept(self, latents: NDArray[np.int64]) -> SparseAutoencoder:
        """Only the given latents, renumbered in that order."""
        from dataclasses import replace

        return SparseAutoencoder(
            replace(self.config, d_sae=len(latents)),
            encoder=np.ascontiguousarray(self._encoder[latents]),
            decoder=None if self.config.tied else np.ascontiguousarray(self.decoder_rows[latents]),
            b_enc=self.b_enc[latents],
            b_dec=self.b_dec,
            scale=None if self._scale is None else self._scale[latents],
        )

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The tensors by SAELens' names: W_enc [d_in, d_sae], W_dec [d_sae, d_in], b_enc, b_dec."""
        found: dict[str, NDArray[Any]] = {
            "W_enc": np.ascontiguousarray(self._encoder.T),
            "b_enc": self.b_enc.astype(np.float32),
            "b_dec": self.b_dec.astype(np.float32),
        }
        if not self.config.tied:
            found["W_dec"] = np.ascontiguousarray(self.decoder_rows)
        if self._scale is not None:
            found["W_enc_scale"] = self._scale
        return found

    def hash(self) -> str:
        digest = hashlib.sha256(json.dumps(asdict(self.config), sort_keys=True).encode())
        for name, tensor in sorted(self.tensors().items()):
            digest.update(name.encode() + tensor.tobytes())
        return digest.hexdigest()[:16]

    def save(self, folder: Path) -> None:
        """Write cfg.json and sae_weights.safetensors into an existing folder."""
        from safetensors.numpy import save

        (folder / WEIGHTS).write_bytes(save(self.tensors()))  # save_file would hide why a disk refused
        (folder / CONFIG).write_text(json.dumps(asdict(self.config), indent=1) + "\n")

    @staticmethod
    def load(folder: Path) -> SparseAutoencoder:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        for name in (CONFIG, WEIGHTS):
            if not (folder / name).is_file():
                raise ArtifactError(f"{folder} is not a lexicon: {name} is missing")
        try:
            values = json.loads((folder / CONFIG).read_text())
            tensors = load_file(folder / WEIGHTS)
        except (SafetensorError, ValueError) as error:
            raise ArtifactError(f"the lexicon {folder} is damaged: {error}") from error
        missing = {"W_enc", "b_enc", "b_dec"} - tensors.keys()
        if missing:
            raise ArtifactError(f"the lexicon {folder} is damaged: {WEIGHTS} has no {', '.join(sorted(missing))}")
        try:
            config = SAEConfig(**{name: values[name] for name in SAEConfig.__dataclass_fields__ if name in values})
        except TypeError as error:
            raise ArtifactError(f"the lexicon {folder} is damaged: {CONFIG}: {error}") from error
        if config.architecture != "topk":
            raise ArtifactError(f'{folder} is a "{config.architecture}" autoencoder; allowed: topk')
        return SparseAutoencoder(
            config,
            encoder=np.ascontiguousarray(tensors["W_enc"].T),
            decoder=tensors.get("W_dec"),
            b_enc=tensors["b_enc"],
            b_dec=tensors["b_dec"],
            scale=tensors.get("W_enc_scale"),
        )


def _encode_plainly(sae: SparseAutoencoder, states: torch.Tensor, k: int) -> tuple[Any, Any]:
    """ids int32[n, k] and activations float32[n, k], by the full product in float32."""
    import torch

    from lexent.coders.topk import top_latents

    rows = torch.from_numpy(sae.encoder_rows).to(states.device)
    b_enc = torch.from_numpy(sae.b_enc).to(states.device)
    b_dec = torch.from_numpy(sae.b_dec).to(states.device)
    ids = np.empty((len(states), k), np.int32)
    values = np.empty((len(states), k), np.float32)
    for start in range(0, len(states), 8192):
        part = slice(start, start + 8192)
        pre = torch.nn.functional.linear(states[part].float() - b_dec, rows, b_enc)
        best = top_latents(pre, k)
        ids[part] = best.cpu().numpy()
        values[part] = pre.gather(1, best).clamp_min(0).cpu().numpy()
    return ids, values
