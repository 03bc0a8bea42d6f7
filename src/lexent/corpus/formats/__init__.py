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
from lexent.corpus.problems import RowError
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


def documents_of(path: Path, *, id: str, encoding: str | None = None) -> Iterator[tuple[int, Document | RowError]]:
    """The documents of a file with their numbers from 0, and the errors of those that cannot be read whole.

    Where a file may hold many, their ids are `id`, # and their number. A document's title is what its file names it, or
    its first heading, or the name of the file, which does not make a document of a file without text.
    """
    format, file = _BY_SUFFIX[suffix_of(path)], SourceFile(path, encoding)
    stem = PurePath(unpacked_name(path.name)).stem
    try:
        for number, part in enumerate(format.read(file)):
            if part.problem:
                yield number, part.problem
            if part.text.strip() or (not part.problem and (format.many or part.title not in ("", stem))):
                text, title = without_title(part.text, part.title)
                new = f"{id}#{number}" if format.many else id
                yield number, Document(new, text, title or ("" if format.many else stem), part.metadata)
            elif not part.problem:
                yield number, _empty(path)
    except RecursionError as error:
        raise file.damaged(suffix_of(path), "it is nested too deeply") from error


def _empty(path: Path) -> RowError:
    message = f"{path}: the file holds no text; fill it in or remove it, or leave it out: --on-error skip"
    return RowError(message, where=str(path), reason="empty text")
