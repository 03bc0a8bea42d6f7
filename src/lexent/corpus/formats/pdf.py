"""PDF: the text of the pages, joined. A PDF does not say what is a heading or a paragraph."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from typing import Any

from lexent.corpus.formats.parts import Part, SourceFile, escaped
from lexent.corpus.problems import RowError
from lexent.errors import MissingExtraError

_SPLIT_WORD = re.compile(r"([^\W\d_]{2,})[-\u2010\u00ad]\n([^\W\d_A-Z]\w*)")
"""A word that is cut at the end of a line."""
_LEADERS = re.compile(r"(?: ?\. ?){5,}")
"""The dots of a table of contents."""
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_ENDS_SENTENCE = (".", "!", "?", ":", ";", "\u201d", '"', ")", "\u3002")
_IS_FILE_NAME = re.compile(r"^Microsoft \w+ - |\.(?:docx?|pptx?|xlsx?|tex|dvi|pdf|indd|rtf|odt|qxd)$|^untitled", re.I)
"""Titles that a program wrote by itself."""


def read_pdf(file: SourceFile) -> Iterator[Part]:
    """A document; its title is that of its properties, where it is no file name."""
    try:
        import pypdf
    except ImportError as error:
        raise MissingExtraError("pypdf", extra="files", purpose=f"reading {file.path}") from error
    # Its remarks on odd files go to whoever has set up logging, and not to stderr by themselves.
    logging.getLogger("pypdf").addHandler(logging.NullHandler())
    content = file.content()
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        locked = reader.is_encrypted and not reader.decrypt("")
        pages = [] if locked else [page.extract_text() for page in reader.pages]
        title = "" if locked else _title(reader)
    except pypdf.errors.DependencyError as error:
        raise MissingExtraError(
            "cryptography", extra="files", purpose=f"reading the encrypted file {file.path}"
        ) from error
    except Exception as error:  # of a damaged file the library raises whatever its code runs into
        raise file.damaged("PDF", error) from error
    if locked:
        raise _refused(file, "it is encrypted with a password; remove that: qpdf --decrypt", "encrypted file")
    text = _joined(pages)
    if not text:
        raise _refused(file, "its pages hold no text, only images (a scan?); recognise it: ocrmypdf", "no text")
    yield Part(text, title=title)


def _refused(file: SourceFile, why: str, reason: str) -> RowError:
    return RowError(
        f"{file.path}: {why} IN OUT; or leave the file out: --on-error skip", where=str(file.path), reason=reason
    )


def _title(reader: Any) -> str:
    given = (reader.metadata.title if reader.metadata else None) or ""
    title = " ".join(str(given).split())
    return "" if _IS_FILE_NAME.search(title) else title


def _joined(pages: list[str]) -> str:
    """The text of all pages. A sentence goes on over the end of a page, and words that are cut are made whole."""
    text = ""
    for page in pages:
        lines = [line.rstrip() for line in page.translate(_LIGATURES).replace("\0", "").split("\n")]
        body = "\n".join(lines).strip()
        if body:
            text += ("\n\n" if text.endswith(_ENDS_SENTENCE) else "\n" if text else "") + body
    return escaped(_LEADERS.sub(" … ", _SPLIT_WORD.sub(r"\1\2", text)))
