"""One index that is served: the view that readers have, and changes to it, one after the other."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from lexent.artifact import MANIFEST
from lexent.errors import InputError
from lexent.search import Index
from lexent.search.view import View
from lexent.server.settings import Limits
from lexent.server.turns import Turns
from lexent.server.workers import Workers
from lexent.types import Document

VIEWS = 4
"""Views with settings of their own that are kept; each may hold a copy of the postings."""
REMEMBERED = 256
"""Answers about concepts and coded documents that are kept."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a change did."""

    added: int = 0
    replaced: int = 0
    deleted: int = 0

    def to_dict(self, index: Index) -> dict[str, Any]:
        counts = {"added": self.added, "replaced": self.replaced, "deleted": self.deleted}
        return {**counts, "documents": len(index), "generation": index.manifest.generation}


class Memory:
    """The last answers to costly questions, by key. One generation of an index never changes, so they stay true."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size, self._lock = size, threading.Lock()
        self._held: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any) -> Any:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: Any, value: Any) -> Any:
        with self._lock:
            self._held[key] = value
            self._held.move_to_end(key)
            while len(self._held) > self._size:
                self._held.popitem(last=False)
        return value

    def clear(self) -> None:
        with self._lock:
            self._held.clear()


class Served:
    """An index, open for reading by many and for writing by one at a time."""

    def __init__(self, name: str, index: Index, turns: Turns, limits: Limits) -> None:
        self.name, self.index, self.turns, self.limits = name, index, turns, limits
        self.memory = Memory()
        self.writers = Workers(threads=1, most=limits.writes, seconds=None, name=f"lexent-write-{name}")
        self._views: OrderedDict[bytes, View] = OrderedDict()
        self._lock = threading.Lock()
        self._seen = self._mark()

    # --- read --------------------------------------------------------------------------------------------------

    def view(self, settings: Mapping[str, Any] | None = None) -> View:
        """The index as it is now, weighed by other settings where some are given."""
        view = self.index.view
        if not settings:
            return view
        key = orjson.dumps([view.manifest.generation, settings], option=orjson.OPT_SORT_KEYS)
        with self._lock:
            known = self._views.get(key)
            if known is not None:
                self._views.move_to_end(key)
                return known
        try:
            made = View(view.documents, view.parts, settings=dict(settings))
        except TypeError as error:  # a text where a number belongs
            raise InputError(f"the settings {dict(settings)} cannot be used: {error}") from error
        with self._lock:
            self._views[key] = made
            while len(self._views) > VIEWS:
                self._views.popitem(last=False)
        return made

    def refresh(self) -> bool:
        """Shows what other processes changed; a look at one file where nothing did."""
        mark = self._mark()
        if mark == self._seen:
            return False
        changed = self.index.refresh()
        self._seen = mark
        if changed:
            self._forget()
        return changed

    def stats(self) -> dict[str, Any]:
        return {"name": self.name, **self.index.info(), "path": self.index.path.name}

    # --- change, in the one thread that writes -----------------------------------------------------------------

    def add(self, documents: Sequence[Document], *, upsert: bool) -> Change:
        """Adds documents, all of them or none; they are on the disk when this returns."""
        before = len(self.index)
        with self.turns.in_bulk():
            count = self.index.add(documents, upsert=upsert)
        self._forget()
        return Change(added=count, replaced=before + count - len(self.index))

    def delete(self, ids: Iterable[str]) -> Change:
        count = self.index.delete(ids)
        self._forget()
        return Change(deleted=count)

    def rename(self, concept: int, label: str | None) -> None:
        """Gives a concept the user's name; None gives it back its own."""
        self.index.rename(concept, label)
        self.memory.clear()

    def close(self) -> None:
        self.writers.close()
        self.index.close()

    def _forget(self) -> None:
        self.memory.clear()
        with self._lock:
            self._views.clear()

    def _mark(self) -> tuple[int, int, int]:
        """Changes when the manifest is replaced."""
        try:
            found = os.stat(self.index.path / MANIFEST)
        except FileNotFoundError:  # being replaced by a new build, or removed
            return (0, 0, 0)
        return (found.st_mtime_ns, found.st_ino, found.st_size)
