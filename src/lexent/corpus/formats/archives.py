"""Members of zip files, for formats that are one (DOCX, EPUB)."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lexent.corpus.formats.parts import Part, SourceFile
from lexent.corpus.lines import most_bytes, too_large
from lexent.corpus.problems import RowError
from lexent.errors import MissingExtraError

_BROKEN = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, KeyError, ValueError, NotImplementedError,
    RuntimeError,
)  # fmt: skip
"""What reading a damaged or encrypted archive raises."""
_HARMLESS = frozenset(("ERR_UNDECLARED_ENTITY", "ERR_INVALID_CHAR", "ERR_RESERVED_XML_NAME"))
"""Errors of XML that lose no word: names of characters as in HTML, control characters, a blank at the start."""


class Archive:
    """The members of a zip file. Damage that leaves something to read is noted."""

    def __init__(self, opened: zipfile.ZipFile, path: Path) -> None:
        self._opened, self._path = opened, path
        self._left = most_bytes()
        self.names = frozenset(opened.namelist())
        self.damage: list[str] = []
        """What could not be read, or not to its end."""

    def content(self, name: str) -> bytes:
        """The content of a member. All that are read may have so many bytes as a file may have."""
        if name not in self.names:
            raise zipfile.BadZipFile(f"{name} is missing")
        self._left -= self._opened.getinfo(name).file_size
        if self._left < 0:
            raise too_large(f"{self._path}, {name}")
        return self._opened.read(name)

    def xml(self, name: str) -> Any:
        """The root of a member that is XML, as far as it can be read. Entities are not resolved, nothing is fetched."""
        from lxml import etree

        parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
        root = etree.fromstring(self.content(name), parser)
        if root is None:
            raise zipfile.BadZipFile(f"{name} is empty")
        for entry in parser.error_log:
            if entry.level == etree.ErrorLevels.FATAL and not _is_harmless(entry):
                self.damage.append(f"{name}, line {entry.line}: {entry.message}")
                break
        return root

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Notes what is wrong with a member without which the others can be read."""
        from lxml.etree import LxmlError

        try:
            yield
        except (*_BROKEN, LxmlError, RowError) as error:
            self.damage.append(str(error) or type(error).__name__)


def _is_harmless(entry: Any) -> bool:
    """Whether an error of XML loses no word; an & that stands for itself does not, either."""
    lone_sign = entry.type_name == "ERR_NAME_REQUIRED" and "EntityRef" in entry.message
    return lone_sign or entry.type_name in _HARMLESS


@contextmanager
def archive(file: SourceFile, kind: str) -> Iterator[Archive]:
    """The zip file that a file is; what is wrong with it or with the XML in it is an error that names the file."""
    try:
        from lxml.etree import LxmlError
    except ImportError as error:
        raise MissingExtraError("lxml", extra="files", purpose=f"reading {file.path}") from error
    try:
        with zipfile.ZipFile(io.BytesIO(file.content())) as opened:
            yield Archive(opened, file.path)
    except (RecursionError, RowError):
        raise
    except (*_BROKEN, LxmlError) as error:
        raise file.damaged(kind, error) from error


def part(file: SourceFile, kind: str, text: str, title: str, damage: list[str]) -> Part:
    """What an archive gives, with the first damage as a problem."""
    if not damage:
        return Part(text, title)
    error = file.damaged_in_part(kind, damage[0]) if text.strip() else file.damaged(kind, damage[0])
    return Part(text, title, problem=error)
