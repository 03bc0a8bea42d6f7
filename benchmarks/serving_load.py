"""Clients that query a server without pause: bare sockets, so that they take little from the server's cores."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np


@dataclass(slots=True)
class Log:
    """What some clients saw."""

    taken: list[float] = field(default_factory=list)  # seconds, of each answer
    statuses: dict[int, int] = field(default_factory=dict)

    def times(self, seconds: float) -> dict[str, float]:
        taken = np.array(self.taken or [0.0]) * 1e3
        return {
            "answers": len(self.taken),
            "per_s": len(self.taken) / seconds,
            "p50_ms": float(np.median(taken)),
            "p99_ms": float(np.percentile(taken, 99)),
            "errors": sum(count for status, count in self.statuses.items() if status != 200),
        }


Request = Callable[[int], tuple[str, Any]]
"""The path and the body of request number n."""


async def client(
    port: int, request: Request, log: Log, *, first: int, step: int, until: float, pause: float = 0.0
) -> None:
    """One client: requests number first, first + step and so on, one after the other, until the time is over."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = first
    try:
        while perf_counter() < until:
            path, body = request(number)
            number += step
            began = perf_counter()
            status, _ = await exchange(reader, writer, path, body)
            log.taken.append(perf_counter() - began)
            log.statuses[status] = log.statuses.get(status, 0) + 1
            if pause:
                await asyncio.sleep(max(0.0, pause - (perf_counter() - began)))
    finally:
        writer.close()


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: Any
) -> tuple[int, bytes]:
    raw = json.dumps(body).encode()
    head = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {len(raw)}"]
    writer.write("\r\n".join([*head, "", ""]).encode() + raw)
    answer = await reader.readuntil(b"\r\n\r\n")
    size = next(int(line[16:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length: "))
    return int(answer[9:12]), await reader.readexactly(size)


def load(port: int, request: Request, *, clients: int, seconds: float) -> dict[str, float]:
    """So many clients for so long."""

    async def run() -> Log:
        log, until = Log(), perf_counter() + seconds
        jobs = [client(port, request, log, first=place, step=clients, until=until) for place in range(clients)]
        await asyncio.gather(*jobs)
        return log

    return {"clients": clients, "seconds": seconds, **asyncio.run(run()).times(seconds)}
