"""The file of a backup: a tar archive that begins with the names, sizes and checksums of its files.

A backup is data. What is not exactly as it is written here is refused: other names, links, another order, a changed
byte, an end that is missing.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from lexent import artifact
from lexent.errors import ArtifactError
from lexent.indexing.manifest import NAMES_FILE, SEGMENT_FILE, SEGMENT_NAME, SEGMENTS, FilePart, stamped
from lexent.lexicon import user_labels

LISTING = "backup.json"
"""The first file of a backup."""
FORMAT_VERSION = 1
"""The newest form of backup that this version writes and reads."""
REPLACED = (artifact.MANIFEST, user_labels.FILE)
"""Files of an index that are replaced, and not written once. They come first, and are held in memory."""
END = bytes(2 * tarfile.BLOCKSIZE)
"""What ends a tar archive."""
COPY_BYTES = 2**20
"""So many bytes are copied at a time."""
MAX_TIME = 2**33
"""Seconds since 1970 that a header holds in digits, at most."""
REMEDY = "nothing was restored; take another backup: lexent backup INDEX FILE"
_GZIP = b"\x1f\x8b"
_FILE = re.compile(rf"{NAMES_FILE.pattern}|{SEGMENTS}/{SEGMENT_NAME.pattern}/{SEGMENT_FILE.pattern}")


class Listing(BaseModel):
    """What a backup says about itself."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: Literal["index-backup"] = "index-backup"
    format: int = FORMAT_VERSION
    lexent: str
    """The version of Lexent that wrote it."""
    files: dict[str, FilePart]
    """All other files, in the order of the archive."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(part.size for part in self.files.values())

    def to_bytes(self) -> bytes:
        """Its file, with its hash."""
        return artifact.json_bytes(stamped(self.model_dump()))


def header(name: str, size: int, seconds: int) -> bytes:
    """The block before a file: its name is short, so there is one. seconds: the time of the file."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime = size, seconds
    return info.tobuf(tarfile.GNU_FORMAT)


def padding(size: int) -> bytes:
    """What fills the last block of a file."""
    return bytes(-size % tarfile.BLOCKSIZE)


def whole(name: str, data: bytes, seconds: int) -> bytes:
    """A small file as it stands in an archive."""
    return header(name, len(data), seconds) + data + padding(len(data))


def checksum(data: bytes) -> str:
    """Its sha256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


class ArchiveReader:
    """Reads a backup from its start to its end. What it gives is bounded, and checked at its end."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self.path = path
        self._stream, self._ahead = stream, b""
        self._ahead = self.read(len(_GZIP))
        if self._ahead == _GZIP:
            self._stream, self._ahead = _unpacked(stream, self._ahead), b""

    def read(self, size: int) -> bytes:
        """At most so many bytes, fewer only at the end."""
        parts = [self._ahead[:size]]
        rest, self._ahead = size - len(parts[0]), self._ahead[size:]
        try:
            with artifact.read_errors(self.path):
                while rest and (part := self._stream.read(rest)):
                    parts.append(part)
                    rest -= len(part)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self.damaged(f"it is not a whole gzip file ({error})") from error
        return b"".join(parts)

    def damaged(self, what: str) -> ArtifactError:
        """The error of a backup that is not as it was written."""
        return ArtifactError(f'"{self.path}" is damaged: {what}; {REMEDY}')

    def listing(self) -> Listing:
        """What the backup says about itself: the first of its files."""
        block = self.read(tarfile.BLOCKSIZE)
        try:
            found = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            found = tarfile.TarInfo()
        if found.name != LISTING:
            raise ArtifactError(
                f'"{self.path}" is not a backup of an index (no {LISTING} at its start); make one: '
                "lexent backup INDEX FILE"
            )
        self._check_header(block, LISTING, found.size)
        data = self._small(LISTING, found.size)
        try:
            values = artifact.parse_json(data)
            if data != artifact.json_bytes(stamped(values)):
                raise self.damaged(f"{LISTING} changed since it was written")
            artifact.check_format(int(values["format"]), FORMAT_VERSION, path=self.path, by=values.get("lexent"))
            listing = Listing.model_validate(values)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise self.damaged(f"{LISTING} cannot be read ({reason})") from error
        first = [name for name in REPLACED if name in listing.files]
        if first[:1] != [artifact.MANIFEST] or list(listing.files)[: len(first)] != first:
            raise self.damaged(f"{LISTING} does not begin with {artifact.MANIFEST}")
        for name in list(listing.files)[len(first) :]:
            if not _FILE.fullmatch(name):
                raise self.damaged(f"it holds {name!r}, which is no file of an index")
        return listing

    def content(self, name: str, part: FilePart) -> bytes:
        """A small file, the next one of the archive."""
        self._check_header(self.read(tarfile.BLOCKSIZE), name, part.size)
        data = self._small(name, part.size)
        self._check_hash(name, part, checksum(data))
        return data

    def pieces(self, name: str, part: FilePart) -> Iterator[bytes]:
        """The content of a file, the next one of the archive; after it an error where its checksum is another."""
        self._check_header(self.read(tarfile.BLOCKSIZE), name, part.size)
        digest = hashlib.sha256()
        for data in self._data(name, part.size):
            digest.update(data)
            yield data
        self._check_hash(name, part, digest.hexdigest())

    def check_end(self) -> None:
        """Refuse an archive that lacks its end, or goes on behind it."""
        if self.read(len(END)) != END:
            raise self.damaged("its end is missing")
        if self.read(1):
            raise self.damaged("something follows its end")

    def _check_header(self, block: bytes, name: str, size: int) -> None:
        if len(block) < tarfile.BLOCKSIZE:
            raise self.damaged(f"it ends before {name}")
        try:
            found = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise self.damaged(f"the header of {name} cannot be read ({error})") from error
        if found.name != name:
            raise self.damaged(f"it holds {found.name!r} where {name} should be")
        if not 0 <= found.mtime < MAX_TIME or block != header(name, size, int(found.mtime)):
            raise self.damaged(f"the header of {name} is not that of a file of {size:,} bytes")

    def _check_hash(self, name: str, part: FilePart, found: str) -> None:
        if found != part.sha256:
            raise self.damaged(f"{name} changed since it was written")

    def _small(self, name: str, size: int) -> bytes:
        if size > artifact.MAX_JSON_BYTES:
            raise self.damaged(f"{name} has more than {artifact.MAX_JSON_BYTES:,} bytes")
        return b"".join(self._data(name, size))

    def _data(self, name: str, size: int) -> Iterator[bytes]:
        rest = size
        while rest:
            data = self.read(min(rest, COPY_BYTES))
            if not data:
                raise self.damaged(f"it ends within {name}")
            rest -= len(data)
            yield data
        if self.read(len(padding(size))) != padding(size):
            raise self.damaged(f"{name} is not followed by zeros")


class _Ahead(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, first: bytes, stream: IO[bytes]) -> None:
        self._first, self._stream = first, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._first[: len(buffer)] or self._stream.read(len(buffer))
        self._first = self._first[len(data) :] if self._first else b""
        buffer[: len(data)] = data
        return len(data)


def _unpacked(stream: IO[bytes], first: bytes) -> IO[bytes]:
    """The content of a gzip file whose first bytes were read already."""
    return cast("IO[bytes]", gzip.GzipFile(fileobj=io.BufferedReader(_Ahead(first, stream)), mode="rb"))
