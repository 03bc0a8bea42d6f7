"""Lines of a file, plain or gzipped, as bytes and as text. What cannot be read is named by file, line and byte."""

from __future__ import annotations

import gzip
import shlex
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from lexent.errors import InputError, NotFoundError

BOM = b"\xef\xbb\xbf"
"""Some Windows programs put this before UTF-8 text."""


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked when its name ends in .gz."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield cast("IO[bytes]", file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a whole gzip file ({error}); fetch or pack it again: gzip FILE") from error
    except FileNotFoundError as error:
        raise NotFoundError(f"no such file: {path}; check the path: ls {_quoted(path.parent)}") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder; give a file that is in it: ls {_quoted(path)}") from error
    except PermissionError as error:
        raise InputError(f"{path}: no permission to read it; allow it: chmod u+r {_quoted(path)}") from error


def raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Line numbers, from 1, with the bytes of each line and its line end."""
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            yield number, line.removeprefix(BOM) if number == 1 else line


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, with each line as text and its line end."""
    for number, line in raw_lines(path):
        yield number, decoded(line, path, number)


def decoded(line: bytes, path: Path, number: int) -> str:
    """The line as text; an InputError that says which byte is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        # UTF-16 files start with this mark, and UTF-16 text holds a zero byte at almost every second place
        utf16 = line.startswith((b"\xff\xfe", b"\xfe\xff")) or line.count(0) > len(line) // 4
        raise InputError(
            f"{path}, line {number}, byte {error.start + 1} of the line (0x{line[error.start]:02X}): not UTF-8 text; "
            f"convert the file, and keep it as it is beside: {_iconv(path, 'UTF-16' if utf16 else 'WINDOWS-1252')}"
        ) from error


def show_line(path: Path, number: int) -> str:
    """What to type to see that line."""
    packed = path.suffix.lower() == ".gz"
    return f"zcat {_quoted(path)} | sed -n {number}p" if packed else f"sed -n {number}p {_quoted(path)}"


def _iconv(path: Path, encoding: str) -> str:
    """Puts the text as UTF-8 in the file's place; the file itself gets a name that no reader takes for a document."""
    file, kept = _quoted(path), _quoted(path.with_name(f"{path.name}.orig"))
    command = f"iconv -f {encoding} -t UTF-8"
    if path.suffix.lower() == ".gz":
        return f"mv {file} {kept} && gunzip -c < {kept} | {command} | gzip > {file}"
    return f"mv {file} {kept} && {command} {kept} > {file}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
