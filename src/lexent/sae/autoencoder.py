"""The sparse autoencoder as it is used: what training saves, what codes states, what goes to and comes from disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent import artifact
from lexent.errors import ArtifactError, InputError, MismatchError
from lexent.sae.array_coding import above_in_array, strongest_in_array
from lexent.sae.coding_kernels import KERNELS as FIRST_PASS
from lexent.sae.config import ARCHITECTURES, SAEConfig, from_json, groups_of, to_json
from lexent.sae.top_latents import top_latents
from lexent.types import RowCodes, StateRows, States

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from lexent.sae.first_pass import FirstPass

CONFIG, WEIGHTS = "cfg.json", "sae_weights.safetensors"
"""SAELens' file names; the tensors have its names and shapes too."""
ZERO_STATE_NORM = 1e-12
"""States up to this length count as 0."""
FIRST_PASS_LATENTS = 4096
"""From this many latents on, the quantised first pass is faster on a CPU than the full product."""
NUMPY_OPERATIONS_PER_S = 3e10
"""What NumPy multiplies and adds a second on one thread, roughly."""
_OPTIONAL = {"decoder": "W_dec", "scale": "W_enc_scale", "decoder_scale": "W_dec_scale", "query_gain": "query_gain"}
"""Arrays that not every autoencoder has, with the names of their tensors on disk."""


