"""Numba's `njit` with a cache on disk that several processes can fill at once.

Numba numbers the files of a function's compiled signatures. Two processes that compile different signatures at the same
time choose the same number, and the index of one then names the code of the other: calling it crashes the process, and
so does every later one. Here a file is named by a hash of its signature, so no file ever holds the code of another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile


class KeyedCacheFile(IndexDataCacheFile):
    """The cache of a function: an index, and a file for each compiled signature, named by its hash."""

    def save(self, key: Any, data: Any) -> None:
        """Store the code of a signature. The index comes last, so what it names is there.

        Where two processes write the index at once, one entry is lost, and its signature is compiled once more.
        """
        parts = (key, self._version, self._source_stamp)
        name = self._index_name.replace(".nbi", f".{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.nbc")
        self._save_data(name, data)  # type: ignore[no-untyped-call]
        self._save_index({**self._load_index(), key: name})  # type: ignore[no-untyped-call]

    def load(self, key: Any) -> Any:
        """The code of a signature; none where there is none, or where its file is damaged."""
        try:
            return super().load(key)  # type: ignore[no-untyped-call]
        except Exception:  # a damaged pickle may raise anything
            return None

    def _load_index(self) -> Any:
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except Exception:
            return {}


class ConcurrentCache(FunctionCache):
    """Numba's cache of a function over a `KeyedCacheFile`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        own: Any = self._cache_file
        place = (own._cache_path, self._impl.filename_base, own._source_stamp)
        self._cache_file = KeyedCacheFile(*place)  # type: ignore[no-untyped-call]


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` with these options; with cache=True several processes can share the cache.

    Where no folder can be written to, functions are compiled in each process.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache and hasattr(dispatcher, "_cache"):  # NUMBA_DISABLE_JIT gives the function itself
            with suppress(RuntimeError):  # no locator: neither the package's folder nor the user's is writable
                dispatcher._cache = ConcurrentCache(dispatcher.py_func)
        return dispatcher

    return compiled


def is_cached(kernel: Any) -> bool:
    """Whether compiled code of a kernel for this processor is on the disk, compiled from its present source."""
    cache = getattr(kernel, "_cache", None)
    if not isinstance(cache, ConcurrentCache):
        return False
    from numba.core.registry import cpu_target

    own: Any = cache._cache_file
    processor = cpu_target.target_context.codegen().magic_tuple()
    return any(key[1] == processor for key in own._load_index())
