"""Files to an index, in one call."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lexent.corpus import read
from lexent.corpus.problems import OnError, summary
from lexent.engine import Index
from lexent.errors import SkippedWarning
from lexent.models import EncoderLike, LexiconLike
from lexent.progress import Report
from lexent.recipes import DEFAULT, Recipe

if TYPE_CHECKING:
    from lexent.corpus.sources import Source


def index(
    source: Source,
    *,
    out: str | Path,
    encoder: EncoderLike = None,
    lexicon: LexiconLike = None,
    recipe: str | Recipe = DEFAULT,
    text: str | None = None,
    title: str | None = None,
    id: str | None = None,
    encoding: str | None = None,
    on_error: OnError = "stop",
    extras: str | Sequence[str] = (),
    overwrite: bool = False,
    resume: bool = True,
    progress: Report = None,
) -> Index:
    """Indexes a corpus into the folder `out` and opens it.

    source: a file or folder, a list of those, a data frame, or documents, dicts or strings. `lexent.read` reads it,
    with text, title, id (the columns), encoding and on_error. encoder, lexicon: the embedded default where not given.
    extras: what to keep for comparison, "dense" or "lexical". progress: True for a bar with the time that is left, or a
    function that is called with the number of documents that were just finished.
    """
    corpus = read(source, text=text, title=title, id=id, encoding=encoding, on_error=on_error)
    built = Index.build(
        corpus,
        out=out,
        encoder=encoder,
        lexicon=lexicon,
        recipe=recipe,
        extras=extras,
        progress=progress,
        overwrite=overwrite,
        resume=resume,
    )
    if corpus.problems and corpus is not source:
        warnings.warn(
            f"{summary(corpus.problems)}; the first: {corpus.problems[0]}; to have all: corpus = lexent.read(...), "
            "lexent.index(corpus, ...), corpus.problems",
            SkippedWarning,
            stacklevel=2,
        )
    return built
