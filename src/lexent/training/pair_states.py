"""The states of queries and documents by number: held, made anew each time, or made by an encoder that is trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from lexent.encoders import Encoder, fine_tuning
from lexent.encoders.encoder import batches_with_whole, check_finite, finite_batches
from lexent.encoders.sentence import SentenceEncoder
from lexent.errors import InputError
from lexent.types import Kind, States

HELD_BYTES = 4 << 30
"""States that are held on a CPU at most; on a GPU half of its free memory."""


@dataclass(frozen=True, slots=True)
class TextStates:
    """States of some texts, one text after the other."""

    rows: torch.Tensor  # float32[n_rows, d_in]
    counts: NDArray[np.int64]  # [n_texts], rows of each
    pooled: torch.Tensor | None  # float32[n_texts, d_pooled]

    @property
    def whole(self) -> torch.Tensor:
        """The pooled states, where the side has them."""
        assert self.pooled is not None
        return self.pooled


StateSource: TypeAlias = Callable[[NDArray[np.int64]], TextStates]
"""Gives the states of texts by their numbers."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the pairs: its texts, and how many states of each are compared."""

    texts: Sequence[str]
    kind: Kind
    limit: int
    specials: bool
    whole: bool


def source(
    encoder: Encoder, side: Side, *, device: torch.device, learner: Any = None, autocast: bool = False
) -> StateSource:
    """States of the learner, where the encoder is trained; otherwise the encoder's, held where memory allows."""
    if learner is not None:
        prompt = getattr(encoder, "prompts", {}).get(side.kind, "")
        return partial(learned_states, learner, side, prompt=prompt, device=device, autocast=autocast)
    free = torch.cuda.mem_get_info(device)[0] // 2 if device.type == "cuda" else HELD_BYTES
    tokens = sum(min(len(text) // 3 + 2, side.limit) for text in side.texts)  # a token has more than 3 letters
    if tokens * encoder.dim * (2 if device.type == "cuda" else 4) < free // 2:  # there are two sides
        return HeldStates(encoder, side, device=device).of
    return partial(fresh_states, encoder, side, device=device)


def fresh_states(encoder: Encoder, side: Side, places: NDArray[np.int64], *, device: torch.device) -> TextStates:
    """The states of the texts at these places, encoded anew."""
    some = replace(side, texts=[side.texts[place] for place in places])
    return HeldStates(encoder, some, device=device).of(np.arange(len(places)))


class HeldStates:
    """All states, encoded once, in the precision in which the encoder gave them."""

    def __init__(self, encoder: Encoder, side: Side, *, device: torch.device) -> None:
        self.device = device
        parts: list[torch.Tensor] = []
        pooled: list[torch.Tensor] = []
        order: list[NDArray[np.int64]] = []
        counts = np.zeros(len(side.texts), np.int64)
        given: dict[str, Any] = {"kind": side.kind, "specials": side.specials}
        alone = ((places, states, None) for places, states in finite_batches(encoder, side.texts, **given))
        for places, states, whole in batches_with_whole(encoder, side.texts, **given) if side.whole else alone:
            kept, counts[places] = _first(states.offsets, side.limit)
            rows = states.tensor()
            parts.append(rows[torch.from_numpy(kept).to(rows.device)].to(device))
            pooled += [whole.tensor().to(device).float()] if whole is not None else []
            order.append(places)
        self.rows = torch.cat(parts)
        placed = np.concatenate(order)
        self.starts = np.empty(len(counts), np.int64)
        self.starts[placed] = np.cumsum(counts[placed]) - counts[placed]
        self.counts = counts
        back = torch.from_numpy(np.argsort(placed)).to(device)
        self.pooled = torch.cat(pooled)[back] if pooled else None

    def of(self, places: NDArray[np.int64]) -> TextStates:
        """The states of the texts at these places."""
        counts = self.counts[places]
        rows = torch.from_numpy(_ranges(self.starts[places], counts)).to(self.device)
        pooled = None if self.pooled is None else self.pooled[torch.from_numpy(places).to(self.device)]
        return TextStates(self.rows[rows].float(), counts, pooled)


def learned_states(
    model: Any, side: Side, places: NDArray[np.int64], *, prompt: str, device: torch.device, autocast: bool
) -> TextStates:
    """States with gradient, from an encoder that learns. Texts are cut before they are encoded."""
    texts = [side.texts[place] for place in places]
    more = 0 if side.specials else model.tokenizer.num_special_tokens_to_add()
    limit = min(side.limit + more, int(model.max_seq_length or 512))
    prompted = [prompt + text for text in texts]
    inputs, kept = tokenised(model.tokenizer, prompted, limit=limit, specials=side.specials, device=device)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=autocast):
        features = model[0](inputs)
    rows = features["token_embeddings"].float()[kept]
    pooled = None
    if side.whole:
        features["token_embeddings"] = features["token_embeddings"].float()
        for module in list(model)[1:]:
            features = module(features)
        pooled = features["sentence_embedding"].float()
    return TextStates(rows, checked_counts([rows], kept, texts, encoder="in training"), pooled)


def tokenised(
    tokenizer: Any, texts: list[str], *, limit: int, specials: bool, device: torch.device
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """The inputs of a transformer for texts of at most `limit` tokens, and bool[n_texts, length]: which are compared.

    specials: compare special tokens such as [CLS] too.
    """
    encoded = tokenizer(
        texts, truncation=True, max_length=limit, padding=True, return_special_tokens_mask=True, return_tensors="pt"
    )
    inputs = {name: tensor.to(device) for name, tensor in encoded.items()}
    special = inputs.pop("special_tokens_mask").bool()
    return inputs, inputs["attention_mask"].bool() & (~special | specials)


def checked_counts(
    layers: Sequence[torch.Tensor], kept: torch.Tensor, texts: Sequence[str], *, encoder: str
) -> NDArray[np.int64]:
    """int64[n_texts]: how many states each text has. States of any layer that are not finite are refused."""
    counts = kept.sum(dim=1).cpu().numpy().astype(np.int64)
    for rows in layers:
        check_finite(States(rows.detach(), np.concatenate([[0], np.cumsum(counts)])), texts, encoder=encoder)
    return counts


def trainable(encoder: Encoder, *, device: torch.device) -> Any:
    """A copy of the encoder's model that can learn: in float32, without dropout, so that a run can be repeated."""
    if not isinstance(encoder, SentenceEncoder) or not hasattr(encoder.model[0], "auto_model"):
        raise InputError(
            f'the encoder "{encoder.id}" cannot be trained; give a sentence-transformers model, or leave it as it is: '
            "--freeze"
        )
    return fine_tuning.learner(encoder.model, rank=None, seed=0, device=device)


def _first(offsets: NDArray[np.int64], limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of the first `limit` states of each text, and how many they are."""
    counts = np.minimum(np.diff(offsets), limit)
    return _ranges(offsets[:-1], counts), counts


def _ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, ... for each start, as many as its count."""
    ends = np.cumsum(counts)
    found: NDArray[np.int64] = np.arange(counts.sum()) + np.repeat(starts - (ends - counts), counts)
    return found
