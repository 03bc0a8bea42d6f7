"""API keys: who a caller is, and what it may do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Literal

from lexent.errors import InputError

WRITE_KEY = "LEXENT_API_KEY"
READ_KEY = "LEXENT_READ_KEY"
MIN_KEY_CHARS = 16
"""Characters that a key must have."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")

Access = Literal["none", "read", "write"]


@dataclass(frozen=True, slots=True)
class Key:
    """A key that opens something, and its name, which is no secret."""

    name: str
    access: Access
    secret: str = field(default="", repr=False)


ANYBODY = Key("anonymous", "write")
"""Each caller of a server without keys."""
STRANGER = Key("anonymous", "none")
"""A caller without a key, or with a wrong one."""


@dataclass(frozen=True, slots=True)
class Keys:
    """API keys. Without any, everyone who reaches the server may read and change.

    Both are one key, or several with names that the audit log and the limit of requests tell apart:
    "anna:KEY,import:KEY".
    """

    write: str | None = field(default=None, repr=False)
    """The keys that may read and change. One without a name is called "write"."""
    read: str | None = field(default=None, repr=False)
    """The keys that may only read. One without a name is called "read"."""
    _all: tuple[Key, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = (*_keys_of(WRITE_KEY, self.write, "write"), *_keys_of(READ_KEY, self.read, "read"))
        for what, values in (("key", [key.secret for key in found]), ("name of a key", [key.name for key in found])):
            if len(set(values)) < len(values):
                raise InputError(f"{WRITE_KEY} and {READ_KEY} have the same {what} twice; give them different values")
        object.__setattr__(self, "_all", found)

    @staticmethod
    def of(environment: Mapping[str, str] | None = None) -> Keys:
        """The keys that the environment holds."""
        given = os.environ if environment is None else environment
        return Keys(write=given.get(WRITE_KEY) or None, read=given.get(READ_KEY) or None)

    @property
    def any(self) -> bool:
        """Whether any key is needed."""
        return bool(self._all)

    def find(self, given: bytes | None) -> Key:
        """The key that was given. All comparisons are always made, and each takes the same time whatever was given."""
        if not self.any:
            return ANYBODY
        same = [key for key in self._all if compare_digest(given or b"", key.secret.encode())]
        return same[0] if same else STRANGER


def _keys_of(variable: str, given: str | None, access: Access) -> Iterator[Key]:
    for one in [] if given is None else given.split(","):
        name, colon, secret = one.strip().rpartition(":")
        if len(secret) < MIN_KEY_CHARS or not secret.isascii() or not secret.isprintable():
            raise InputError(
                f"a key in {variable} has {len(secret)} characters; a key has at least {MIN_KEY_CHARS}, all ASCII, "
                "no comma and no colon; make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )
        if colon and not _NAME.fullmatch(name):
            raise InputError(
                f"the name of a key in {variable} cannot be used; allowed: up to 40 letters, digits and . _ -, "
                f"such as {variable}=anna:KEY,import:KEY"
            )
        yield Key(name or access, access, secret)
