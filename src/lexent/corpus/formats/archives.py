"""Members of zip files, for formats that are one (DOCX, EPUB)."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lexent.corpus.formats.parts import SourceFile
from lexent.errors import MissingExtraError

_BROKEN = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, KeyError, ValueError, NotImplementedError,
    RuntimeError,
)  # fmt: skip
"""What reading a damaged or encrypted archive raises."""
MOST_MEMBER_BYTES = 1 << 29
"""A member that is larger is not unpacked: a small file can claim to hold anything."""


@contextmanager
def archive(file: SourceFile, kind: str) -> Iterator[zipfile.ZipFile]:
    """The zip file that a file is; what is wrong with it or with the XML in it is an error that names the file."""
    try:
        from lxml.etree import LxmlError
    except ImportError as error:
        raise MissingExtraError("lxml", extra="files", purpose=f"reading {file.path}") from error
    try:
        with zipfile.ZipFile(io.BytesIO(file.content())) as opened:
            yield opened
    except (*_BROKEN, LxmlError) as error:
        raise file.damaged(kind, error) from error


def member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a member."""
    size = archive.getinfo(name).file_size
    if size > MOST_MEMBER_BYTES:
        raise zipfile.BadZipFile(f"{name} has {size / 1e6:,.0f} MB; allowed: {MOST_MEMBER_BYTES / 1e6:,.0f} MB")
    return archive.read(name)


def xml(archive: zipfile.ZipFile, name: str) -> Any:
    """The root of a member that is XML. Entities are not resolved, and nothing is fetched."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    root = etree.fromstring(member(archive, name), parser)
    if root is None:
        raise zipfile.BadZipFile(f"{name} is empty")
    return root
