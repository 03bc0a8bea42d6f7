"""The encoder and the lexicon of an index: loaded from what a caller gave, and named so that they are found again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

EncoderLike: TypeAlias = "Encoder | str | Path | None"
LexiconLike: TypeAlias = "Lexicon | str | Path | None"
"""The thing itself, its name or folder, or None for the embedded default."""


def load_encoder(given: EncoderLike) -> Encoder:
    from lexent import encoders

    return encoders.load(encoders.DEFAULT if given is None else given)


def load_lexicon(given: LexiconLike) -> Lexicon:
    from lexent.lexicon import load

    return load(given)


def encoder_source(encoder: Encoder) -> str:
    """What loads it from anywhere: its id, or its folder's whole path."""
    from lexent.encoders import DEFAULT

    return encoder.id if encoder.id == DEFAULT else _whole(encoder.id)


def lexicon_source(given: LexiconLike, lexicon: Lexicon) -> str:
    """What loads it from anywhere: its name, or its folder's whole path where it was given by one."""
    return _whole(str(given)) if isinstance(given, str | Path) else lexicon.name


def _whole(name: str) -> str:
    return str(Path(name).absolute()) if Path(name).is_dir() else name
