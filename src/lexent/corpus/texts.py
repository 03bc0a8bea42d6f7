"""Training text: strings from one or many corpora, streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lexent.corpus.corpus import Corpus, read
from lexent.corpus.lines import lines
from lexent.corpus.readers import prose_paths
from lexent.errors import InputError

PIECE_CHARS = 1000
"""Prose files are cut near this many characters: an encoder reads only the start of a longer text."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Strings to train on; they can be iterated again from the start."""

    corpora: tuple[Corpus, ...]

    def __iter__(self) -> Iterator[str]:
        return (text for _, text in self.by_source())

    def by_source(self) -> Iterator[tuple[int, str]]:
        """The strings, each with the number of the corpus that it is of."""
        for number, corpus in enumerate(self.corpora):
            of_files = corpus.table.unit == "file"
            for text in _pieces(Path(corpus.name)) if of_files else corpus.contents():
                yield number, text

    def count(self) -> int | None:
        """How many strings there are; None when only reading everything would tell."""
        if any(corpus.table.unit == "file" for corpus in self.corpora):
            return None
        counts = [corpus.count() for corpus in self.corpora]
        return None if None in counts else sum(count or 0 for count in counts)


def texts(source: str | Path | Sequence[str | Path], *, text: str | None = None, title: str | None = None) -> Texts:
    """Training strings (title, a space, text) from one path or many; each path is what `read` takes."""
    paths = [source] if isinstance(source, str | Path) else list(source)
    if not paths:
        raise InputError("no training text was given; name at least one file or folder: lexent train TEXTS --out DIR")
    return Texts(tuple(read(Path(path), text=text, title=title) for path in paths))


def _pieces(path: Path) -> Iterator[str]:
    """Paragraphs of prose files; long ones are cut at a line end."""
    for file in prose_paths(path) if path.is_dir() else [path]:
        held: list[str] = []
        for _, line in lines(file):
            if line.strip():
                held.append(line.strip())
            if held and (not line.strip() or sum(map(len, held)) >= PIECE_CHARS):
                yield " ".join(held)
                held = []
        if held:
            yield " ".join(held)
