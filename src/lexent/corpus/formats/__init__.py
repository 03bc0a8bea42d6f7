"""Files to documents: a module for each format, and which suffix is read by which."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePath

from lexent.corpus.formats import source_code
from lexent.corpus.formats.docx import read_docx
from lexent.corpus.formats.epub import read_epub
from lexent.corpus.formats.html import read_html
from lexent.corpus.formats.mail import read_mailbox, read_message
from lexent.corpus.formats.parts import Part, SourceFile, without_title
from lexent.corpus.formats.pdf import read_pdf
from lexent.corpus.formats.prose import read_markdown, read_text
from lexent.corpus.formats.rst import read_rst
from lexent.corpus.lines import unpacked_name
from lexent.errors import MissingExtraError
from lexent.types import Document


@dataclass(frozen=True, slots=True)
class Format:
    """A file format whose files are documents."""

    suffixes: tuple[str, ...]
    read: Callable[[SourceFile], Iterator[Part]]
    package: str = ""
    """The module of the extra `files` that reading needs."""
    many: bool = False
    """Whether a file holds many documents."""


FORMATS = (
    Format((".txt", ".text", ".log"), read_text),
    Format((".md", ".markdown"), read_markdown),
    Format((".rst",), read_rst),
    Format((".html", ".htm", ".xhtml"), read_html, "lxml"),
    Format((".pdf",), read_pdf, "pypdf"),
    Format((".docx",), read_docx, "lxml"),
    Format((".epub",), read_epub, "lxml"),
    Format((".eml",), read_message),
    Format((".mbox",), read_mailbox, many=True),
    Format(source_code.SUFFIXES, source_code.read_source_code, "pygments"),
)
_BY_SUFFIX = {suffix: format for format in FORMATS for suffix in format.suffixes}
SUFFIXES = tuple(_BY_SUFFIX)


def suffix_of(path: PurePath) -> str:
    """The suffix in lower case, without that of packed files."""
    return PurePath(unpacked_name(path.name)).suffix.lower()


def format_of(path: Path) -> Format | None:
    """The format of a file whose content is documents; None for other files."""
    return _BY_SUFFIX.get(suffix_of(path))


def check_installed(path: Path, *, purpose: str) -> None:
    """A MissingExtraError where the package is missing that reading a file of this suffix needs."""
    needed = _BY_SUFFIX[suffix_of(path)].package
    if needed and find_spec(needed) is None:
        raise MissingExtraError(needed, extra="files", purpose=purpose)


def documents_of(path: Path, *, id: str, encoding: str | None = None) -> Iterator[Document]:
    """The documents of a file. Where it may hold many, their ids are `id`, # and their number from 0.

    A document's title is what its file names it, or its first heading, or the name of the file.
    """
    format = _BY_SUFFIX[suffix_of(path)]
    for number, part in enumerate(format.read(SourceFile(path, encoding))):
        text, title = without_title(part.text, part.title)
        yield Document(
            id=f"{id}#{number}" if format.many else id,
            text=text,
            title=title or ("" if format.many else PurePath(unpacked_name(path.name)).stem),
            metadata=part.metadata,
        )
