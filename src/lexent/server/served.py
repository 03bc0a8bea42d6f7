"""One served index: the searcher that readers use, and changes, one at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from lexent.artifact import MANIFEST
from lexent.bounded_cache import BoundedCache
from lexent.engine import Index
from lexent.search.searcher import Searcher
from lexent.server.audit_log import AuditLog, Caller, named, shortened
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

    def __init__(
        self, name: str, index: Index, batcher: MicroBatcher, limits: Limits, audit_log: AuditLog | None = None
    ) -> None:
        self.name, self.index, self.batcher, self.limits = name, index, batcher, limits
        self._audit_log = audit_log
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

    def add(self, documents: Sequence[Document], *, upsert: bool, by: Caller) -> ChangeReply:
        """Add documents, all or none; they are durable when this returns."""
        before, what = len(self.index), "upsert" if upsert else "add"
        with self._change(by, what, **named([one.id for one in documents])) as done, self.batcher.low_priority():
            count = self.index.add(documents, upsert=upsert)
            return self._changed(done, added=count, replaced=before + count - len(self.index))

    def delete(self, ids: Sequence[str] | None, *, filter: dict[str, Any] | None = None, by: Caller) -> ChangeReply:
        """Delete documents by id or by a filter, all or none."""
        facts = named(ids or []) if filter is None else {"filter": shortened(json.dumps(filter))}
        with self._change(by, "delete", **facts) as done:
            return self._changed(done, deleted=self.index.delete(ids, filter=filter))

    def rename(self, concept: int, label: str | None, *, by: Caller) -> None:
        """Give a concept the user's label; None restores the lexicon's."""
        with self._change(by, "rename", concept=concept, label=None if label is None else shortened(label)):
            self.index.rename(concept, label)
            self.cache.clear()

    def close(self) -> None:
        """Finish the changes that wait, and close the index."""
        self.writers.close()
        self.index.close()

    def _change(self, by: Caller, what: str, **facts: Any) -> AbstractContextManager[dict[str, Any]]:
        return nullcontext({}) if self._audit_log is None else self._audit_log.change(by, self.name, what, **facts)

    def _changed(self, done: dict[str, Any], **counts: int) -> ChangeReply:
        self._clear_caches()
        generation = self.index.manifest.generation
        done |= {**counts, "generation": generation}
        return ChangeReply(len(self.index), generation, **counts)

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
