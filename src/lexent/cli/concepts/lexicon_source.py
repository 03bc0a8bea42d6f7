"""A lexicon and its encoder, by the lexicon's folder, by name, or by an index that uses it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lexent.cli.info import read_json

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon


def lexicon_and_encoder(source: str, *, encoder: str | None = None) -> tuple[Lexicon, Encoder]:
    """From a lexicon's folder or name, or from an index. An index knows its encoder; a lexicon names it."""
    from lexent.artifact import MANIFEST
    from lexent.lexicon import load
    from lexent.models import load_encoder

    if read_json(Path(source) / MANIFEST).get("kind") == "index":
        from lexent.engine import Index

        with Index.open(source, encoder=encoder) as index:
            return index.lexicon, index.encoder
    lexicon = load(source)
    return lexicon, load_encoder(encoder if encoder is not None else lexicon.encoder_id)
