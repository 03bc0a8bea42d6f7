"""The index of the standard library's docstrings: built once, kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from lexent import artifact, recipes
from lexent.demo.docstrings import MAX_CHARS, MAX_ENTRIES, MIN_CHARS, collect
from lexent.errors import InputError, LexentError, WriteError
from lexent.evaluation import cache

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.engine import Index
    from lexent.lexicon import Lexicon

RECIPE = "latent-terms"
"""The demo's questions share few words with their answers: concepts alone find more of them."""
VERSION = 1
"""Counted up when other entries are collected."""


@dataclass(frozen=True, slots=True)
class Library:
    """The demo's index, and what it took."""

    index: Index
    seconds: float
    """Time to build it; 0 where it was there already."""


def open_library(
    *,
    encoder: Encoder,
    lexicon: Lexicon,
    say: Callable[[str], None],
    progress: Callable[[int], Callable[[int], None]] | None = None,
    limit: int | None = None,
) -> Library:
    """The index of this Python and lexicon, from the cache folder or built now.

    progress: called with the number of docstrings, it gives what is called with each count that is done.
    """
    from lexent.engine import Index

    limit = limit or MAX_ENTRIES
    place = _place(encoder, lexicon, limit)
    if place.exists():
        try:
            return Library(Index.open(place, encoder=encoder, lexicon=lexicon), 0.0)
        except LexentError:
            pass  # damaged or of an older version: built again
    start = perf_counter()
    documents = collect(limit=limit)
    say(f"{len(documents):,} docstrings of Python {platform.python_version()}'s standard library")

    def build(out: Path) -> Index:
        advance = progress(len(documents)) if progress is not None else None
        return Index.build(
            documents, out=out, encoder=encoder, lexicon=lexicon, recipe=RECIPE, progress=advance, overwrite=True
        )

    try:
        index = build(_writable(place))
    except (WriteError, InputError) as error:  # the cache folder is no place to write
        folder = Path(tempfile.mkdtemp(prefix="lexent-demo-"))
        say(f"{error}; using {folder}")
        index = build(folder / place.name)
    return Library(index, perf_counter() - start)


def _place(encoder: Encoder, lexicon: Lexicon, limit: int) -> Path:
    """Named after everything that the index depends on, so that one which exists is the right one."""
    version = platform.python_version()
    parts = [VERSION, limit, MIN_CHARS, MAX_CHARS, encoder.fingerprint, lexicon.hash]
    settings = json.dumps([*parts, recipes.get(RECIPE).to_dict()], sort_keys=True)
    mark = hashlib.sha256(settings.encode()).hexdigest()[:8]
    return cache.folder().parent / "demo" / f"python-{version}-{mark}.lexent"


def _writable(place: Path) -> Path:
    """Refuses at once what would be refused after half a minute of encoding."""
    with artifact.disk_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place.parent):
            pass
    return place
