"""Encoders and lexicons by name: loaded from what a caller gave, and named so that they are found again."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from lexent import adapters, arguments
from lexent import lexicon as lexicons
from lexent.adapters.encoder import AdaptedEncoder
from lexent.artifact import is_kind
from lexent.encoders import DEFAULT, Encoder, SentenceEncoder, TinyEncoder
from lexent.encoders.buckets import FOLDER, BucketEncoder
from lexent.encoders.engines import TRUST_VARIABLE, Engine, TwoEngineEncoder, open_encoder
from lexent.errors import InputError
from lexent.lexicon import Lexicon

if TYPE_CHECKING:
    from lexent.recipes import Recipe

EncoderLike: TypeAlias = Encoder | str | Path | None
LexiconLike: TypeAlias = Lexicon | str | Path | None
"""The thing itself, its name or folder, or None for the embedded default."""


def load_encoder(
    encoder: EncoderLike | Any = None,
    *,
    device: str | None = None,
    engine: Engine | None = None,
    trusted: bool = True,
) -> Encoder:
    """An encoder from a sentence-transformers id, a local folder, a SentenceTransformer object or an Encoder.

    A folder may also be an adapter's: then it is the adapter's encoder, with the adapter behind it; or that of a
    lexicon, or a shipped lexicon's name, where its encoder was trained with it. "tiny" is the deterministic encoder of
    the fast tests. The embedded default where none is given.

    engine: "light" is without torch and encodes a query sooner; "torch" is for bulk work and GPUs; "auto" takes the
    first for queries and few documents, the second for documents in bulk. By default what the environment variable
    LEXENT_ENGINE says, else auto.

    trusted: False where an index names it, and not the caller: then nothing is downloaded, and none of a model's code
    or pickled weights is loaded.
    """
    arguments.text_or_none("device", device)
    if engine is not None:
        arguments.choice("engine", engine, get_args(Engine))
    if encoder is None:
        encoder = DEFAULT
    if isinstance(encoder, str | Path):
        arguments.path("encoder", encoder, allowed="a sentence-transformers id, or a folder")
        trusted = arguments.flag("trusted", trusted) or os.environ.get(TRUST_VARIABLE) == "1"
        return _by_name(encoder, device=device, engine=engine, trusted=trusted)
    if isinstance(encoder, TwoEngineEncoder) and engine in ("light", "torch"):
        wanted: Encoder = encoder.light if engine == "light" else encoder.with_torch
        return wanted
    if isinstance(encoder, Encoder):
        return encoder
    if hasattr(encoder, "tokenizer") and hasattr(encoder, "encode"):
        # A copy: the caller's model stays in its precision and on its device.
        return SentenceEncoder(deepcopy(encoder), id=_id_of(encoder), device=device)
    raise InputError(
        f"an encoder is a sentence-transformers id, a folder, a SentenceTransformer or a lexent Encoder; "
        f"given: {type(encoder).__name__}"
    )


def _by_name(name: str | Path, *, device: str | None, engine: Engine | None, trusted: bool) -> Encoder:
    if name == TinyEncoder.id:
        return TinyEncoder()
    if is_kind(Path(name), "adapter"):
        adapter = adapters.load(name)
        base = load_encoder(adapter.info.encoder_id, device=device, engine=engine, trusted=trusted)
        return AdaptedEncoder(base, adapter, id=str(name))
    folder = Path(name) if is_kind(Path(name), "lexicon") else lexicons.shipped().get(str(name))
    if folder is not None and (folder / FOLDER).is_dir():  # a lexicon that was trained together with its encoder
        return BucketEncoder.open(folder, id=str(name), device=device, engine=engine, trusted=trusted)
    return open_encoder(str(name), device=device, engine=engine, trusted=trusted)


def _id_of(model: Any) -> str:
    card = getattr(model, "model_card_data", None)
    return str(getattr(card, "base_model", None) or getattr(model, "name_or_path", None) or "sentence-transformer")


def load_lexicon(given: LexiconLike, *, recipe: Recipe | None = None) -> Lexicon:
    """A lexicon by name or folder; where none is given, the shipped one for the recipe."""
    return lexicons.load(given, recipe=recipe)


def encoder_source(encoder: Encoder) -> str:
    """What loads it from anywhere: its id, or the absolute path of its folder."""
    return encoder.id if encoder.id == DEFAULT else _absolute(encoder.id)


def lexicon_source(given: LexiconLike, lexicon: Lexicon) -> str:
    """What loads it from anywhere: its name, or the absolute path of its folder where it was given by one."""
    return _absolute(str(given)) if isinstance(given, str | Path) else lexicon.name


def _absolute(name: str) -> str:
    return str(Path(name).absolute()) if Path(name).is_dir() else name
