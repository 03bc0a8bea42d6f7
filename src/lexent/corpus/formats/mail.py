"""Mail: a message (.eml) or a mailbox (.mbox). The subject is the title; date, from and to are fields.

Attachments are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC
from email import message_from_bytes, policy
from email.message import EmailMessage, Message
from email.utils import parsedate_to_datetime
from typing import Any

from lexent.corpus.formats.html import page
from lexent.corpus.formats.parts import Part, SourceFile, escaped
from lexent.corpus.lines import opened


def read_message(file: SourceFile) -> Iterator[Part]:
    """One message."""
    yield _part(file.content(), str(file.path))


def read_mailbox(file: SourceFile) -> Iterator[Part]:
    """The messages of a mailbox, one at a time. A message begins after a line "From ..." that a blank line precedes."""
    held: list[bytes] = []
    blank = True
    with opened(file.path) as lines:
        for line in lines:
            if blank and line.startswith(b"From "):
                if held:
                    yield _part(b"".join(held), str(file.path))
                held = [b""]
            elif held:
                quoted = line.startswith(b">") and line.lstrip(b">").startswith(b"From ")
                held.append(line[1:] if quoted else line)
            elif line.strip():
                raise file.damaged("mailbox", 'it does not begin with a line "From ..."')
            blank = not line.strip()
    if held:
        yield _part(b"".join(held), str(file.path))


def _part(content: bytes, name: str) -> Part:
    message = message_from_bytes(content, policy=policy.default)
    fields = {"date": _date(message), "from": _header(message, "from"), "to": _addresses(message)}
    known = {field: _clean(value) for field, value in fields.items() if value}
    return Part(_body(message, name), title=_clean(_header(message, "subject")), metadata=known)


def _clean(value: Any) -> Any:
    """A header, or several, with a mark in the place of each byte that is no text."""
    if isinstance(value, list):
        return [_clean(one) for one in value]
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _body(message: EmailMessage, name: str) -> str:
    """The text of a message, or its HTML as text."""
    found = message.get_body(("plain",)) or message.get_body(("html",))
    if found is None:
        return ""
    try:
        text = found.get_content(errors="replace")
    except (LookupError, ValueError):  # a character set that nobody knows
        payload = found.get_payload(decode=True)
        text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    if found.get_content_subtype() == "html":
        return page(str(text), name).text
    return escaped(str(text).replace("\r\n", "\n")).strip()


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
