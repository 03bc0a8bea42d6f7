"""Scores, codes and frequencies of a segment with NumPy: the twin of `random_access`, and of `weighted` for a query.

A chunk of a small segment is decoded whole when it is first read, and kept; of a large one the lists that are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings import numpy_binary, numpy_lists
from lexent.indexing.postings.layout import PostingLists, damaged
from lexent.indexing.postings.numpy_lists import Postings, latents_in

KEPT_ELEMENTS = 8_000_000
"""A chunk of at most so many elements in `shorts` and `codes` is kept decoded: 3 bytes for each of its postings."""
LISTS_AT_A_TIME = 2048
"""Lists of a large chunk that are decoded at a time where all are read."""


class NumpyLists:
    """The posting lists of a segment, read with NumPy."""

    def __init__(self, lists: PostingLists) -> None:
        self.lists = lists
        self._is_binary = lists.records.shape[1] == 1
        self._latents: dict[int, NDArray[np.int64]] = {}
        self._decoded: dict[int, Postings] = {}

    @property
    def n_chunks(self) -> int:
        """Chunks of the segment."""
        return len(self.lists.chunks) - 1

    def all_scores(
        self,
        latents: NDArray[np.uint32],
        weights: NDArray[np.float32],
        curve: NDArray[np.float32],
        shifts: NDArray[np.uint16],
        scores: NDArray[np.int32],
        matched: NDArray[np.bool_],
    ) -> None:
        """Scores all documents, and marks those that share a latent. weights: scaled, as `prepare_terms` gives them."""
        for chunk in range(self.n_chunks):
            first, stop = self._documents_of(chunk)
            which, found = self.postings(chunk, latents)
            weight, documents = weights[which][found.owners()], found.documents.astype(np.int64)
            impacts = curve[2 * found.codes.astype(np.int64) + shifts[first:stop][documents]]
            contributions = np.trunc(impacts * weight)
            contributions = np.where(weight > 0, np.maximum(contributions, 1), np.minimum(contributions, -1))
            sums = np.bincount(documents, contributions, minlength=stop - first)  # in float64: exact
            scores[first:stop] += sums.astype(np.int32)
            matched[first:stop][documents] = True

    def codes_of(self, latents: NDArray[np.uint32], document: int) -> NDArray[np.uint8]:
        """uint8[len(latents)]: codes of one document; 0 for latents that it lacks."""
        out = np.zeros(len(latents), np.uint8)
        chunk = int(np.searchsorted(self.lists.chunks[:, 0], document, side="right")) - 1
        which, found = self.postings(chunk, latents)
        here = np.flatnonzero(found.documents == document - self._documents_of(chunk)[0])
        out[which[found.owners()[here]]] = found.codes[here]
        return out

    def count_within(self, latents: NDArray[np.uint32], allowed: NDArray[np.bool_], df: NDArray[np.int64]) -> None:
        """Adds the document frequencies of some latents among the allowed documents; all where the mask is empty."""
        for chunk in range(self.n_chunks):
            first, stop = self._documents_of(chunk)
            which, found = self.postings(chunk, latents)
            counted = allowed[first:stop][found.documents] if len(allowed) else np.ones(len(found.documents), np.bool_)
            df += np.bincount(which[found.owners()[counted]], minlength=len(df))

    def count_latents(self, chunk: int, selected: NDArray[np.bool_], df: NDArray[np.int64]) -> None:
        """Adds the document frequencies of all latents among the selected documents of a chunk."""
        latents = self._latents_in(chunk)
        if len(latents) and latents[-1] >= len(df):
            raise damaged()
        for start, found in self._all(chunk):
            owners = found.owners()[selected[found.documents]]
            np.add.at(df, latents[start + owners], 1)

    def documents(
        self, chunk: int, keep: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64]]:
        """Some documents of a chunk: ids, ascending in each, codes, and offsets. keep: bool[n], those to give."""
        latents, rows, documents, codes = self._latents_in(chunk), [], [], []
        for start, found in self._all(chunk):
            here = np.flatnonzero(keep[found.documents])
            rows.append(start + found.owners()[here])
            documents.append(found.documents[here])
            codes.append(found.codes[here])
        owners = np.concatenate([np.empty(0, np.uint16), *documents])
        order = np.argsort(owners, kind="stable")
        ids = latents[np.concatenate([np.empty(0, np.int64), *rows])[order]].astype(np.int32)
        counts = np.bincount(owners, minlength=len(keep))[np.flatnonzero(keep)]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        return ids, np.concatenate([np.empty(0, np.uint8), *codes])[order], offsets

    def postings(self, chunk: int, latents: NDArray[np.uint32]) -> tuple[NDArray[np.int64], Postings]:
        """The lists of some latents in a chunk: which of these have one, and their postings."""
        known = self._latents_in(chunk)
        rows = np.searchsorted(known, latents)
        which = np.flatnonzero(known[np.minimum(rows, len(known) - 1)] == latents) if len(known) else rows[:0]
        whole = self._whole(chunk)
        return which, self.decode(chunk, rows[which]) if whole is None else whole.take(rows[which])

    def decode(self, chunk: int, rows: NDArray[np.int64]) -> Postings:
        """The postings of some lists of a chunk, by their numbers there."""
        read = numpy_binary.decode if self._is_binary else numpy_lists.decode
        return read(self.lists, chunk, rows)

    def _all(self, chunk: int) -> Iterable[tuple[int, Postings]]:
        whole = self._whole(chunk)
        return [(0, whole)] if whole is not None else _Parts(self, chunk, len(self._latents_in(chunk)))

    def _whole(self, chunk: int) -> Postings | None:
        """The chunk decoded whole; None where that is too much to keep."""
        if chunk not in self._decoded:
            latents = self._latents_in(chunk)
            first, stop = self.lists.chunks[chunk : chunk + 2, 2:].sum(axis=1).tolist()
            if stop - first > KEPT_ELEMENTS:
                return None
            self._decoded[chunk] = self.decode(chunk, np.arange(len(latents)))
        return self._decoded[chunk]

    def _latents_in(self, chunk: int) -> NDArray[np.int64]:
        if chunk not in self._latents:
            self._latents[chunk] = latents_in(self.lists, chunk)
        return self._latents[chunk]

    def _documents_of(self, chunk: int) -> tuple[int, int]:
        first, stop = self.lists.chunks[chunk : chunk + 2, 0].tolist()
        return first, stop


class _Parts:
    """All lists of a large chunk, some at a time."""

    def __init__(self, lists: NumpyLists, chunk: int, n_lists: int) -> None:
        self._lists, self._chunk, self._n = lists, chunk, n_lists

    def __iter__(self) -> Iterator[tuple[int, Postings]]:
        for start, stop in pairwise([*range(0, self._n, LISTS_AT_A_TIME), self._n]):
            yield start, self._lists.decode(self._chunk, np.arange(start, stop))


def prepare_terms(
    ids: NDArray[np.int32], weights: NDArray[np.float32], scale: float, size: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """A query's latents below `size` of non-zero weight, ascending, and their scaled weights."""
    order = np.argsort(ids, kind="stable")
    ids, weights = ids[order], weights[order]
    kept = (ids >= 0) & (ids < size) & (weights != 0)
    return ids[kept].astype(np.uint32), weights[kept] * np.float32(scale)
