"""The transformers that the light engine knows, BERT and MPNet: their weights, and the states of tokens by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent import cpu
from lexent.compiled import KernelGroup
from lexent.encoders.model_folder import UnknownModelError
from lexent.errors import ArtifactError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

WEIGHTS = "model.safetensors"
PREFIX = "0.model."
"""What sentence-transformers puts before the names of a transformer's tensors."""
_TABLES = "embeddings.{}_embeddings.weight"
_LAYER = {
    "bert": {
        "query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
        "merge": "attention.output.dense", "norm_1": "attention.output.LayerNorm",
    },
    "mpnet": {
        "query": "attention.attn.q", "key": "attention.attn.k", "value": "attention.attn.v",
        "merge": "attention.attn.o", "norm_1": "attention.LayerNorm",
    },
}  # fmt: skip
_BOTH = {"widen": "intermediate.dense", "narrow": "output.dense", "norm_2": "output.LayerNorm"}
_DISTANCES = "encoder.relative_attention_bias.weight"
NUMPY_OPERATIONS_PER_S = 3e10
"""What NumPy computes a second on one thread, roughly."""
MPNET_PADDING = 1
"""MPNet numbers positions from the one after this on, and gives padding tokens, also those in a text, this one."""
DISTANCE_BUCKETS, MAX_DISTANCE = 32, 128


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """The shape of a transformer, as config.json says it."""

    kind: str
    """bert or mpnet."""
    width: int
    layers: int
    heads: int
    hidden: int
    vocabulary: int
    positions: int
    epsilon: float

    @staticmethod
    def of(values: Mapping[str, Any]) -> TransformerConfig:
        """From the values of a config.json; models that would be computed in another way are refused."""
        kind = str(values.get("model_type"))
        if kind not in _LAYER:
            raise UnknownModelError(f'its architecture is "{kind}"; known: {", ".join(_LAYER)}')
        expected: dict[str, Any] = {
            "hidden_act": "gelu",
            "position_embedding_type": "absolute",
            "relative_attention_num_buckets": DISTANCE_BUCKETS,
            "is_decoder": False,
            "add_cross_attention": False,
            "quantization_config": None,
        }
        for name, value in expected.items():
            if values.get(name, value) != value:
                raise UnknownModelError(f'its {name} is "{values[name]}"; known: {value}')
        try:
            names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
            width, layers, heads, hidden, vocabulary, positions = (
                int(values[name]) for name in (*names, "max_position_embeddings")
            )
            epsilon = float(values.get("layer_norm_eps", 1e-12))
        except (KeyError, TypeError, ValueError) as error:
            raise UnknownModelError(f"its config.json lacks a number: {error!r}") from error
        config = TransformerConfig(kind, width, layers, heads, hidden, vocabulary, positions, epsilon)
        if config.width % config.heads:
            raise UnknownModelError(f"its width {config.width} is not a multiple of its {config.heads} heads")
        return config

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The names of all tensors, as transformers gives them, with their shapes."""
        tables = {"word": self.vocabulary, "position": self.positions}
        if self.kind == "bert":
            tables["token_type"] = -1  # any number of them; the first is used
        found: dict[str, tuple[int, ...]] = {_TABLES.format(name): (rows, self.width) for name, rows in tables.items()}
        sizes = {"widen": (self.hidden, self.width), "narrow": (self.width, self.hidden)}
        parts: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (self.width,)}
        for place in range(self.layers):
            for name, part in (_LAYER[self.kind] | _BOTH).items():
                square = (self.width,) if name.startswith("norm") else (self.width, self.width)
                parts[f"encoder.layer.{place}.{part}"] = sizes.get(name, square)
        parts["pooler.dense"] = (self.width, self.width)
        for part, shape in parts.items():
            found |= {f"{part}.weight": shape, f"{part}.bias": shape[:1]}
        if self.kind == "mpnet":
            found[_DISTANCES] = (DISTANCE_BUCKETS, self.heads)
        return found


class Transformer:
    """Weights in float32, and the states of tokens by them."""

    def __init__(self, config: TransformerConfig, tensors: Mapping[str, Matrix]) -> None:
        """tensors: by the names of `TransformerConfig.shapes`."""
        self.config, self.tensors = config, tensors

    @staticmethod
    def load(folder: Path, config: TransformerConfig) -> Transformer:
        """Read model.safetensors."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        if not (folder / WEIGHTS).is_file():
            raise UnknownModelError(f"it has no {WEIGHTS}")
        try:
            held = load_file(folder / WEIGHTS)
        except (SafetensorError, OSError, TypeError, KeyError, AttributeError) as error:  # a type NumPy does not have
            raise UnknownModelError(f"its {WEIGHTS} cannot be read into NumPy: {error!r}") from error
        found = {}
        for name, shape in config.shapes().items():
            array = held.get(name, held.get(f"{config.kind}.{name}"))
            if array is None:  # transformers would draw it at random
                raise UnknownModelError(f"its {WEIGHTS} has no {name}")
            if array.shape != shape and (shape[0] >= 0 or array.shape[1:] != shape[1:]):
                raise UnknownModelError(f"the shape of {name} is {array.shape}; its config.json says {shape}")
            if array.dtype not in (np.float32, np.float16):
                raise UnknownModelError(f"the type of {name} is {array.dtype}; known: float32, float16")
            found[name] = array.astype(np.float32, copy=False)
        return Transformer(config, found)

    def changed(self, patch: Mapping[str, NDArray[Any]], *, without: Sequence[int] = ()) -> Transformer:
        """What training made of it: without some layers, 1 is the first, and then changed.

        patch: NAME is a tensor as it is now, NAME.a and NAME.b are a change of low rank that is added to it (b @ a).
        The names are those of sentence-transformers, and count the layers that are left.
        """
        kept = [place for place in range(self.config.layers) if place + 1 not in without]
        config = replace(self.config, layers=len(kept))
        places = {f"encoder.layer.{new}.": f"encoder.layer.{old}." for new, old in enumerate(kept)}
        tensors = {}
        for name in config.shapes():
            start = name[: name.index(".", len("encoder.layer.")) + 1] if name.startswith("encoder.layer.") else ""
            tensors[name] = self.tensors[places[start] + name.removeprefix(start) if start else name]
        for name in sorted({name.removesuffix(".a").removesuffix(".b") for name in patch}):
            own = name.removeprefix(PREFIX)
            if own not in tensors:
                raise ArtifactError(f'the changes of an encoder name "{name}", which it does not have')
            if name in patch:
                tensors[own] = patch[name].astype(np.float32)
            else:
                change = patch[f"{name}.b"].astype(np.float32) @ patch[f"{name}.a"].astype(np.float32)
                tensors[own] = tensors[own] + change
        return Transformer(config, tensors)

    def states(self, ids: NDArray[np.int64], offsets: NDArray[np.int64], *, layers: Sequence[int] = ()) -> Matrix:
        """float32[n_tokens, width]: the states of the last layer. Text i owns the tokens offsets[i] to offsets[i + 1].

        layers: the states of these side by side instead; 0 is that of the embeddings. A text has the same states, bit
        for bit, whatever texts are beside it. One thread does all of it; kernels do not hold the interpreter's lock.
        """
        config, n = self.config, len(ids)
        if not n:
            return np.empty((0, config.width * max(1, len(layers))), np.float32)
        if KERNELS.use(n * self._operations / NUMPY_OPERATIONS_PER_S):
            return self._states_by_kernels(ids, offsets, layers)
        with cpu.one_blas_thread():
            alone = [self._states_of_one(ids[start:stop], layers) for start, stop in pairwise(offsets.tolist())]
        return np.concatenate([np.empty((0, config.width * max(1, len(layers))), np.float32), *alone])

    @property
    def _operations(self) -> int:
        """Multiplications and additions of a token."""
        config = self.config
        return 2 * config.layers * config.width * (4 * config.width + 2 * config.hidden)

    def _states_of_one(self, ids: NDArray[np.int64], layers: Sequence[int]) -> Matrix:
        """The states of one text, with NumPy."""
        from lexent.encoders import numpy_transformer

        config, offsets = self.config, np.array([0, len(ids)], np.int64)
        gain, shift = (self.tensors[f"embeddings.LayerNorm.{name}"] for name in ("weight", "bias"))
        x = numpy_transformer.norm(self._embedded(ids, offsets), gain, shift, config.epsilon)
        seen = [x]
        for place in range(max(layers, default=config.layers)):
            held = partial(self._held, place)
            x = numpy_transformer.layer(x, offsets, config.heads, self._distances, config.epsilon, held)
            seen.append(x)
        return np.concatenate([seen[place] for place in layers], axis=1) if layers else x

    def _embedded(self, ids: NDArray[np.int64], offsets: NDArray[np.int64]) -> Matrix:
        """float32[n_tokens, width]: the sums of the rows of the tables."""
        found: Matrix = self.tensors[_TABLES.format("position")][_positions(ids, offsets, kind=self.config.kind)]
        if self.config.kind == "bert":
            found += self.tensors[_TABLES.format("token_type")][0]
        found += self.tensors[_TABLES.format("word")][ids]
        return found

    def _held(self, place: int, part: str, what: str) -> Matrix:
        """A tensor of a layer: of the weights or the biases of one of its parts."""
        return self.tensors[f"encoder.layer.{place}.{(_LAYER[self.config.kind] | _BOTH)[part]}.{what}"]

    def _states_by_kernels(self, ids: NDArray[np.int64], offsets: NDArray[np.int64], layers: Sequence[int]) -> Matrix:
        from lexent.encoders.transformer_kernels import add_and_norm, layer, padded

        config, n = self.config, len(ids)
        embedded = self._embedded(ids, offsets)
        rows, epsilon = padded(n), np.float32(config.epsilon)
        x, states, attended = (np.zeros((rows, config.width), np.float32) for _ in range(3))
        wide, hidden = (np.zeros((rows, size), np.float32) for size in (3 * config.width, config.hidden))
        gain, shift = (self.tensors[f"embeddings.LayerNorm.{name}"] for name in ("weight", "bias"))
        add_and_norm(embedded, np.zeros_like(embedded), n, gain, shift, epsilon, x)
        last = max(layers, default=config.layers)
        seen = {0: x[:n].copy()} if 0 in layers else {}
        for place, weights in enumerate(self._layers[:last], start=1):
            layer(x, offsets, config.heads, self._distances, epsilon, *weights, wide, states, attended, hidden)
            if place in layers:
                seen[place] = x[:n].copy()
        return np.concatenate([seen[place] for place in layers], axis=1) if layers else x[:n]

    @cached_property
    def _layers(self) -> list[Sequence[Matrix]]:
        """The weights of each layer, in the order in which the kernel takes them."""
        from lexent.encoders.transformer_kernels import tiled

        found: list[Sequence[Matrix]] = []
        for place in range(self.config.layers):
            held = partial(self._held, place)
            weights: list[Matrix] = []
            for parts in (("query", "key", "value"), ("merge",), ("norm_1",), ("widen",), ("narrow",), ("norm_2",)):
                matrix = np.concatenate([held(part, "weight") for part in parts])
                bias = np.concatenate([held(part, "bias") for part in parts])
                weights += [matrix if matrix.ndim == 1 else tiled(matrix), bias]
            found.append(weights)
        return found

    @cached_property
    def _distances(self) -> Matrix:
        """float32[heads, 2 * positions + 1]: what MPNet adds to scores; empty for BERT."""
        if self.config.kind != "mpnet":
            return np.empty((0, 0), np.float32)
        after = np.arange(-self.config.positions, self.config.positions + 1)
        return np.ascontiguousarray(self.tensors[_DISTANCES][_bucket(after)].T)


