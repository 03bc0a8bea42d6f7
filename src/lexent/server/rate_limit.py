"""How many requests a second one client may send."""

from __future__ import annotations

import math
from collections import OrderedDict

from lexent.server.problems import ServerError

MAX_CLIENTS = 10_000
"""Clients that are remembered; the one that asked longest ago is forgotten first."""


class RateLimit:
    """A token bucket for each client, refilled at a rate and never fuller than one second's worth."""

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(1.0, rate)
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, now: float) -> None:
        """Count a request at a time in seconds; 429 where it is one too many."""
        left, then = self._clients.pop(client, (self._most, now))
        left = min(self._most, left + (now - then) * self._rate)
        allowed = left >= 1
        self._clients[client] = (left - 1 if allowed else left, now)
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        if not allowed:
            seconds = math.ceil((1 - left) / self._rate)
            detail = f"more than {self._rate:g} requests a second; try again in {seconds} s, or send fewer"
            raise ServerError(detail, status=429, slug="rate", headers={"Retry-After": str(seconds)})
