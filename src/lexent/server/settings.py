"""Settings of a server: the address it listens at, who may use it, and limits of requests."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass, field

from lexent.errors import InputError
from lexent.server.keys import READ_KEY, WRITE_KEY, Keys

HIGHEST_RATE = 1_000_000
"""Requests a second that a limit may allow."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold and how long it may take, and how many there are at once."""

    body: int = 16_000_000
    """Bytes of a request's body; a bulk add is a stream and has --max-line instead, and commits after so many."""
    line: int = 1_000_000
    """Bytes of one row of a bulk add."""
    query: int = 2_000
    """Characters of a query."""
    k: int = 1_000
    """Documents that a search may give."""
    batch: int = 1_000
    """Documents of one add or delete; a bulk add commits after so many."""
    concurrency: int = 64
    """Requests that may be worked on at once; more are answered 429 with Retry-After."""
    writes: int = 16
    """Changes that may wait for their turn on one index; more are answered 429."""
    seconds: float = 30.0
    """Time that a request other than a change may take."""
    headers: int = 65_536
    """Bytes of a request's headers."""
    header_seconds: float = 10.0
    """Time that a request's headers may take to arrive."""
    body_seconds: float = 60.0
    """Time that a body may take to arrive, each piece of a bulk add, and a piece of an answer to be read."""
    connections: int = 1_000
    """Connections in all; for one more, the one that has kept the server waiting longest is closed."""
    connections_per_address: int = 128
    """Connections of one address, such as that of a proxy; of IPv6, of its 64-bit network."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if not getattr(self, name) > 0:
                raise InputError(f"the limit {name} is {getattr(self, name)}; allowed: above 0")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server."""

    host: str = "127.0.0.1"
    """The address to listen at; beyond this machine a key is needed: LEXENT_API_KEY."""
    port: int = 7777
    """The port to listen at; the next free one where this is taken and none was chosen."""
    keys: Keys = field(default_factory=Keys)
    """Who may read and who may change."""
    limits: Limits = field(default_factory=Limits)
    """What one request may hold."""
    read_only: bool = False
    """Refuse all changes, whatever the key."""
    refresh: float = 1.0
    """Seconds between looks for changes that other processes made."""
    tls_cert: str | None = None
    """A file with the certificate, and those it was signed by (PEM): answer over HTTPS. Needs --tls-key."""
    tls_key: str | None = None
    """A file with the certificate's private key (PEM), without a password."""
    public_name: str | None = None
    """The host name of a proxy on this machine that passes requests on with their Host. Needs a key: LEXENT_API_KEY."""
    rate_limit: float | None = None
    """Requests a second of one key, or without a key of one address; more are answered 429. None is no limit."""
    audit_log: str | None = None
    """A file that gets two lines for each change of a client: who, what and when. No change is made without them."""
    threads: int = 32
    """Requests that are worked on in threads; encoding has one of its own."""

    def __post_init__(self) -> None:
        if self.rate_limit is not None and not 0 < self.rate_limit <= HIGHEST_RATE:
            raise InputError(f"rate_limit is {self.rate_limit}; allowed: above 0, at most {HIGHEST_RATE:,}")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InputError("a certificate and its key go together; give both --tls-cert FILE and --tls-key FILE")
        if (not self.loopback or self.public_name is not None) and not self.keys.any:
            raise InputError(
                f'"{self.public_name or self.host}" can be reached from other machines, and no key is set; set one: '
                f"export {WRITE_KEY}=$(python -c 'import secrets; print(secrets.token_urlsafe(32))') "
                f"(and {READ_KEY} for those who may only search), or leave --host and --public-name out"
            )

    def tls(self) -> ssl.SSLContext | None:
        """The certificate and key, None without; refused if they cannot be read or do not belong together."""
        if self.tls_cert is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key, password=lambda: "")  # does not ask for one
        except OSError as error:  # of TLS, too
            raise InputError(
                f'the certificate "{self.tls_cert}" with the key "{self.tls_key}" cannot be used ({error}); '
                "allowed: PEM files that belong together, the key without a password"
            ) from error
        return context

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