def _exercise() -> None:
    """With arrays of the types of any model: shapes are no part of them."""
    config = TransformerConfig("bert", width=8, layers=1, heads=2, hidden=8, vocabulary=8, positions=8, epsilon=1e-12)
    tensors = {name: np.ones([max(1, one) for one in shape], np.float32) for name, shape in config.shapes().items()}
    Transformer(config, tensors).states(np.arange(3), np.array([0, 3], np.int64))


def _entries() -> Sequence[Any]:
    from lexent.encoders.transformer_kernels import add_and_norm, layer

    return add_and_norm, layer


KERNELS = KernelGroup("encoder", __name__, compile_s=5, exercise=_exercise, entries=_entries)


def _positions(ids: NDArray[np.int64], offsets: NDArray[np.int64], *, kind: str) -> NDArray[np.int64]:
    """int64[n_tokens]: the row of the table of positions for each token."""
    if kind == "bert":
        return np.arange(len(ids)) - np.repeat(offsets[:-1], np.diff(offsets))
    own = ids != MPNET_PADDING
    count = np.cumsum(own)
    before = np.concatenate([[0], count])[offsets[:-1]]
    found: NDArray[np.int64] = (count - np.repeat(before, np.diff(offsets))) * own + MPNET_PADDING
    return found


def _bucket(after: NDArray[np.int64]) -> NDArray[np.int64]:
    """MPNet's bucket of each distance: half of them for tokens after; the larger, the more distances share one."""
    half, exact = DISTANCE_BUCKETS // 2, DISTANCE_BUCKETS // 4
    n = np.abs(after)
    part = np.log(np.maximum(n, 1).astype(np.float32) / exact) / np.log(MAX_DISTANCE / exact).astype(np.float32)
    large = np.minimum(exact + (part * (half - exact)).astype(np.int64), half - 1)
    return np.where(after > 0, half, 0) + np.where(n < exact, n, large)