class SparseAutoencoder:
    """z = ReLU(TopK(W_enc (x - b_dec) + b_enc)); x' = z W_dec + b_dec. Rows of both matrices are latents here.

    In jumprelu form a latent is active where its pre-activation is above a threshold, in place of TopK. Winners have no
    decoder; they may be in buckets, whose latents are numbered one bucket after the other.
    """

    def __init__(
        self,
        config: SAEConfig,
        *,
        encoder: NDArray[Any],
        decoder: NDArray[Any] | None,
        b_enc: NDArray[np.float32],
        b_dec: NDArray[np.float32],
        scale: NDArray[np.float32] | None = None,
        decoder_scale: NDArray[np.float32] | None = None,
        query_gain: NDArray[np.float32] | None = None,
        live: NDArray[np.int64] | None = None,
    ) -> None:
        """encoder: float32[d_sae, d_in], or int8 with scale float32[d_sae]. decoder: so too, None where tied.

        query_gain: float32[d_sae], how much each latent of a query counts for, where that was learned. live:
        int64[buckets * groups, n], the inputs that each group reads, ascending; all other weights are 0.
        """
        shape = (config.d_sae, config.width)
        # nn.Linear and SAELens disagree on the axes: a transposed matrix must not pass as a model.
        if encoder.shape != shape or (decoder is not None and decoder.shape != shape):
            given = encoder.shape if decoder is None else f"{encoder.shape} and {decoder.shape}"
            raise ArtifactError(f"the matrices need the shape [latents, width] {shape}; given: {given}")
        scales = [one for one in (scale, decoder_scale, query_gain) if one is not None]
        if b_enc.shape != shape[:1] or len(b_dec) != config.d_in or any(one.shape != shape[:1] for one in scales):
            raise ArtifactError(
                f"b_enc, scales and gains need a number a latent ({config.d_sae}), b_dec one a column ({config.d_in}); "
                f"given: {len(b_enc)}, {', '.join(str(len(one)) for one in scales) or 'none'} and {len(b_dec)}"
            )
        for rows, one in ((encoder, scale), (decoder, decoder_scale)):
            if (rows is not None and rows.dtype == np.int8) != (one is not None):
                kind = "no" if rows is None else rows.dtype
                raise ArtifactError(f"8-bit rows need a scale and others have none; given: {kind} rows")
        if (live is not None) != (config.groups > 0) or (live is not None and len(live) != config.n_groups):
            n_given = 0 if live is None else len(live)
            raise ArtifactError(f"live inputs are needed for {config.n_groups} groups of latents; given: {n_given}")
        self.config = config
        self.stored_rows, self.scale = encoder, scale
        self.b_enc, self.b_dec = b_enc, b_dec
        self.query_gain, self.live = query_gain, live
        rows_and_biases: dict[str, Any] = {"encoder": encoder, "scale": scale, "b_enc": b_enc, "query_gain": query_gain}
        self._by_latent = {**rows_and_biases, "decoder": decoder, "decoder_scale": decoder_scale}

    @cached_property
    def encoder_rows(self) -> NDArray[np.float32]:
        """float32[d_sae, d_in], in the order of the file: one layout, so that products round alike before and after."""
        return np.asfortranarray(_dense(self.stored_rows, self.scale))

    @cached_property
    def decoder_rows(self) -> NDArray[np.float32]:
        """float32[d_sae, d_in], unit rows."""
        return self.decoder_rows_of(slice(None))

    def decoder_rows_of(self, latents: Any) -> NDArray[np.float32]:
        """float32[n, d_in]: the rows of some latents in the decoder, of length 1."""
        stored, scale = self._by_latent["decoder"], self._by_latent["decoder_scale"]
        if stored is None:
            own = np.ascontiguousarray(self.stored_rows[latents])
            rows = _dense(own, None if self.scale is None else self.scale[latents])
        else:
            rows = _dense(stored[latents], None if scale is None else scale[latents])
        if stored is None or scale is not None:
            rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return rows

    def encode(self, states: States, *, k: int | None = None) -> RowCodes:
        """The k strongest latents of each state; in jumprelu form all above the threshold, k on average.

        A state of length 0, such as the mean of no tokens, has no active latent. Activations come in indexing scale.
        """
        k = self.config.k if k is None else k
        if k < 1:
            raise InputError(f"k is {k}; allowed: 1 or more")
        if states.values.shape[1] != self.config.d_in:
            raise InputError(
                f"the states are {states.values.shape[1]} wide and this lexicon reads {self.config.d_in}: "
                f"it was trained for another encoder"
            )
        k = min(k, self.config.d_sae // self.config.buckets)
        rows, lengths = _float_rows(states), states.lengths()[:, None]
        if not np.isfinite(lengths).all():
            bad = int(np.flatnonzero(~np.isfinite(lengths))[0])
            raise InputError(f"the state in row {bad} is not finite (its length is {float(lengths[bad, 0])})")
        if self.config.unit_states:
            rows = _divided(rows, np.maximum(lengths, np.float32(ZERO_STATE_NORM)))
        if self.config.architecture == "jumprelu":
            ids, values = self._above(rows, self.config.threshold_for(k))
        elif self.config.buckets == 1:
            ids, values = self._strongest(rows, k)
        else:
            width, size = self.config.width, self.config.d_sae // self.config.buckets
            found = [
                bucket._strongest(rows[:, place * width : (place + 1) * width], k)
                for place, bucket in enumerate(self._buckets)
            ]
            ids = np.concatenate([ids + np.int32(place * size) for place, (ids, _) in enumerate(found)], axis=1)
            values = np.concatenate([values for _, values in found], axis=1)
        values *= self.config.activation_scale
        values[lengths[:, 0] <= ZERO_STATE_NORM] = 0  # without a direction there is nothing to code
        if self.config.unit_states and self.config.mean_length > 0:
            values *= lengths / np.float32(self.config.mean_length)
        return RowCodes(ids, values, states.offsets)

    def _strongest(self, rows: StateRows, k: int) -> tuple[Any, Any]:
        # torch's 8-bit product is wrong for states of one column, which are of no use to anyone.
        many = self.config.d_sae >= FIRST_PASS_LATENTS and self.config.d_in > 1
        if isinstance(rows, np.ndarray):
            if many and FIRST_PASS.use(2 * len(rows) * self.stored_rows.size / NUMPY_OPERATIONS_PER_S):
                return self._tiled_first_pass.encode(rows, k)
            return strongest_in_array(self, rows, k)
        fast = rows.device.type == "cpu" and many
        return self._first_pass.encode(rows, k) if fast else _encode_plainly(self, rows, k)

    def _above(self, rows: StateRows, threshold: float) -> tuple[Any, Any]:
        if isinstance(rows, np.ndarray):
            return above_in_array(self, rows, threshold)
        return _encode_above(self, rows, threshold)

    @cached_property
    def _first_pass(self) -> FirstPass:
        """For tensors: torch makes the product where that is fast and exact."""
        from lexent.sae.integer_products import int_mm_is_fit

        with_torch = self.live is None and int_mm_is_fit(self.stored_rows.shape[1])
        return self._made_first_pass(with_torch=True) if with_torch else self._tiled_first_pass

    @cached_property
    def _tiled_first_pass(self) -> FirstPass:
        """For arrays: without torch."""
        return self._made_first_pass(with_torch=False)

    def _made_first_pass(self, *, with_torch: bool) -> FirstPass:
        from lexent.sae.first_pass import FirstPass

        biases = {"b_enc": self.b_enc, "b_dec": self.b_dec}
        rows = np.ascontiguousarray(self.stored_rows)
        return FirstPass(rows, scale=self.scale, **biases, live=self.live, with_torch=with_torch)

    @cached_property
    def _buckets(self) -> list[SparseAutoencoder]:
        return [self.bucket(place) for place in range(self.config.buckets)]

    def bucket(self, place: int) -> SparseAutoencoder:
        """One bucket as an autoencoder of its own, whose latents are numbered from 0."""
        config, size = self.config, self.config.d_sae // self.config.buckets
        latents, inputs, groups = (
            slice(place * count, (place + 1) * count) for count in (size, config.width, config.groups)
        )
        live = None if self.live is None else self.live[groups]
        alone = replace(config, d_in=config.width, d_sae=size, buckets=1)
        return self._copied(alone, latents, b_dec=self.b_dec[inputs], live=live)

    def _copied(self, config: SAEConfig, latents: Any = slice(None), **changed: Any) -> SparseAutoencoder:
        """Some latents under another configuration; arrays that are not among `changed` stay."""
        rows = {name: None if array is None else array[latents] for name, array in self._by_latent.items()}
        return SparseAutoencoder(config, **{**rows, "b_dec": self.b_dec, "live": self.live, **changed})

    def decode(self, codes: RowCodes, *, lengths: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """float32[n_rows, d_in]: the states that the codes stand for, of unit length where they were made so.

        lengths: float32[n_rows], of the states; needed where the activations hold them.
        """
        from scipy.sparse import csr_matrix

        if self.config.architecture == "winners":
            raise MismatchError(
                "a lexicon of winners is trained to find, not to rebuild: it has no decoder; take another lexicon"
            )
        n, k = codes.ids.shape
        values = codes.values.ravel() / self.config.activation_scale
        if self.config.unit_states and self.config.mean_length > 0:
            if lengths is None:
                raise InputError("the activations of this lexicon hold the lengths of the states; give lengths")
            values = values / np.repeat(np.maximum(lengths, 1e-12) / self.config.mean_length, k)
        sparse = csr_matrix((values, codes.ids.ravel(), np.arange(0, n * k + 1, k)), shape=(n, self.config.d_sae))
        return np.asarray(sparse @ self.decoder_rows, dtype=np.float32) + self.b_dec

    def quantised(self) -> SparseAutoencoder:
        """The same with 8-bit rows, one scale a latent."""
        encoder, scale = _eight_bits(self.encoder_rows)
        decoder, decoder_scale = (None, None) if self.config.tied else _eight_bits(self.decoder_rows)
        changed = {"encoder": encoder, "scale": scale, "decoder": decoder, "decoder_scale": decoder_scale}
        return self._copied(replace(self.config, bits=8), **changed)

    def configured(self, **settings: Any) -> SparseAutoencoder:
        """The same weights with other settings."""
        return self._copied(replace(self.config, **settings))

    def kept(self, latents: NDArray[np.int64]) -> SparseAutoencoder:
        """Only the given latents, renumbered in that order."""
        if self.config.architecture == "winners":
            raise MismatchError("the latents of a lexicon of winners stand in buckets and groups; keep all of them")
        return self._copied(replace(self.config, d_sae=len(latents)), latents)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The tensors by SAELens' names: W_enc [d_in, d_sae], W_dec [d_sae, d_in], b_enc, b_dec."""
        optional = {stored: self._by_latent[name] for name, stored in _OPTIONAL.items()}
        return {
            **_stored(self.stored_rows, self.live, self.config),
            "b_enc": self.b_enc.astype(np.float32),
            "b_dec": self.b_dec.astype(np.float32),
            **{stored: np.ascontiguousarray(array) for stored, array in optional.items() if array is not None},
        }

    def hash(self) -> str:
        """A hash of the settings and all tensors."""
        digest = hashlib.sha256(json.dumps(to_json(self.config), sort_keys=True).encode())
        for name, tensor in sorted(self.tensors().items()):
            digest.update(name.encode() + tensor.tobytes())
        return digest.hexdigest()[:16]

    def save(self, folder: Path) -> None:
        """Write cfg.json and sae_weights.safetensors into an existing folder."""
        from safetensors.numpy import save

        (folder / WEIGHTS).write_bytes(save(self.tensors()))  # save_file would hide why a disk refused
        (folder / CONFIG).write_text(json.dumps(to_json(self.config), indent=1) + "\n")

    @staticmethod
    def load(folder: Path) -> SparseAutoencoder:
        """Read what `save` wrote; refused where it is damaged."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        for name in (CONFIG, WEIGHTS):
            if not (folder / name).is_file():
                raise ArtifactError(f"{folder} is not a lexicon: {name} is missing")
        try:
            values = artifact.read_json(folder / CONFIG)
            tensors = load_file(folder / WEIGHTS)
        except (SafetensorError, OSError, ValueError) as error:
            raise ArtifactError(f"the lexicon {folder} is damaged: {error}") from error
        try:
            config = from_json(values)
        except (TypeError, ValueError, KeyError) as error:
            raise ArtifactError(f"the lexicon {folder} is damaged: {CONFIG}: {error}") from error
        rows_on_disk = {"W_live", "live_inputs"} if config.groups else {"W_enc"}
        missing = (rows_on_disk | {"b_enc", "b_dec"}) - tensors.keys()
        if missing:
            raise ArtifactError(f"the lexicon {folder} is damaged: {WEIGHTS} has no {', '.join(sorted(missing))}")
        if config.architecture not in ARCHITECTURES:
            allowed = ", ".join(ARCHITECTURES)
            raise ArtifactError(f'{folder} is a "{config.architecture}" autoencoder; allowed: {allowed}')
        live = tensors["live_inputs"].astype(np.int64) if config.groups else None
        rows, biases = _widened(tensors, live, config), {name: tensors[name] for name in ("b_enc", "b_dec")}
        optional: dict[str, Any] = {name: tensors.get(stored) for name, stored in _OPTIONAL.items()}
        return SparseAutoencoder(config, encoder=rows, **biases, **optional, live=live)


def _stored(rows: NDArray[Any], live: NDArray[np.int64] | None, config: SAEConfig) -> dict[str, NDArray[Any]]:
    """The encoder as it goes to disk: where latents read few inputs, their weights alone."""
    if live is None:
        return {"W_enc": np.ascontiguousarray(rows.T)}
    return {"W_live": np.take_along_axis(rows, live[groups_of(config)], axis=1), "live_inputs": live.astype(np.uint16)}


def _widened(tensors: dict[str, Any], live: NDArray[np.int64] | None, config: SAEConfig) -> NDArray[Any]:
    if live is None:
        rows_as_stored: NDArray[Any] = tensors[
            "W_enc"
        ].T  # not copied: to lay the rows out anew takes longer than a query
        return rows_as_stored
    stored = tensors["W_live"]
    fits = live.ndim == 2 and len(live) == config.n_groups and stored.shape == (config.d_sae, live.shape[1])
    if not fits or int(live.max(initial=-1)) >= config.width:
        raise ArtifactError(f"the weights {stored.shape} and the inputs {live.shape} of winners do not fit together")
    rows: NDArray[Any] = np.zeros((config.d_sae, config.width), stored.dtype)
    np.put_along_axis(rows, live[groups_of(config)], stored, axis=1)
    return rows


def _dense(rows: NDArray[Any], scale: NDArray[np.float32] | None) -> NDArray[np.float32]:
    found: NDArray[np.float32] = rows.astype(np.float32)
    return found if scale is None else found * scale[:, None]


def _eight_bits(rows: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    scale = np.maximum(np.abs(rows).max(axis=1), 1e-12) / 127
    return np.round(rows / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def _float_rows(states: States) -> StateRows:
    if isinstance(states.values, np.ndarray):
        return states.values.astype(np.float32, copy=False)
    return states.values.float()


def _divided(rows: StateRows, lengths: NDArray[np.float32]) -> StateRows:
    """Each row over its length float32[n, 1]."""
    if isinstance(rows, np.ndarray):
        return rows / lengths
    import torch

    return rows / torch.from_numpy(lengths).to(rows.device)


def pre_activations(sae: SparseAutoencoder, states: torch.Tensor, step: int) -> Iterator[tuple[slice, torch.Tensor]]:
    """float32[step, d_sae]: W_enc (x - b_dec) + b_enc of some states at a time, on their device."""
    import torch

    rows = torch.from_numpy(sae.encoder_rows).to(states.device)
    b_enc = torch.from_numpy(sae.b_enc).to(states.device)
    b_dec = torch.from_numpy(sae.b_dec).to(states.device)
    for start in range(0, len(states), step):
        part = slice(start, start + step)
        yield part, torch.nn.functional.linear(states[part].float() - b_dec, rows, b_enc)


def _encode_plainly(sae: SparseAutoencoder, states: torch.Tensor, k: int) -> tuple[Any, Any]:
    """ids int32[n, k] and activations float32[n, k], by the full product in float32."""
    ids = np.empty((len(states), k), np.int32)
    values = np.empty((len(states), k), np.float32)
    for part, pre in pre_activations(sae, states, 8192):
        best = top_latents(pre, k)
        ids[part] = best.cpu().numpy()
        values[part] = pre.gather(1, best).clamp_min(0).cpu().numpy()
    return ids, values


def _encode_above(sae: SparseAutoencoder, states: torch.Tensor, threshold: float) -> tuple[Any, Any]:
    """ids int32[n, most] and activations float32[n, most] of all latents above the threshold, strongest first.

    most: how many the richest state has. The full product: pooled states are few, and cheap beside their encoding.
    """
    parts: list[tuple[Any, Any]] = []
    threshold = max(threshold, 0.0)
    for _, pre in pre_activations(sae, states, 2048):
        most = int((pre > threshold).sum(dim=1).max())
        best = pre.topk(most, dim=1)
        values = best.values.where(best.values > threshold, 0.0)
        parts.append((best.indices.int().cpu().numpy(), values.cpu().numpy()))
    width = max([1, *(ids.shape[1] for ids, _ in parts)])
    padded = [tuple(np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one in part) for part in parts]
    ids = np.concatenate([np.empty((0, width), np.int32), *(ids for ids, _ in padded)])
    return ids, np.concatenate([np.empty((0, width), np.float32), *(values for _, values in padded)])
