"""Limits of connections: how many there are, how long one may keep the server waiting, and how much it holds meanwhile.

The protocol of uvicorn has no limits of its own for requests that never end. Where there are too many connections, the
one that has kept the server waiting longest is closed for the new one, so that a client that sends its request at once
is answered whatever the others do.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Protocol

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lexent.server.problems import MEDIA
from lexent.server.request_bodies import STREAMED_PATH
from lexent.server.settings import Limits

MAX_PIPELINED = 100
"""Requests that a connection may send before the first of them is answered."""
LINGER_SECONDS = 5
"""Seconds that a client has to take its last answer, or to end a body that nobody reads any more."""
RESERVED_FILES = 256
"""Open files that the rest of the process needs."""


class Connection(Protocol):
    """What is counted: a connection, or the TLS handshake of one."""

    def abort(self) -> None:
        """Close at once: what was not sent is dropped."""


class Connections:
    """The open connections of a server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._addresses: Counter[str] = Counter()
        self._open: dict[Connection, str] = {}
        self._waiting: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, connection: Connection, address: str) -> bool:
        """Count a new connection; False where there is no room for it."""
        if self._addresses[address] >= self.limits.connections_per_address:
            longest = next((one for one in self._waiting if self._open[one] == address), None)
        elif len(self._open) >= self.limits.connections:
            longest = next(iter(self._waiting), None)
        else:
            longest = connection
        if longest is None:
            return False
        if longest is not connection:
            self.closed(longest)
            longest.abort()
        self._open[connection] = address
        self._addresses[address] += 1
        return True

    def closed(self, connection: Connection) -> None:
        """Count a connection no longer."""
        self._waiting.pop(connection, None)
        address = self._open.pop(connection, None)
        if address is not None:
            self._addresses[address] -= 1
            self._addresses += Counter()  # drops those of 0

    def waits(self, connection: Connection) -> None:
        """From now on the server waits for this connection, which may be closed for another one."""
        self._waiting.pop(connection, None)
        if connection in self._open:
            self._waiting[connection] = None

    def works(self, connection: Connection) -> None:
        """The server works for this connection."""
        self._waiting.pop(connection, None)


