"""Bytes and lines of a file, plain or packed (.gz, .zst). What cannot be read is named by file, line and byte."""

from __future__ import annotations

import gzip
import io
import os
import shlex
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, AnyStr, NamedTuple, cast

from lexent import arguments
from lexent.corpus.encodings import BAD_BYTES, MARK_BYTES, UTF8, bad_byte, check_mark, is_wide, marked, undecodable
from lexent.corpus.problems import RowError
from lexent.errors import InputError, MissingExtraError, NotFoundError

BOM = b"\xef\xbb\xbf"
"""Some Windows programs put this before UTF-8 text."""
PACKED = (".gz", ".zst")
"""Suffixes of packed files."""
PACKED_BYTES = 1 << 14
"""So many bytes of a zstd file are unpacked at once."""
SIZE_VARIABLE, DEFAULT_MOST_MB = "LEXENT_MAX_DOCUMENT_MB", 512
"""The environment variable that says how large one row or file may be, in megabytes, and what counts without it."""


class Line(NamedTuple):
    """A line of a file, with its line end."""

    number: int
    """From 1."""
    text: str
    error: RowError | None = None
    """Set where some bytes are no text of the encoding."""


def unpacked_name(name: str) -> str:
    """The name of a file without the suffix that says how it is packed."""
    packed = next((suffix for suffix in PACKED if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(packed)]


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked when its name ends in .gz or .zst."""
    suffix = path.suffix.lower()
    broken: tuple[type[Exception], ...] = (gzip.BadGzipFile, zlib.error)
    opener: Callable[[Path], Any] = gzip.open
    if suffix == ".zst":
        broken, opener = _zstd(path)
    try:
        with opener(path) if suffix in PACKED else path.open("rb") as file:
            yield cast("IO[bytes]", file)
    except (EOFError, *broken) as error:  # type: ignore[misc]
        kind = "zstd" if suffix == ".zst" else "gzip"
        raise RowError(
            f"{path}: not a whole {kind} file ({error}); fetch or pack it again: {kind} FILE",
            where=str(path),
            reason="damaged file",
        ) from error
    except FileNotFoundError as error:
        raise NotFoundError(f"no such file: {path}; check the path: ls {_quoted(path.parent)}") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder; give a file that is in it: ls {_quoted(path)}") from error
    except PermissionError as error:
        raise RowError(
            f"{path}: no permission to read it; allow it: chmod u+r {_quoted(path)}",
            where=str(path),
            reason="no permission",
        ) from error


def most_bytes() -> int:
    """How many bytes one row, or one file that is read as a whole, may have: a small packed file can hold anything."""
    given = os.environ.get(SIZE_VARIABLE, "").strip() or str(DEFAULT_MOST_MB)
    if not (given.isascii() and given.isdecimal() and int(given) >= 1):
        allowed = f"a whole number of megabytes: export {SIZE_VARIABLE}={DEFAULT_MOST_MB}"
        raise arguments.refused(SIZE_VARIABLE, given, allowed)
    return int(given) * 1_000_000


def too_large(where: str) -> RowError:
    """The error for a row or file above the limit."""
    allowed = most_bytes() // 1_000_000
    message = f"{where}: larger than {allowed:,} MB; if that is right, allow it: export {SIZE_VARIABLE}={10 * allowed}"
    return RowError(message, where=where, reason="too large")


def whole(path: Path) -> bytes:
    """All bytes of a file, unpacked."""
    most = most_bytes()
    with opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise too_large(str(path))
    return content


def each_line(file: IO[AnyStr], path: Path) -> Iterator[tuple[int, AnyStr]]:
    """The lines of a file, numbered from 1. Nothing after one that is too large can be read."""
    most, number = most_bytes(), 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            raise too_large(f"{path}, line {number}")
        yield number, line


def raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Line numbers, from 1, with the bytes of each line and its line end."""
    with opened(path) as file:
        for number, line in each_line(file, path):
            yield number, line.removeprefix(BOM) if number == 1 else line


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, with each line as text and its line end. The file must be UTF-8."""
    for number, line in raw_lines(path):
        yield number, decoded(line, path, number)


def text_lines(path: Path, encoding: str | None = None) -> Iterator[Line]:
    """The lines of a file in an encoding; a byte order mark goes before it, and UTF-8 where neither is given.

    A line with bytes that are no text has an error, and the lines after it are given none the less.
    """
    with opened(path) as file:
        start = cast(Any, file).peek(MARK_BYTES)[:MARK_BYTES]
        used = marked(start) or encoding or UTF8
        check_mark(start, used, path)
        if used.startswith(UTF8):
            for number, raw in each_line(file, path):
                yield _utf8_line(raw.removeprefix(BOM) if number == 1 else raw, path, number)
            return
        for number, text in each_line(io.TextIOWrapper(file, used, errors=BAD_BYTES, newline="\n"), path):
            place = bad_byte(text)
            error = None
            if place is not None:
                before = text[:place].encode(used, "replace")
                error = undecodable(before + bytes([ord(text[place]) & 0xFF]), len(before), path, number, used)
            yield Line(number, text, error)


def decoded(line: bytes, path: Path, number: int) -> str:
    """The line as text; an InputError that says which byte is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        # UTF-16 files start with this mark, and UTF-16 text holds a zero byte at almost every second place
        utf16 = line.startswith((b"\xff\xfe", b"\xfe\xff")) or is_wide(line)
        raise InputError(
            f"{path}, line {number}, byte {error.start + 1} of the line (0x{line[error.start]:02X}): not UTF-8 text; "
            f"convert the file, and keep it as it is beside: {_iconv(path, 'UTF-16' if utf16 else 'WINDOWS-1252')}"
        ) from error


def show_line(path: Path, number: int) -> str:
    """What to type to see that line."""
    unpack = {".gz": "zcat", ".zst": "zstdcat"}.get(path.suffix.lower())
    return f"{unpack} {_quoted(path)} | sed -n {number}p" if unpack else f"sed -n {number}p {_quoted(path)}"


def _utf8_line(raw: bytes, path: Path, number: int) -> Line:
    if is_wide(raw):
        return Line(number, raw.decode(errors="replace"), undecodable(raw, raw.index(0), path, number, UTF8))
    try:
        return Line(number, raw.decode())
    except UnicodeDecodeError as error:
        return Line(number, raw.decode(errors="replace"), undecodable(raw, error.start, path, number, UTF8))


def _zstd(path: Path) -> tuple[tuple[type[Exception], ...], Callable[[Path], Any]]:
    """The errors of a damaged zstd file, and what opens one: Python's own module, or the package."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        return (zstd.ZstdError,), zstd.open
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("zstandard", extra="files", purpose=f"reading {path}") from error
    return (zstandard.ZstdError,), lambda path: io.BufferedReader(_WholeFrames(zstandard, path))


class _WholeFrames(io.RawIOBase):
    """The bytes of a zstd file; an EOFError where its last frame is not whole."""

    def __init__(self, zstandard: Any, path: Path) -> None:
        self._file = path.open("rb")
        self._new = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._packed = b""
        self._held = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._held:
            packed = self._packed or self._file.read(PACKED_BYTES)
            if not packed:
                if self._frame is not None:
                    raise EOFError("the last frame is cut off")
                return 0
            self._frame = self._frame or self._new()
            self._held, self._packed = memoryview(self._frame.decompress(packed)), b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        size = min(len(buffer), len(self._held))
        buffer[:size], self._held = self._held[:size], self._held[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def _iconv(path: Path, encoding: str) -> str:
    """Puts the text as UTF-8 in the file's place; the file itself gets a name that no reader takes for a document."""
    file, kept = _quoted(path), _quoted(path.with_name(f"{path.name}.orig"))
    command = f"iconv -f {encoding} -t UTF-8"
    if path.suffix.lower() == ".gz":
        return f"mv {file} {kept} && gunzip -c < {kept} | {command} | gzip > {file}"
    return f"mv {file} {kept} && {command} {kept} > {file}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
