"""Which engine computes the states of a model: the light one, without torch, or torch.

By itself ("auto") the light engine takes queries and few documents, such as the hits whose words are shown; torch takes
documents in bulk, which it encodes half as fast again once it is loaded. Where torch is not installed the light engine
takes all, and torch does where the light one does not know the model. A query has the same states alone and in a batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from lexent import arguments
from lexent.encoders.encoder import DEFAULT, Encoder, batches_with_whole
from lexent.encoders.light import LightEncoder
from lexent.encoders.model_folder import UnknownModelError, check_plain_modules
from lexent.encoders.sentence import SentenceEncoder, embedded_model
from lexent.errors import InputError, MismatchError, NotFoundError
from lexent.extras import is_installed
from lexent.types import Batches, Kind, Level, Tokens, WholeBatches

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

Engine = Literal["auto", "light", "torch"]

VARIABLE = "LEXENT_ENGINE"
"""The environment variable that names the engine."""
TRUST_VARIABLE = "LEXENT_TRUST_ENCODER"
"""The environment variable that, at 1, trusts every encoder that an index names."""
_TRUST = f"--trust-encoder (trust_encoder=True, {TRUST_VARIABLE}=1)"
BULK_TEXTS = 512
"""From so many documents at a time on torch takes them. Up to that the light engine is done before torch is loaded."""
TRAIN = 'pip install "lexent[train]"'
"""What installs torch and sentence-transformers."""
_FILES = ["*.json", "*/config.json", "model.safetensors"]
"""What the light engine reads of a repository."""


def requested(engine: Engine | None = None) -> Engine:
    """The engine that was given, else that of the environment variable, else auto."""
    given = ("engine", engine) if engine is not None else (VARIABLE, os.environ.get(VARIABLE) or "auto")
    return cast(Engine, arguments.choice(*given, get_args(Engine)))


def torch_is_installed() -> bool:
    """Whether torch and sentence-transformers are there; neither is imported."""
    return is_installed("torch", "sentence_transformers")


def open_encoder(
    name: str, *, device: str | None = None, engine: Engine | None = None, trusted: bool = True
) -> Encoder:
    """A model by hub id or folder, with the engine that is requested and can be had.

    One that is not trusted must be on this machine already, and loading it must run no code.
    """
    return chosen(
        name,
        lambda: open_light(name, trusted=trusted),
        lambda: open_with_torch(name, device=device, trusted=trusted),
        device=device,
        engine=engine,
    )


def chosen(
    name: str,
    light: Callable[[], Encoder],
    with_torch: Callable[[], Encoder],
    *,
    device: str | None = None,
    engine: Engine | None = None,
) -> Encoder:
    """What `light` or `with_torch` opens, or both in one; `light` raises `UnknownModelError` where it cannot."""
    choice = requested(engine)
    if choice == "torch":
        return with_torch()
    if choice == "light" and device not in (None, "cpu"):
        raise InputError(f'the light engine computes on the CPU; given: device "{device}"; take engine="torch"')
    try:
        found = light()
    except UnknownModelError as error:
        if choice == "auto" and torch_is_installed():
            opened: Any = with_torch()
            opened.light_refusal = str(error)
            return cast(Encoder, opened)
        remedy = f"unset {VARIABLE}" if torch_is_installed() else TRAIN
        reason = f'the light engine does not know the encoder "{name}": {error}'
        raise InputError(f"{reason}; use torch: {remedy}") from error
    return TwoEngineEncoder(found, with_torch, device=device) if choice == "auto" and torch_is_installed() else found


def open_light(name: str, *, trusted: bool = True) -> LightEncoder:
    """With the light engine, which runs no code of a model, or `UnknownModelError`."""
    return LightEncoder.open(_folder(name, trusted=trusted), id=name)


def open_with_torch(name: str, *, device: str | None = None, trusted: bool = True) -> SentenceEncoder:
    """With torch, where it is installed; of the files that the light engine would read, where those are there."""
    if not torch_is_installed():
        raise NotFoundError(f'the encoder "{name}" needs torch and sentence-transformers here: {TRAIN}')
    try:
        folder = _folder(name, trusted=trusted)
    except UnknownModelError:  # it is to be downloaded
        opened = SentenceEncoder.open(name, device=device)
    else:
        if not trusted and name != DEFAULT:
            _check_inert(folder, name)
        opened = SentenceEncoder.open(name if name == DEFAULT else str(folder), device=device, trusted=trusted)
    opened.id = name
    return opened


def _check_inert(folder: Path, name: str) -> None:
    """Refuse a folder from which torch might run code: pickled weights, or modules and settings of another kind."""
    try:
        check_plain_modules(folder)
    except UnknownModelError as error:
        raise InputError(
            f'the index names the encoder "{name}", and this alone is no reason to load it: {error}; if you trust it: '
            f"{_TRUST}, or name it yourself: --encoder {name}"
        ) from error


def _folder(name: str, *, trusted: bool = True) -> Path:
    """Where a model's files are: the embedded default, a local folder, or a snapshot in the cache of the hub."""
    if name == DEFAULT:
        return embedded_model()
    if Path(name).is_dir():
        return Path(name)
    if not is_installed("huggingface_hub"):
        raise UnknownModelError("there is no folder of that name")
    from huggingface_hub import snapshot_download

    repository = name if "/" in name else f"sentence-transformers/{name}"
    try:
        found = Path(snapshot_download(repository, local_files_only=True))
        if (found / "modules.json").is_file():  # else it may be a part of the repository
            return found
    except (OSError, ValueError):
        pass
    if not trusted:
        raise NotFoundError(
            f'cannot load the encoder "{name}": it is not on this machine, and one that only an index names is '
            f"downloaded where you trust it: {_TRUST}"
        )
    if torch_is_installed():  # which downloads it
        raise UnknownModelError("it is not in the cache of the hub")
    try:
        return Path(snapshot_download(repository, allow_patterns=_FILES))
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise NotFoundError(
            f'cannot load the encoder "{name}": {reason}; give a sentence-transformers id, a local folder, '
            f'or leave it out for the embedded "{DEFAULT}"'
        ) from error


