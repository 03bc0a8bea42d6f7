"""Work that is done together gives each caller its own result."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lexent.encoders import TinyEncoder
from lexent.encoders.encoder import encode
from lexent.server.encoding import SharedEncoder
from lexent.server.micro_batching import MicroBatcher


def test_work_of_two_groups_that_waits_is_not_mixed() -> None:
    batcher, begun, free = MicroBatcher(), threading.Event(), threading.Event()

    def hold(given: list[Any]) -> list[Any]:
        begun.set()
        assert free.wait(30)
        return given

    def ask(number: int) -> Any:
        group, factor = ("even", 2) if number % 2 == 0 else ("odd", -1)
        return batcher.run(number, lambda given: [factor * one for one in given], group=group)

    with ThreadPoolExecutor(9) as pool:
        holding = pool.submit(batcher.run, None, hold)
        assert begun.wait(30)
        asked = [pool.submit(ask, number) for number in range(8)]
        while batcher.waiting < 8:
            threading.Event().wait(0.01)
        free.set()
        assert [one.result() for one in asked] == [2 * one if one % 2 == 0 else -one for one in range(8)]
        assert holding.result() is None
    batcher.close()


def test_remembered_queries_have_their_own_states() -> None:
    batcher, plain = MicroBatcher(), TinyEncoder()
    shared = SharedEncoder(plain, batcher)
    for _ in range(2):
        for text in ("night light", "queen", "night"):
            [(_, found)] = shared.batches([text], kind="query")
            assert found.values.tolist() == encode(plain, [text], kind="query", level="tokens").values.tolist()
    batcher.close()
