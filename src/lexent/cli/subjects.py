"""A lexicon, by its folder, by name, or by an index that uses it; and the texts that it is looked at with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli.console import say

if TYPE_CHECKING:
    from lexent.cli.options import TextColumns
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

Sample = Annotated[
    int, typer.Option("--sample", min=10, help="Look at this many texts at most, drawn evenly from all.")
]
Seed = Annotated[int, typer.Option("--seed", help="Another number draws other texts and examples.")]


@dataclass(frozen=True, slots=True)
class Subject:
    """A lexicon and the encoder that it is for."""

    lexicon: Lexicon
    encoder: Encoder


def subject_of(source: str, *, encoder: str | None = None) -> Subject:
    """From a lexicon's folder or name, or from an index. An index knows its encoder; a lexicon names it."""
    from lexent.lexicon import load
    from lexent.models import load_encoder

    if _is_index(Path(source)):
        from lexent.engine import Index

        with Index.open(source, encoder=encoder) as index:
            return Subject(index.lexicon, index.encoder)
    lexicon = load(source)
    return Subject(lexicon, load_encoder(encoder if encoder is not None else lexicon.encoder_id))


def texts_of(paths: Sequence[Path], columns: TextColumns, *, sample: int) -> list[str]:
    """Texts from files or folders, none of them twice or empty."""
    from lexent.cli.train.app import sampled
    from lexent.corpus import texts as read

    given = read(paths, text=columns.text, title=columns.title)
    count = given.count()
    held = list(dict.fromkeys(one for one in sampled(given, sample, count=count) if one.strip()))
    of = f" of {count:,}" if count and count != len(held) else ""
    say(f"found    {len(held):,}{of} texts")
    return held


def _is_index(folder: Path) -> bool:
    from lexent.artifact import MANIFEST

    try:
        return bool(json.loads((folder / MANIFEST).read_bytes())["kind"] == "index")
    except (OSError, ValueError, KeyError, TypeError):
        return False
