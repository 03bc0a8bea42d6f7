"""Files to an index, in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lexent.corpus import read
from lexent.engine import Index
from lexent.models import EncoderLike, LexiconLike

if TYPE_CHECKING:
    from lexent.corpus.corpus import Source
    from lexent.recipes import Recipe


def index(
    source: Source,
    *,
    out: str | Path,
    encoder: EncoderLike = None,
    lexicon: LexiconLike = None,
    recipe: str | Recipe = "latent-terms",
    text: str | None = None,
    title: str | None = None,
    id: str | None = None,
    extras: str | Sequence[str] = (),
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Index:
    """Indexes a corpus into the folder `out` and opens it.

    source: a file or folder, or a list of those (see `lexent.corpus.read`), or documents, dicts or strings. text,
    title, id: the columns to use, guessed where not named. encoder, lexicon: the embedded default where not given.
    extras: what to keep for comparison, "dense" or "lexical". progress: called with the number of documents that were
    just finished.
    """
    return Index.build(
        read(source, text=text, title=title, id=id),
        out=out,
        encoder=encoder,
        lexicon=lexicon,
        recipe=recipe,
        extras=extras,
        progress=progress,
        overwrite=overwrite,
    )
