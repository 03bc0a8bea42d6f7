"""Bodies of requests, read within their limits of bytes and of time."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Scope

from lexent.server.problems import ServerError
from lexent.server.settings import Limits

STREAMED_PATH = "/documents/bulk"


class RequestBodies:
    """Limits the bodies of requests. Streams have no limit of bytes, and one of time for each piece."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._streams: set[asyncio.Timeout] = set()
        self._stopping = False

    def limited(self, scope: Scope, receive: Receive) -> Receive:
        """The body of a request, which ends with an error where it exceeds a limit."""
        return self._stream(receive) if scope["path"].endswith(STREAMED_PATH) else self._whole(scope, receive)

    def stop(self) -> None:
        """End the streams with an error, so that their last lines are sent before the server ends."""
        self._stopping = True
        for timeout in self._streams:
            timeout.reschedule(0)

    def _whole(self, scope: Scope, receive: Receive) -> Receive:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                self._check_size(int(value))
        seen, complete = 0, False
        end = asyncio.get_running_loop().time() + self._limits.body_seconds

        async def receiving() -> Message:
            nonlocal seen, complete
            if complete:
                return await receive()
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                raise self._late("the body was not complete") from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                self._check_size(seen)
                complete = not message.get("more_body", False)
            return message

        return receiving

    def _stream(self, receive: Receive) -> Receive:
        async def receiving() -> Message:
            if self._stopping:
                raise self._stopped()
            try:
                async with asyncio.timeout(self._limits.body_seconds) as timeout:
                    self._streams.add(timeout)
                    try:
                        return await receive()
                    finally:
                        self._streams.discard(timeout)
            except TimeoutError:
                raise self._stopped() if self._stopping else self._late("no row came") from None

        return receiving

    def _check_size(self, size: int) -> None:
        most = self._limits.body
        if size > most:
            detail = f"the body is larger than {most:,} bytes; send less, or rows to documents/bulk"
            raise ServerError(detail, status=413, slug="too-large")

    def _late(self, what: str) -> ServerError:
        detail = (
            f"{what} within {self._limits.body_seconds:g} s; send it faster, "
            "or start the server with a higher --max-body-seconds"
        )
        return ServerError(detail, status=408, slug="too-slow")

    @staticmethod
    def _stopped() -> ServerError:
        return ServerError("the server is stopping; send the other rows again later", status=503, slug="stopping")
