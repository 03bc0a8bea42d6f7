"""How soon a server answers others while one client keeps it waiting: GET /health over new connections, by attack.

    python -m benchmarks.attacks INDEX [--seconds 15] [--docs docs/serve.md]

INDEX: any index; no query is sent. Clients and server share the machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

from benchmarks.report import replace, setting, table
from benchmarks.serving import memory, serving

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
PAUSE = 0.02
"""Seconds from one probe to the next."""
SETTLED = 2.0
"""Seconds that an attack goes on before the first probe."""


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def endless_headers(port: int) -> None:
    """Headers without end, as fast as they are read, on a new connection whenever one is closed."""
    while True:
        with suppress(OSError), connected(port) as made:
            made.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
            while True:
                made.sendall(b"a" * 65_536)


def many(port: int, count: int, sent: bytes) -> None:
    """So many connections that send this and nothing more, each opened again when it is closed."""
    held: list[socket.socket] = []
    while True:
        held = [made for made in held if is_open(made)]
        with suppress(OSError):
            while len(held) < count:
                held.append(connected(port))
                held[-1].sendall(sent)
                held[-1].setblocking(False)
        sleep(PAUSE)


def is_open(made: socket.socket) -> bool:
    try:
        if made.recv(65_536):
            return True
    except BlockingIOError:
        return True
    except OSError:
        pass
    made.close()
    return False


Attack = Callable[[int], None] | None
ATTACKS: dict[str, Attack] = {
    "none": None,
    "headers without end, as fast as they are read": endless_headers,
    "500 requests that are half sent": partial(many, count=500, sent=b"GET / HTTP/1.1\r\nHost: local"),
    "10,000 idle connections": partial(many, count=10_000, sent=b""),
}


@contextmanager
def attacking(attack: Attack, port: int) -> Iterator[None]:
    if attack is None:
        sleep(SETTLED)
        yield
        return
    process = multiprocessing.get_context("fork").Process(target=attack, args=(port,), daemon=True)
    process.start()
    sleep(SETTLED)
    try:
        yield
    finally:
        process.kill()
        process.join()


def probed(port: int, seconds: float) -> tuple[list[float], int]:
    """Milliseconds of each answer, and the probes without one."""
    taken: list[float] = []
    failed = 0
    until = perf_counter() + seconds
    while perf_counter() < until:
        began = perf_counter()
        try:
            with connected(port) as made:
                made.sendall(HEALTH)
                answered = made.recv(12).endswith(b"200")
        except OSError:
            answered = False
        if answered:
            taken.append((perf_counter() - began) * 1e3)
        else:
            failed += 1
        sleep(PAUSE)
    return taken, failed


def measured(index: Path, seconds: float) -> list[list[str]]:
    """A row for each attack, with a server of its own."""
    rows = []
    for name, attack in ATTACKS.items():
        with serving(index) as (port, process), attacking(attack, port):
            taken, failed = probed(port, seconds)
            files, room = len(list(Path(f"/proc/{process.pid}/fd").iterdir())), memory(process.pid)["VmRSS"] / 1e3
        times = [f"{value:.1f}" for value in (*np.percentile(taken or [np.nan], (50, 99)), max(taken, default=np.nan))]
        rows.append([name, *times, str(len(taken)), str(failed), str(files), f"{room:.0f}"])
    return rows


def main() -> None:
    """Print the table, or write it to a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--seconds", type=float, default=15, help="of each attack")
    parser.add_argument("--docs", type=Path, help="a page with marks, to be written")
    given = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # for the connections of the attack
    head = (
        "attack from one address",
        "p50 ms",
        "p99 ms",
        "highest ms",
        "answers",
        "no answer",
        "open files",
        "memory MB",
    )
    facts = setting(f"python -m benchmarks.attacks {given.index.name}")
    shown = table(head, measured(given.index, given.seconds))
    shown = f"By `{facts['command']}` ({facts['date']}, {facts['machine']}).\n\n{shown}"
    if given.docs is not None:
        replace(given.docs, "attacks", shown)
    print(shown)


if __name__ == "__main__":
    main()
