"""The light engine: BERT and MPNet models without torch, in float32 on the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent import cpu
from lexent.encoders.encoder import check
from lexent.encoders.model_folder import ModelFolder, UnknownModelError
from lexent.encoders.threads import in_order
from lexent.encoders.tokens import encodings, text_tokens, token_counts, token_starts, tokens_of
from lexent.encoders.transformer import PREFIX, Transformer, TransformerConfig
from lexent.errors import InputError
from lexent.types import Batches, Kind, Level, States, Tokens, WholeBatches

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCH_TOKENS = 512
"""Tokens of a batch: its widest layer (3 MB for MiniLM) and a layer's weights stay in a core's caches."""
RUNS_PER_THREAD = 4
"""Batches of a thread, at least, where there are texts enough."""
TEXTS_PER_WINDOW = 4096
"""Texts are tokenized so many at a time, so that little is held."""


class LightEncoder:
    """A model folder as an encoder: the states that `SentenceEncoder` gives in float32, to rounding.

    A text has the same states, bit for bit, whatever texts are encoded beside it. Those of NumPy and of
    the kernels differ by rounding: see `lexent.compiled`.
    """

    device = "cpu"
    is_light = True

    def __init__(
        self, folder: ModelFolder, transformer: Transformer, tokenizer: Any, *, id: str, layers: Sequence[int] = ()
    ) -> None:
        """layers: give the states of these hidden layers side by side (0 is the embedding layer), not of the last."""
        self.folder, self.transformer, self.id = folder, transformer, id
        self.prompts, self.max_tokens = folder.prompts, folder.max_tokens
        self.layers = tuple(layers)
        self.dim = transformer.config.width * max(1, len(self.layers))
        self.fingerprint = _fingerprint(folder, transformer, self.layers or None)
        self._tokenizer = tokenizer

    @staticmethod
    def open(folder: Path, *, id: str) -> LightEncoder:
        """Load a folder of sentence-transformers or Hugging Face; `UnknownModelError` says why it is not known."""
        from tokenizers import Tokenizer

        read = ModelFolder.read(folder)
        config = TransformerConfig.of(read.config)
        try:
            tokenizer = Tokenizer.from_file(str(read.path / "tokenizer.json"))
        except Exception as error:  # the library raises no narrower one
            raise UnknownModelError(f"its tokenizer.json cannot be read: {error}") from error
        if read.lower_case:
            _lower(tokenizer)
        tokenizer.no_padding()
        tokenizer.enable_truncation(read.max_tokens)
        return LightEncoder(read, Transformer.load(read.path, config), tokenizer, id=id)

    def changed(self, patch: Mapping[str, Any], *, layers: Sequence[int], without: Sequence[int] = ()) -> LightEncoder:
        """The same encoder after training changed it; see `Transformer.changed`. It gives states of these layers."""
        transformer = self.transformer.changed(patch, without=without)
        return LightEncoder(self.folder, transformer, self._tokenizer, id=self.id, layers=layers)

    def batches(self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True) -> Batches:
        """States of texts, a batch at a time; see `Encoder.batches`."""
        check(texts, kind=kind, level=level, specials=specials)
        if level == "pooled" and self.layers:
            raise InputError(f'the encoder "{self.id}" was given layers {list(self.layers)}: it has no pooled states')
        for rows, states, encoded in self._batches(texts, kind):
            if level == "pooled":
                yield rows, self._pooled(states, kind)
            else:
                yield rows, states if specials else _without_specials(states, encoded)

    def batches_beside(
        self, others: Sequence[LightEncoder], texts: Sequence[str], *, kind: Kind, specials: bool = True
    ) -> Batches:
        """As `batches` for tokens, with the states of other encoders of the same tokens beside them in each row."""
        check(texts, kind=kind, specials=specials)
        for rows, states, encoded in self._batches(texts, kind, others):
            yield rows, states if specials else _without_specials(states, encoded)

    def batches_with_whole(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> WholeBatches:
        """As `batches` for tokens, with the pooled states beside them: one pass for both."""
        check(texts, kind=kind, specials=specials)
        for rows, states, encoded in self._batches(texts, kind):
            yield rows, states if specials else _without_specials(states, encoded), self._pooled(states, kind)

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """The tokens of texts with their places; see `Encoder.tokenize`."""
        check(texts, kind=kind, specials=specials)
        prompt = len(self.prompts[kind])
        return tokens_of(self._encoded(texts, kind), texts, self._string_of, prompt=prompt, specials=specials)

    @cached_property
    def _string_of(self) -> Callable[[int], str]:
        return cache(self._tokenizer.id_to_token)

    @property
    def text_tokens(self) -> int:
        """Tokens of a document that it reads at most, beside special tokens and the prompt."""
        return text_tokens(self, self.max_tokens)

    def token_starts(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Where each token of texts begins, to their ends; see `encoders.tokens`."""
        return [token_starts(self._untruncated, text) for text in texts]

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens texts have, to their ends."""
        return token_counts(self._untruncated, texts)

    @cached_property
    def _untruncated(self) -> Any:
        from tokenizers import Tokenizer

        found = Tokenizer.from_str(self._tokenizer.to_str())
        found.no_truncation()
        return found

    def _encoded(self, texts: Sequence[str], kind: Kind) -> list[Any]:
        return encodings(self._tokenizer, [self.prompts[kind] + text for text in texts])

    def _batches(
        self, texts: Sequence[str], kind: Kind, others: Sequence[LightEncoder] = ()
    ) -> Iterator[tuple[NDArray[np.int64], States, list[Any]]]:
        """Positions of texts, their states and their encodings, in the order of the texts."""

        def of(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], States, list[Any]]:
            own = [encoded[row] for row in rows]
            offsets = np.concatenate([[0], np.cumsum([len(one.ids) for one in own])]).astype(np.int64)
            ids = np.array([place for one in own for place in one.ids], np.int64)
            parts = [one.transformer.states(ids, offsets, layers=one.layers) for one in (self, *others)]
            values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
            return start + rows, States(values, offsets), own

        for start in range(0, len(texts), TEXTS_PER_WINDOW):
            encoded = self._encoded(texts[start : start + TEXTS_PER_WINDOW], kind)
            lengths = [len(one.ids) for one in encoded]
            share = sum(lengths) // (RUNS_PER_THREAD * cpu.threads())  # a few documents are shared out, too
            yield from in_order(of, _runs(lengths, min(BATCH_TOKENS, share)))

    def _pooled(self, states: States, kind: Kind) -> States:
        """One vector a text, from the states of its tokens."""
        skipped = self._prompt_tokens(kind)
        pool: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
            "mean": lambda rows: rows.sum(axis=0) / np.float32(max(1, len(rows))),
            "max": lambda rows: rows.max(axis=0),
            "cls": lambda rows: rows[0],
        }
        parts = [pool[self.folder.pooling](states.of(text)[skipped:]) for text in range(states.n_texts)]
        values = np.array(parts, np.float32).reshape(-1, self.dim)
        if self.folder.unit:
            values = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), np.float32(1e-12))
        return States(values, np.arange(len(parts) + 1))

    def _prompt_tokens(self, kind: Kind) -> int:
        """Tokens that are left out of pooled vectors: the prompt's, with the special tokens before it."""
        if self.folder.pools_prompt or not self.prompts[kind]:
            return 0
        prompt = self._tokenizer.encode(self.prompts[kind])
        return len(prompt.ids) - int(prompt.special_tokens_mask[-1])


