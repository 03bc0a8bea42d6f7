"""Mail: a message (.eml) or a mailbox (.mbox). The subject is the title; date, from and to are fields.

Attachments are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC
from email import errors, message_from_bytes, policy
from email.message import EmailMessage, Message
from email.utils import parsedate_to_datetime
from typing import Any

from lexent.corpus.encodings import UTF8, guessed
from lexent.corpus.formats.html import declared, page
from lexent.corpus.formats.parts import Part, SourceFile, escaped
from lexent.corpus.lines import each_line, most_bytes, opened, too_large
from lexent.corpus.problems import RowError

_LOSES_PARTS = (errors.NoBoundaryInMultipartDefect, errors.StartBoundaryNotFoundDefect)
_NO_BASE64 = (errors.InvalidBase64CharactersDefect, errors.InvalidBase64LengthDefect)
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
"""Blanks in it do no harm."""


def read_message(file: SourceFile) -> Iterator[Part]:
    """One message."""
    yield _part(file.content(), str(file.path), file.encoding)


def read_mailbox(file: SourceFile) -> Iterator[Part]:
    """The messages of a mailbox, one at a time; one that cannot be read is a problem of its own."""
    for number, content in enumerate(_messages(file)):
        yield _part(content, f"{file.path}, message {number}", file.encoding)


def _messages(file: SourceFile) -> Iterator[bytes]:
    """A message begins after a line "From ..." that a blank line precedes."""
    held: list[bytes] = []
    blank, size, most = True, 0, most_bytes()
    with opened(file.path) as lines:
        for number, line in each_line(lines, file.path):
            size += len(line)
            if blank and line.startswith(b"From "):
                if held:
                    yield b"".join(held)
                held, size = [b""], 0
            elif size > most:
                raise too_large(f"{file.path}, the message before line {number}")
            elif held:
                quoted = line.startswith(b">") and line.lstrip(b">").startswith(b"From ")
                held.append(line[1:] if quoted else line)
            elif line.strip():
                raise file.damaged("mailbox", 'it does not begin with a line "From ..."')
            blank = not line.strip()
    if held:
        yield b"".join(held)


def _part(content: bytes, name: str, encoding: str | None) -> Part:
    """A message, or what is wrong with it. encoding: of texts that are not in the one that they name."""
    try:
        return _read(content, name, encoding)
    except RowError as error:
        return Part("", problem=error)
    except RecursionError:
        return Part("", problem=_damaged(name, "its parts are nested too deeply"))


def _read(content: bytes, name: str, encoding: str | None) -> Part:
    message = message_from_bytes(content, policy=policy.default)
    fields = {"date": _date(message), "from": _header(message, "from"), "to": _addresses(message)}
    known = {field: _clean(value) for field, value in fields.items() if value}
    return Part(_body(message, name, encoding), title=_clean(_header(message, "subject")), metadata=known)


def _clean(value: Any) -> Any:
    """A header, or several, with a mark in the place of each byte that is no text."""
    if isinstance(value, list):
        return [_clean(one) for one in value]
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _body(message: EmailMessage, name: str, encoding: str | None) -> str:
    """The text of a message, or its HTML as text."""
    found = message.get_body(("plain",))
    found = message.get_body(("html",)) if found is None else found  # a part without headers counts as False
    if found is None:
        if any(isinstance(defect, _LOSES_PARTS) for defect in message.defects):
            raise _damaged(name, "its parts cannot be told apart")
        return ""
    text = _decoded(found, name, encoding)
    if found.get_content_subtype() == "html":
        return page(text, name).text
    return escaped(text.replace("\r\n", "\n")).strip()


def _decoded(part: Message[Any, Any], name: str, encoding: str | None) -> str:
    """The text of a part: in the encoding that it names, in UTF-8, or in the one that was given for such texts."""
    payload = part.get_payload(decode=True)
    is_odd = any(isinstance(defect, _NO_BASE64) for defect in part.defects)
    if is_odd and not _BASE64.fullmatch(str(part.get_payload())):
        raise _damaged(name, "its text is not the base64 that it is said to be")
    content = payload if isinstance(payload, bytes) else b""
    named = part.get_content_charset("us-ascii")
    of_page = declared(content) if part.get_content_subtype() == "html" else None
    for used in (named, of_page or UTF8, UTF8, encoding or UTF8):
        with suppress(LookupError, ValueError):  # a character set that nobody knows, and bytes that are none of its
            return content.decode(used)
    guess = guessed(content)
    raise RowError(
        f'{name}: its text is not in the encoding that it names ("{named}"), nor {encoding or "UTF-8"}; name one for '
        f'such texts: --encoding {guess} (in Python encoding="{guess}"); --on-error skip leaves it out',
        where=name,
        reason="undecodable bytes",
    )


def _damaged(name: str, why: str) -> RowError:
    message = f"{name}: not a readable message ({why}); leave it out: --on-error skip"
    return RowError(message, where=name, reason="damaged file")


def _header(message: Message[Any, Any], name: str) -> str:
    """A header as text; "" where it is missing, or not to be understood."""
    with suppress(Exception):  # the parser of the standard library stumbles over some bad headers
        return " ".join(str(message[name] or "").split())
    return ""


def _addresses(message: EmailMessage) -> list[str]:
    """Everyone a message is to."""
    with suppress(Exception):  # as above
        return [str(one) for header in message.get_all("to", []) for one in header.addresses]
    return []


def _date(message: EmailMessage) -> str:
    """When it was sent, in UTC, in the form of ISO 8601; without an offset where it names none."""
    with suppress(Exception):  # dates are written in any way
        moment = parsedate_to_datetime(str(message["date"]))
        return (moment if moment.tzinfo is None else moment.astimezone(UTC)).isoformat()
    return ""
