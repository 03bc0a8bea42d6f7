"""EPUB: the chapters of a book in reading order, as pages of HTML."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lexent.corpus.encodings import decoded
from lexent.corpus.formats.archives import Archive, archive, part
from lexent.corpus.formats.html import page
from lexent.corpus.formats.parts import Part, SourceFile, joined
from lexent.corpus.problems import RowError

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"


def read_epub(file: SourceFile) -> Iterator[Part]:
    """A book as one text, without chapters that cannot be read; its title is that of its package."""
    with archive(file, "EPUB") as book:
        packages = [found.get("full-path") for found in book.xml(_CONTAINER).iter("{*}rootfile")]
        if not packages:
            raise zipfile.BadZipFile(f"{_CONTAINER} names no package")
        package = book.xml(packages[0])
        chapters = _chapters(package, posixpath.dirname(packages[0]))
        locked = _locked(book)
        if locked & set(chapters):
            raise RowError(
                f"{file.path}: its text is encrypted (DRM), and cannot be read; give a copy without that protection",
                where=str(file.path),
                reason="encrypted file",
            )
        texts: list[str] = []
        for name in chapters:
            with book.noted():
                texts.append(page(decoded(book.content(name), Path(name)), name).text)
        titles = (" ".join("".join(found.itertext()).split()) for found in package.iter("{*}title"))
    yield part(file, "EPUB", joined(texts), next(filter(None, titles), ""), book.damage)


def _chapters(package: Any, folder: str) -> list[str]:
    """The members of the spine, in reading order."""
    pages = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        for item in package.iter("{*}item")
        if "html" in item.get("media-type", "")
    }
    return [pages[item.get("idref")] for item in package.iter("{*}itemref") if item.get("idref") in pages]


def _locked(book: Archive) -> set[str]:
    """The members that are encrypted. Fonts often are, in books that can be read."""
    if _ENCRYPTION not in book.names:
        return set()
    return {unquote(found.get("URI", "")) for found in book.xml(_ENCRYPTION).iter("{*}CipherReference")}