class TwoEngineEncoder:
    """Queries and few documents by the light engine, documents in bulk by torch, which is loaded when these come."""

    def __init__(self, light: Any, with_torch: Callable[[], Any], *, device: str | None = None) -> None:
        """light: an encoder of the light engine. with_torch: opens the same encoder with torch. device: for that."""
        self.light, self._open, self._device = light, with_torch, device
        self.id, self.fingerprint, self.dim = light.id, light.fingerprint, light.dim
        self.prompts, self.max_tokens = light.prompts, light.max_tokens

    @cached_property
    def with_torch(self) -> Any:
        """The same encoder with torch alone."""
        opened = self._open()
        if opened.fingerprint != self.fingerprint:
            raise MismatchError(
                f'torch and the light engine read the encoder "{self.id}" differently ({opened.fingerprint} and '
                f"{self.fingerprint}); use torch alone and report this: export {VARIABLE}=torch"
            )
        return opened

    @property
    def model(self) -> Any:
        """The SentenceTransformer."""
        return self.with_torch.model

    @property
    def device(self) -> torch.device:
        """Where documents in bulk are encoded; all else is on the CPU."""
        import torch

        return torch.device(self._device or ("cuda" if torch.cuda.is_available() else "cpu"))

    def _of(self, kind: Kind, n_texts: int) -> Any:
        return self.light if is_light(self, kind=kind, n_texts=n_texts) else self.with_torch

    def batches(self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True) -> Batches:
        """States of texts, a batch at a time; see `Encoder.batches`."""
        found: Batches = self._of(kind, len(texts)).batches(texts, kind=kind, level=level, specials=specials)
        return found

    def batches_with_whole(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> WholeBatches:
        """As `batches` for tokens, with the pooled states beside them: one pass for both."""
        return batches_with_whole(self._of(kind, len(texts)), texts, kind=kind, specials=specials)

    @property
    def text_tokens(self) -> int:
        """Tokens of a document that it reads at most, beside special tokens and the prompt."""
        found: int = self.light.text_tokens
        return found

    def token_starts(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Where each token of texts begins, to their ends."""
        found: list[NDArray[np.int64]] = self.light.token_starts(texts)
        return found

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens texts have, to their ends."""
        found: list[int] = self.light.token_counts(texts)
        return found

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """The tokens of texts with their places, which are those of both engines; see `Encoder.tokenize`."""
        found: list[Tokens] = self.light.tokenize(texts, kind=kind, specials=specials)
        return found


def is_light(encoder: Encoder, *, kind: Kind, n_texts: int = 1) -> bool:
    """Whether the light engine encodes so many texts of that kind."""
    if isinstance(encoder, TwoEngineEncoder):
        return kind == "query" or n_texts < BULK_TEXTS
    return bool(getattr(encoder, "is_light", False))


@dataclass(frozen=True, slots=True)
class EngineReport:
    """Which engine encodes queries and documents, and why."""

    queries: str
    documents: str
    """In bulk."""
    why: str


def report(encoder: Encoder) -> EngineReport | None:
    """What encodes the texts of an encoder; none for one that is of neither engine."""
    choice = requested()
    given = f"{VARIABLE}={choice}"
    if isinstance(encoder, TwoEngineEncoder):
        return EngineReport("light", "torch", f"torch takes {BULK_TEXTS} documents or more at a time")
    if is_light(encoder, kind="query"):
        return EngineReport("light", "light", given if torch_is_installed() else "torch is not installed")
    refusal = getattr(encoder, "light_refusal", None)
    if refusal is None:
        return None
    if refusal:
        return EngineReport("torch", "torch", f"the light engine does not know this encoder: {refusal}")
    return EngineReport("torch", "torch", given if choice == "torch" else "it was opened with torch")