def _lower(tokenizer: Any) -> None:
    """Put texts in lower case before the tokenizer's own normalisation, as sentence-transformers does."""
    from tokenizers import normalizers

    own = tokenizer.normalizer
    parts = [] if own is None else [own]
    if isinstance(own, normalizers.Sequence):
        parts = [own[place] for place in range(len(own))]
    if not any(isinstance(part, normalizers.Lowercase) for part in parts):
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *parts])


def _without_specials(states: States, encoded: Sequence[Any]) -> States:
    """The states of the other tokens."""
    kept = [1 - np.array(one.special_tokens_mask, np.int64) for one in encoded]
    counts = [int(mask.sum()) for mask in kept]
    return States(states.numpy()[np.concatenate(kept) > 0], np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))


def _runs(lengths: Sequence[int], most: int) -> list[NDArray[np.int64]]:
    """Positions of texts, one after the other, in runs of at most `most` tokens."""
    starts, held = [0], 0
    for place, length in enumerate(lengths):
        if held and held + length > most:
            starts.append(place)
            held = 0
        held += length
    stops = [*starts[1:], len(lengths)]
    return [np.arange(start, stop) for start, stop in zip(starts, stops, strict=True)]


def _fingerprint(folder: ModelFolder, transformer: Transformer, layers: tuple[int, ...] | None) -> str:
    """That of `SentenceEncoder` for the same folder: a hash of samples of the weights, the prompts and the limit."""
    digest = hashlib.sha256(repr((folder.prompts, layers, folder.max_tokens)).encode())
    for name, tensor in sorted((PREFIX + name, tensor) for name, tensor in transformer.tensors.items()):
        flat = tensor.reshape(-1)
        bits = flat[:: max(1, len(flat) // 64)].copy().view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)  # to bfloat16
        digest.update(f"{name}{tensor.shape}".encode() + rounded.astype(np.uint16).tobytes())
    return digest.hexdigest()[:16]
