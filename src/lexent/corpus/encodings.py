"""Bytes to text: the encoding that is named, that of a byte order mark, or UTF-8."""

from __future__ import annotations

import codecs
import re
import shlex
from pathlib import Path

from lexent.corpus.problems import RowError
from lexent.errors import InputError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
MARK_BYTES = 4
"""Bytes of the longest byte order mark."""
_LOOKED_AT = 4096
"""Bytes at the start of a file that tell whether it is UTF-16 without a mark."""
UTF8 = "utf-8"
BAD_BYTES = "lexent-bad-bytes"
"""The error handler that puts half a surrogate pair in the place of each byte that is no text."""
_HALF_PAIR = re.compile("[\udc00-\udcff]")


def checked(encoding: str | None) -> str | None:
    """The name of an encoding, or None; an InputError where Python does not know it."""
    if encoding is None:
        return None
    try:
        known = codecs.lookup(encoding)
        known.incrementaldecoder(BAD_BYTES).decode(b"a")  # some, such as idna, have no use for bad bytes
    except (LookupError, ValueError, TypeError, AssertionError):
        raise InputError(
            f'encoding is "{encoding}"; allowed: an encoding that Python knows, such as utf-8, cp1252 (Western '
            f"Windows), latin-1, utf-16, cp1251 (Cyrillic), shift_jis, gb18030; write --encoding cp1252"
        ) from None
    return known.name


def marked(start: bytes) -> str | None:
    """The encoding that a byte order mark names at the start of a file; None without a mark."""
    return next((name for mark, name in _MARKS if start.startswith(mark)), None)


def decoded(content: bytes, path: Path, encoding: str | None = None) -> str:
    """The text of a whole file, without a byte order mark. A RowError names the first line that is no text."""
    used = marked(content[:MARK_BYTES]) or encoding or UTF8
    head = content[:_LOOKED_AT]
    if used == UTF8 and is_wide(head):
        raise undecodable(head, head.index(0), path, 1, UTF8)
    check_mark(content[:MARK_BYTES], used, path)
    try:
        return content.decode(used).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(used, "replace")
        start = content.rfind(b"\n", 0, error.start) + 1
        end = content.find(b"\n", error.start)
        line = content[start : end if end > 0 else None]
        raise undecodable(line, error.start - start, path, before.count("\n") + 1, used) from error


def check_mark(start: bytes, encoding: str, path: Path) -> None:
    """A RowError where an encoding needs a byte order mark, and the file has none."""
    if encoding in ("utf-16", "utf-32") and start and marked(start) is None:
        raise RowError(
            f"{path}: {encoding} text begins with a byte order mark, and this file has none; name the order: "
            f"--encoding {encoding}-le (Windows) or --encoding {encoding}-be; --on-error skip leaves the file out",
            where=str(path),
            reason="undecodable bytes",
        )


def is_wide(line: bytes) -> bool:
    """Whether about half of the bytes or more are zero: UTF-16 or UTF-32. A few are characters of UTF-8."""
    return b"\0" in line and 5 * line.count(0) >= 2 * len(line)


def undecodable(line: bytes, place: int, path: Path, number: int, encoding: str) -> RowError:
    """The error for a line that is no text of its encoding. place: of the first bad byte in the line."""
    where = f"{path}, line {number}"
    line = line if place < len(line) else line + b"\n"  # the line end itself may be half a character
    known = "UTF-8" if encoding.startswith(UTF8) else encoding
    guess = guessed(line)
    say = f'name its encoding: --encoding {guess} (in Python encoding="{guess}")'
    if guess == encoding:
        say = f"mend or remove that line; to see it: sed -n {number}p {shlex.quote(str(path))}"
    return RowError(
        f"{where}, byte {place + 1} of the line (0x{line[place]:02X}): not {known} text; {say}; "
        f"--on-error skip leaves it out",
        where=where,
        reason="undecodable bytes",
    )


def guessed(line: bytes) -> str:
    """A plausible encoding of a line that is not UTF-8."""
    if line.startswith(codecs.BOM_UTF16_LE + b"\0\0") or line.count(0) > len(line) // 2:
        return "utf-32"
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if is_wide(line):
        return "utf-16-be" if line[::2].count(0) > line[1::2].count(0) else "utf-16-le"
    letters = [byte for byte in line if byte >= 0x80 or chr(byte).isalpha()]
    high = [byte for byte in letters if byte >= 0x80]
    if len(high) > 0.6 * len(letters) and len(high) > 4:  # Western text has few such bytes
        return "cp1251" if sum(byte >= 0xC0 for byte in high) > 0.9 * len(high) else "shift_jis"
    try:
        line.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def bad_byte(text: str) -> int | None:
    """Where `BAD_BYTES` has put the first half of a pair; None where every byte was text."""
    found = None if text.isascii() else _HALF_PAIR.search(text)
    return found.start() if found else None


def _keep_bad_bytes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(BAD_BYTES, _keep_bad_bytes)
