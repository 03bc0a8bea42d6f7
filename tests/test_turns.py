"""Turns of requests: few compute at once, and who waits for the encoder lets others go first."""

from __future__ import annotations

import threading

import pytest

from lexent.server import turns


def test_a_turn_is_given_up_while_its_thread_waits() -> None:
    inside, go, seen = threading.Event(), threading.Event(), list[str]()

    def waits() -> None:
        with turns.taken():
            with turns.given_up():
                inside.set()
                go.wait(10)
            seen.append("first")

    def computes() -> None:
        with turns.taken():
            seen.append("second")

    first = threading.Thread(target=waits)
    first.start()
    assert inside.wait(10)
    second = threading.Thread(target=computes)
    second.start()
    second.join(10)
    go.set()
    first.join(10)
    assert seen == ["second", "first"]


def test_at_most_so_many_compute_at_once_also_after_errors() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def fails() -> None:
        nonlocal now, most
        with turns.taken():
            with lock:
                now += 1
                most = max(most, now)
            with lock:
                now -= 1
            with turns.given_up():
                raise ValueError("x")

    def compute() -> None:
        for _ in range(50):
            with pytest.raises(ValueError, match="x"):
                fails()

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most <= turns.AT_ONCE
    with turns.taken():  # all turns were given back
        pass


def test_a_thread_without_a_turn_has_none_to_give_up() -> None:
    with turns.given_up(), turns.taken():
        pass
