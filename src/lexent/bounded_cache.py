"""A bounded cache for use from many threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from lexent import forks

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """At most `size` values by key; the least recently used one is evicted. Safe to use from many threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._clears = 0
        self._lock = threading.RLock()
        forks.renew_lock(self, "_lock")

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """The value of a key, if it is cached."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def put(self, key: Key, value: Value) -> Value:
        """Cache a value, and return it."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
            return value

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key, made where there is none. Not None.

        Threads that request one key at once may each make it; one of their values is kept. A value whose making was
        overtaken by `clear` is returned and not kept: it may be stale.
        """
        with self._lock:
            found, clears = self.get(key), self._clears
        if found is not None:
            return found
        made = make()
        with self._lock:
            return self.put(key, made) if clears == self._clears else made

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()
            self._clears += 1
