"""One served index: the searcher that readers use, and changes, one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lexent.artifact import MANIFEST
from lexent.bounded_cache import BoundedCache
from lexent.engine import Index
from lexent.search.searcher import Searcher
from lexent.server.micro_batching import MicroBatcher
from lexent.server.replies import ChangeReply, IndexReply
from lexent.server.retuned_searchers import RetunedSearchers
from lexent.server.settings import Limits
from lexent.server.workers import Workers
from lexent.types import Document

MAX_CACHED_ANSWERS = 256
"""Answers about concepts that are cached for one generation of the index."""


class ServedIndex:
    """An index with many concurrent readers and one writer thread."""

    def __init__(self, name: str, index: Index, batcher: MicroBatcher, limits: Limits) -> None:
        self.name, self.index, self.batcher, self.limits = name, index, batcher, limits
        self.cache: BoundedCache[Any, Any] = BoundedCache(MAX_CACHED_ANSWERS)
        self.writers = Workers(threads=1, most=limits.writes, seconds=None, name=f"lexent-write-{name}")
        self._searchers = RetunedSearchers()
        self._seen = self._manifest_state()

    # --- read --------------------------------------------------------------------------------------------------

    def searcher(self, settings: Mapping[str, Any] | None = None) -> Searcher:
        """The current generation of the index, weighted by other settings where some are given."""
        searcher = self.index.searcher
        if not settings:
            return searcher
        return self._searchers.get(searcher, settings)

    def refresh(self) -> bool:
        """Open the generation that another process committed, if any; costs one stat call where there is none."""
        mark = self._manifest_state()
        if mark == self._seen:
            return False
        changed = self.index.refresh()
        self._seen = mark
        if changed:
            self._clear_caches()
        return changed

    def summary(self) -> IndexReply:
        """The index as one row of a list."""
        manifest = self.index.manifest
        return IndexReply(self.name, len(self.index), manifest.lexicon.size, manifest.recipe, manifest.generation)

    def stats(self) -> dict[str, Any]:
        """Facts about the index."""
        return {"name": self.name, **self.index.info(), "path": self.index.path.name}

    # --- change, in the writer thread --------------------------------------------------------------------------

    def add(self, documents: Sequence[Document], *, upsert: bool) -> ChangeReply:
        """Add documents, all or none; they are durable when this returns."""
        before = len(self.index)
        with self.batcher.low_priority():
            count = self.index.add(documents, upsert=upsert)
        return self._changed(added=count, replaced=before + count - len(self.index))

    def delete(self, ids: Iterable[str] | None, *, filter: dict[str, Any] | None = None) -> ChangeReply:
        """Delete documents by id or by a filter, all or none."""
        return self._changed(deleted=self.index.delete(ids, filter=filter))

    def rename(self, concept: int, label: str | None) -> None:
        """Give a concept the user's label; None restores the lexicon's."""
        self.index.rename(concept, label)
        self.cache.clear()

    def close(self) -> None:
        """Finish the changes that wait, and close the index."""
        self.writers.close()
        self.index.close()

    def _changed(self, **counts: int) -> ChangeReply:
        self._clear_caches()
        return ChangeReply(len(self.index), self.index.manifest.generation, **counts)

    def _clear_caches(self) -> None:
        self.cache.clear()
        self._searchers.clear()

    def _manifest_state(self) -> tuple[int, int, int]:
        """Modification time, inode and size of the manifest: another commit changes them."""
        try:
            found = os.stat(self.index.path / MANIFEST)
        except FileNotFoundError:  # being replaced by a new build, or removed
            return (0, 0, 0)
        return (found.st_mtime_ns, found.st_ino, found.st_size)
