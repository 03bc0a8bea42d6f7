"""A process that forks while its threads search. As a program it exits with 0 if all children answer."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from itertools import count
from pathlib import Path
from typing import Any

import lexent

SECONDS = 45
"""After this a child is taken for one that hangs."""
TEXTS = [
    "bread is baked in an oven",
    "a comet and the stars at night",
    "the queen takes the bishop",
    "sleep and dreams",
]


def answer(index: Any) -> None:
    """Searches for what nobody searched for before, and with what has locks of its own."""
    hits = index.search(f"who baked this loaf of bread, {os.getpid()}", k=2, filter={"n": {"gte": 0}})
    assert hits[0].text == TEXTS[0], hits
    assert hits[0].explain().contributions
    assert index.search_many([f"the comet {number} of {os.getpid()}" for number in range(12)], k=1)


def answer_anew(path: str) -> None:
    answer(lexent.open(path))


def ended_well(pid: int) -> bool:
    signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
    signal.alarm(SECONDS)
    status = os.waitpid(pid, 0)[1]
    signal.alarm(0)
    return status == 0


def forked(index: Any) -> bool:
    pid = os.fork()
    if not pid:
        try:
            answer(index)
            os._exit(0)
        finally:
            os._exit(1)
    return ended_well(pid)


def started(method: str, target: Any, given: Any) -> bool:
    child = multiprocessing.get_context(method).Process(target=target, args=(given,))
    child.start()
    child.join(SECONDS)
    if child.is_alive():
        child.kill()
    return child.exitcode == 0


def main(folder: str, method: str) -> None:
    path = str(Path(folder) / "forked.lexent")
    documents = [{"id": str(number), "text": text, "n": number} for number, text in enumerate(TEXTS)]
    index = lexent.open(path) if Path(path).exists() else lexent.index(documents, out=path)
    answer(index)
    stop = threading.Event()

    def search() -> None:
        for number in count():
            if stop.is_set():
                return
            index.search(f"query {number} of {threading.get_ident()}", filter={"n": {"lt": number % 7}})

    threads = [threading.Thread(target=search, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    outcomes = {}
    if method == "fork":
        outcomes = {f"os.fork {number}": forked(index) for number in range(4)}
        outcomes["fork"] = started("fork", answer, index)
    else:
        outcomes[method] = started(method, answer_anew, path)
    stop.set()
    for thread in threads:
        thread.join()
    answer(index)
    print(outcomes)
    sys.exit(not all(outcomes.values()))


if __name__ == "__main__":
    main(*sys.argv[1:])
