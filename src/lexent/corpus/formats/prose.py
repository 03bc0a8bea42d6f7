"""Plain text and Markdown, as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from lexent.corpus.formats.parts import Part, SourceFile
from lexent.corpus.lines import unpacked_name


def read_text(file: SourceFile) -> Iterator[Part]:
    """A text, called by the name of its file: a line that begins with # may be anything."""
    yield Part(file.text().strip(), title=PurePath(unpacked_name(file.path.name)).stem)


def read_markdown(file: SourceFile) -> Iterator[Part]:
    """A text in Markdown."""
    yield Part(file.text().strip())
