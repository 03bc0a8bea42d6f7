"""The cache that searchers, filters and the server share: bounded, least recently used first, safe under threads."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import small
from lexent.bounded_cache import BoundedCache
from lexent.search import searcher as searchers

THREADS = 4


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as the interpreter allows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@given(st.integers(1, 4), st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=40))
def test_it_keeps_the_most_recently_used(size: int, steps: list[tuple[bool, int]]) -> None:
    cache: BoundedCache[int, str] = BoundedCache(size)
    model: OrderedDict[int, str] = OrderedDict()
    for number, (write, key) in enumerate(steps):
        if write:
            model[key] = cache.put(key, f"{key} {number}")
            model.move_to_end(key)
            while len(model) > size:
                model.popitem(last=False)
        else:
            assert cache.get(key) == model.get(key)
            if key in model:
                model.move_to_end(key)
        assert len(cache) == len(model)
    assert {key: cache.get(key) for key in range(7)} == {key: model.get(key) for key in range(7)}


def test_a_value_is_made_once_and_then_kept() -> None:
    cache: BoundedCache[str, list[int]] = BoundedCache(2)
    made = cache.get_or_make("a", lambda: [1])
    assert cache.get_or_make("a", lambda: [2]) is made


def test_a_value_whose_making_was_overtaken_by_clear_is_not_kept() -> None:
    """As when a concept is renamed while an answer with its old name is being made."""
    cache: BoundedCache[str, str] = BoundedCache(2)

    def make() -> str:
        cache.clear()
        return "old name"

    assert cache.get_or_make("concept", make) == "old name"
    assert cache.get("concept") is None


def test_threads_may_ask_a_view_for_more_queries_than_it_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switching: None
) -> None:
    """Eviction in one thread while others insert."""
    monkeypatch.setattr(searchers, "MAX_CACHED_QUERIES", 8)
    with small.build(tmp_path / "a", small.documents(4)) as index:
        searcher, begin = index.searcher, threading.Barrier(THREADS)

        def work(number: int) -> int:
            begin.wait()
            texts = [f"{number} {step % 60}" for step in range(400)]
            coded = (searcher.coded_query(text) for text in texts)
            return sum(found is not None and found.text == text for found, text in zip(coded, texts, strict=True))

        with ThreadPoolExecutor(THREADS) as pool:
            assert list(pool.map(work, range(THREADS))) == [400] * THREADS