class LimitedProtocol(HttpToolsProtocol):
    """HTTP over one connection, closed where it keeps the server waiting or sends headers without end."""

    shared: Connections
    handshake: Handshake | None = None
    """That of TLS, which came before."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, if there is room for one more connection."""
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._outside_body = 0  # bytes since the last request, or since the last piece of a body
        self._in_headers = False
        super().connection_made(transport)
        if self.handshake is not None:
            self.handshake.end()
        if self.shared.opened(self, network(self.client[0] if self.client else "")):
            self._wait(self.shared.limits.header_seconds)
        else:
            self._refuse(503, "there are too many connections; try again in 1 s")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._settle()
        if self._write_timer is not None:
            self._write_timer.cancel()
        self.shared.closed(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        """Close at once: what was not sent is dropped."""
        self.transport.abort()

    # --- read ----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse what arrived; headers, trailers and chunk extensions without end are refused."""
        if self.transport.is_closing():
            return
        self._outside_body += len(data)
        super().data_received(data)
        if self._outside_body > self.shared.limits.headers and not self.transport.is_closing():
            self._refuse(431, f"the headers are larger than {self.shared.limits.headers:,} bytes")
        elif len(self.pipeline) > MAX_PIPELINED:
            self.abort()
        elif self._timer is None and not self._busy:  # what arrived is no request, such as an empty line
            self._wait(self.shared.limits.header_seconds)

    def on_message_begin(self) -> None:
        """A request begins: its headers must end in time."""
        super().on_message_begin()
        self._in_headers = True
        self._wait(self.shared.limits.header_seconds)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; trailers, which come after the body, are left out."""
        if self._in_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Answer the request. Its target may name the host, which then counts in place of the header."""
        if not self.url.startswith((b"/", b"*")):
            host = self.url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
            self.headers[:] = [(b"host", host), *(one for one in self.headers if one[0] != b"host")]
        self._in_headers = False
        self._settle()
        super().on_headers_complete()
        if self.scope["path"].endswith(STREAMED_PATH):
            self.shared.works(self)

    def on_body(self, body: bytes) -> None:
        """A piece of a body, whose time is limited where it is read."""
        self._outside_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole: it is the server's turn, unless it answered before."""
        self._outside_body = 0
        super().on_message_complete()
        if self.cycle.response_complete:
            self._wait(self._linger)
        else:
            self.shared.works(self)

    def on_response_complete(self) -> None:
        """The answer is complete. Until the next request comes, this connection is one that waits."""
        more = self.cycle.more_body
        super().on_response_complete()
        self.shared.waits(self)
        if more or self.transport.is_closing():
            self._wait(self._linger)

    def timeout_keep_alive_handler(self) -> None:
        """No further request came: close, also where the last answer was never read."""
        self.abort()

    def shutdown(self) -> None:
        """The server ends. A client that still sends must be able to read its answer, so it is not cut off at once."""
        if not (self._busy and self.cycle.more_body):
            super().shutdown()

    # --- write ---------------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered: it must go on reading."""
        super().pause_writing()
        self._expect_reading(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The client has read most of it."""
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()

    def _expect_reading(self, unsent: int) -> None:
        def check() -> None:
            left = self.transport.get_write_buffer_size()
            if left < unsent:
                self._expect_reading(left)
            else:
                self.abort()

        self._write_timer = self.loop.call_later(self.shared.limits.body_seconds, check)

    # --- timers --------------------------------------------------------------------------------------------------

    @property
    def _busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _linger(self) -> float:
        return min(LINGER_SECONDS, self.shared.limits.header_seconds)

    def _wait(self, seconds: float) -> None:
        """Close the connection, unless something else comes within this time."""
        self._settle()
        if not self._busy:
            self.shared.waits(self)
        self._timer = self.loop.call_later(seconds, self._late)

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        if self._busy:  # a request before this one
            self._wait(self.shared.limits.header_seconds)
        elif self._in_headers and not self.transport.is_closing():
            self._refuse(408, f"the headers were not complete within {self.shared.limits.header_seconds:g} s")
        else:
            self.abort()

    def _refuse(self, status: int, detail: str) -> None:
        """Answer without the app, which never sees the request, and close."""
        if self._busy:
            self.abort()
            return
        title = HTTPStatus(status).phrase
        body = orjson.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail})
        lines = (
            f"HTTP/1.1 {status} {title}",
            f"content-type: {MEDIA}",
            f"content-length: {len(body)}",
            "connection: close",
        )
        self.transport.write("\r\n".join((*lines, "", "")).encode() + body)
        self.transport.close()
        self._wait(self._linger)


class Handshake(asyncio.Protocol):
    """A TLS handshake. It is counted as a connection, has the time of headers, and is followed by HTTP.

    Left to asyncio, it would not be known to anybody before its end, for which it would have a minute. So connections
    are accepted without TLS, and their sockets are then given to the event loop anew.
    """

    def __init__(self, http: LimitedProtocol, context: ssl.SSLContext) -> None:
        self._http, self._context = http, context

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is room for one more connection."""
        shared, peer = self._http.shared, transport.get_extra_info("peername")
        with suppress(OSError):  # too many open files
            self._socket: socket.socket = transport.get_extra_info("socket").dup()
            if shared.opened(self, network(peer[0] if peer else "")):
                shared.waits(self)
                accepted = self._http.loop.connect_accepted_socket(
                    self._protocol, self._socket, ssl=self._context, ssl_handshake_timeout=shared.limits.header_seconds
                )
                self._task = self._http.loop.create_task(accepted)
                self._task.add_done_callback(self._done)
            else:
                self._socket.close()
        transport.abort()  # nothing was read from it

    def abort(self) -> None:
        """Close at once."""
        self._task.cancel()

    def end(self) -> None:
        """Count it no longer: the connection is counted in its place, or closed."""
        self._http.shared.closed(self)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self.end()
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            self._socket.close()
        if error is not None and not isinstance(error, OSError):  # those of TLS are OSErrors
            raise error

    def _protocol(self) -> LimitedProtocol:
        self._http.handshake = self
        return self._http


def protocol(limits: Limits, context: ssl.SSLContext | None = None) -> type[asyncio.Protocol]:
    """The protocol of a server, whose connections share these limits; context: that of TLS."""

    class Http(LimitedProtocol):
        shared = Connections(limits)

    if context is None:
        return Http
    tls = context

    class Secured(Handshake):
        def __init__(self, **given: Any) -> None:
            super().__init__(Http(**given), tls)

    return Secured


def network(address: str) -> str:
    """What counts as one address: of IPv6, the 64 bits that one customer has."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


def within_open_files(limits: Limits) -> Limits:
    """The limits with no more connections than the process may have open files, a limit that is raised where it can."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return limits
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limits
    wanted = limits.connections + RESERVED_FILES
    if soft < wanted:
        soft = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        with suppress(ValueError, OSError):  # not allowed here
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return replace(limits, connections=min(limits.connections, max(soft - RESERVED_FILES, soft // 2)))
