"""Training text: strings from one or many corpora, streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from lexent.corpus.corpus import Corpus
from lexent.corpus.problems import OnError
from lexent.corpus.sources import read
from lexent.errors import InputError
from lexent.types import Document

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
            for document in corpus.training_documents():
                for text in _pieces(document) if of_files else (document.content,):
                    yield number, text

    def count(self) -> int | None:
        """How many strings there are; None when only reading everything would tell."""
        if any(corpus.table.unit == "file" for corpus in self.corpora):
            return None
        counts = [corpus.count() for corpus in self.corpora]
        return None if None in counts else sum(count or 0 for count in counts)


def texts(
    source: str | Path | Sequence[str | Path],
    *,
    text: str | None = None,
    title: str | None = None,
    encoding: str | None = None,
    on_error: OnError = "stop",
) -> Texts:
    """Training strings (title, a space, text) from one path or many; each path is what `read` takes."""
    paths = [source] if isinstance(source, str | Path) else list(source)
    if not paths:
        raise InputError("no training text was given; name at least one file or folder: lexent train TEXTS --out DIR")
    corpora = (read(Path(path), text=text, title=title, encoding=encoding, on_error=on_error) for path in paths)
    return Texts(tuple(corpora))


def _pieces(document: Document) -> Iterator[str]:
    """Title and paragraphs of a file; long ones are cut at a line end. A title that is the file's name is no text."""
    if document.title and document.title not in (PurePath(document.id).stem, PurePath(document.id).name):
        yield document.title
    held: list[str] = []
    for line in [*document.text.split("\n"), ""]:
        if line.strip():
            held.append(line.strip())
        if held and (not line.strip() or sum(map(len, held)) >= PIECE_CHARS):
            yield " ".join(held)
            held = []
