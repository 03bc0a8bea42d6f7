"""Searchers of an index by other settings than its own, shared between requests."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from lexent import recipes
from lexent.bounded_cache import BoundedCache
from lexent.errors import InputError
from lexent.recipes import Recipe
from lexent.search.searcher import RepackedLists, Searcher, packed_by
from lexent.server import problems

MAX_CACHED_SEARCHERS = 4
"""Searchers with other settings that are cached."""
MAX_REPACKED = 2
"""Copies of the posting lists in memory, each packed by another power or document_cap."""
PACKING_SECONDS = 2.0
"""Seconds that a request waits for another one that packs posting lists."""


class RetunedSearchers:
    """The searchers of one index by recipe. Those that need the same posting lists share them."""

    def __init__(self) -> None:
        self._searchers: BoundedCache[tuple[int, Recipe], Searcher] = BoundedCache(MAX_CACHED_SEARCHERS)
        self._lists: WeakValueDictionary[tuple[int, float, int | None], RepackedLists] = WeakValueDictionary()
        """All that a cached searcher or a running request holds."""
        self._packing = threading.Lock()

    def get(self, searcher: Searcher, settings: Mapping[str, Any]) -> Searcher:
        """The index of a searcher, weighted by other settings; 429 where they need one copy of the lists too many."""
        try:
            recipe = recipes.retuned(searcher.recipe, dict(settings))
        except InputError as error:
            raise InputError(f'settings: {error}; write for example "settings": {{"k1": 3, "b": 0.4}}') from error

        def make() -> Searcher:
            return searcher.retuned(dict(settings), lists=self._repacked(searcher, recipe))

        return self._searchers.get_or_make((searcher.manifest.generation, recipe), make)

    def clear(self) -> None:
        """Drop those that no request uses."""
        self._searchers.clear()

    def _repacked(self, searcher: Searcher, recipe: Recipe) -> RepackedLists | None:
        """The posting lists that a recipe needs, None for the index's own. They are packed by one request at a time."""
        if packed_by(recipe) == packed_by(searcher.recipe):
            return None
        key = (searcher.manifest.generation, *packed_by(recipe))
        if not self._packing.acquire(timeout=PACKING_SECONDS):
            raise problems.overloaded("posting lists are being packed for the power or document_cap of another request")
        try:
            found = self._lists.get(key)
            if found is not None:
                return found
            if len(self._lists) >= MAX_REPACKED:
                self.clear()
            if len(self._lists) >= MAX_REPACKED:
                raise problems.overloaded(
                    f"requests with {MAX_REPACKED} other values of power and document_cap are being worked on"
                )
            found = self._lists[key] = RepackedLists.of(searcher.reader, recipe)
            return found
        finally:
            self._packing.release()
