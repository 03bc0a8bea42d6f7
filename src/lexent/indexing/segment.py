"""Segments: immutable runs of documents packed into posting lists, and the tombstones of their deleted documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import array_files
from lexent.errors import ArtifactError
from lexent.indexing.codes import Codes
from lexent.indexing.packing_kernels import ways
from lexent.indexing.postings import quantisation
from lexent.indexing.postings.layout import CHUNK_DOCUMENTS, LATENTS_PER_LINE, REMEDY, PostingLists, damaged
from lexent.recipes import Recipe
from lexent.topk.kernels import group
from lexent.topk.numpy_scores import NumpyLists

PACKING_BYTES_PER_POSTING = 16
"""Memory that a posting takes while its chunk is packed."""
MAX_PROBED_DOCUMENTS = 64
"""Up to this many documents of a chunk are read by probing every posting list; more, by unpacking the chunk."""
NUMPY_SECONDS_PER_ELEMENT = 6e-8
"""What NumPy takes to read all lists of a chunk, roughly, by its elements in `shorts` and `codes`."""
_ARRAYS: dict[str, tuple[Any, int | None]] = {
    "chunks": (np.int64, 4),
    "known": (np.uint64, 8),
    "records": (np.uint32, 3),
    "shorts": (np.uint16, None),
    "codes": (np.uint8, None),
    "lengths": (np.uint16, None),
    "doublings": (np.uint32, 2),
    "packed_with": (np.float64, 2),
    "df": (np.int64, 2),
}
"""Type and width of the arrays of a segment, a .npy file each. None: one-dimensional."""
_BINARY_ARRAYS = {**_ARRAYS, "records": (np.uint32, 1), "df": (np.uint32, 2)}
"""Of a binary segment: see `lexent.indexing.postings.binary_postings`."""


@dataclass(frozen=True)
class Segment:
    """Packed posting lists of documents (see `lexent.indexing.postings.packing`), read-only, in memory or mapped."""

    arrays: dict[str, NDArray[Any]]
    size: int
    """How many latents there can be: concepts, and the words of the index up to this segment."""
    units: int | None = None
    """Sum of the lengths where it is known, so that opening need not read them."""

    @property
    def n_documents(self) -> int:
        """Number of documents, deleted ones included."""
        return len(self.arrays["lengths"])

    @property
    def lengths(self) -> NDArray[np.uint16]:
        """16-bit codes of the document lengths: see `quantisation.encode_lengths`."""
        return self.arrays["lengths"]

    def doublings(self, start: int = 0, stop: int | None = None) -> NDArray[np.uint8] | None:
        """uint8[stop - start]: doublings of some documents, see `quantisation`; None where no document has any."""
        documents, counts = self.arrays["doublings"].T.astype(np.int64)
        if not len(documents):
            return None
        found = np.zeros((self.n_documents if stop is None else stop) - start, np.uint8)
        some = (documents >= start) & (documents < start + len(found))
        found[documents[some] - start] = counts[some]
        return found

    @cached_property
    def most_doublings(self) -> int:
        """Highest number of doublings of a document."""
        return int(self.arrays["doublings"][:, 1].max(initial=0))

    @cached_property
    def n_postings(self) -> int:
        """Number of postings."""
        return int(self.arrays["df"][:, 1].sum())

    @cached_property
    def length_units(self) -> int:
        """Sum of the lengths: see `quantisation.length_units`."""
        return quantisation.length_units(self.lengths) if self.units is None else self.units

    @property
    def bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @cached_property
    def lists(self) -> Any:
        """The arrays that the kernels read, as `layout.PostingLists`."""
        return PostingLists(*(self.arrays[name] for name in PostingLists._fields))

    @cached_property
    def numpy_lists(self) -> NumpyLists:
        """The same, read without kernels."""
        return NumpyLists(self.lists)

    @property
    def is_binary(self) -> bool:
        """Whether the posting lists have no codes."""
        return bool(self.arrays["records"].shape[1] == 1)

    def compiled(self, chunk: int) -> bool:
        """Whether all of a chunk is read by the kernels."""
        start, stop = self.arrays["chunks"][chunk : chunk + 2, 2:].sum(axis=1).tolist()
        return group(binary=self.is_binary).use((stop - start) * NUMPY_SECONDS_PER_ELEMENT)

    def add_df(self, df: NDArray[np.int64]) -> None:
        """Adds the document frequency of each latent."""
        latents, counts = self.arrays["df"].T
        np.add.at(df, latents, counts)

    @staticmethod
    def pack(codes: Codes, *, size: int, recipe: Recipe) -> Segment:
        """Packs a segment in memory."""
        packer = Packer(size=size, recipe=recipe)
        packer.add(codes)
        return packer.segment()

    def unpack(self, keep: NDArray[np.bool_] | None = None) -> Iterator[Codes]:
        """Turns the posting lists back into documents, chunk by chunk; only those of `keep` where it is given."""
        for chunk, (start, stop) in enumerate(pairwise(self.arrays["chunks"][:, 0].tolist())):
            yield self._unpack(chunk, True if keep is None else keep[start:stop])

    def documents(self, positions: NDArray[np.int64]) -> Codes:
        """Reads some documents, by ascending positions: by probing the lists of a chunk, or by unpacking it."""
        parts = []
        for chunk, (start, stop) in enumerate(pairwise(self.arrays["chunks"][:, 0].tolist())):
            low, high = np.searchsorted(positions, (start, stop))
            if high - low > MAX_PROBED_DOCUMENTS or (high > low and not self.compiled(chunk)):
                keep = np.zeros(stop - start, np.bool_)
                keep[positions[low:high] - start] = True
                parts.append(self._unpack(chunk, keep))
            else:
                parts += [self._document(chunk, int(position)) for position in positions[low:high]]
        return Codes.concatenate(parts)

    def _unpack(self, chunk: int, keep: NDArray[np.bool_] | bool) -> Codes:
        start, stop = self.arrays["chunks"][chunk : chunk + 2, 0].tolist()
        wanted = np.zeros(CHUNK_DOCUMENTS, np.bool_)
        wanted[: stop - start] = keep
        if self.compiled(chunk):
            from lexent.indexing.postings import packing

            ids, codes, offsets, outcome = packing.unpack_chunk(self.lists, chunk, wanted)
        else:
            ids, codes, offsets = self.numpy_lists.documents(chunk, wanted[: stop - start])
            outcome = 0
        if outcome < 0 or (len(ids) and not 0 <= ids.min() <= ids.max() < self.size):
            raise damaged()
        doublings = self.doublings(start, stop)
        return Codes(ids, codes, offsets, doublings if doublings is None else doublings[wanted[: len(doublings)]])

    def _document(self, chunk: int, position: int) -> Codes:
        from lexent.topk import random_access

        n_lists = int(np.diff(self.arrays["chunks"][chunk : chunk + 2, 1])[0])
        ids, codes = np.empty(n_lists, np.int32), np.empty(n_lists, np.uint8)
        n = random_access.latents_of(self.lists, chunk, position, ids, codes)
        if n < 0 or (n and not 0 <= ids[:n].min() <= ids[:n].max() < self.size):
            raise damaged()
        doublings = self.doublings(position, position + 1)
        return Codes(ids[:n].copy(), codes[:n].copy(), np.array([0, n], np.int64), doublings)

    @staticmethod
    def open(folder: Path, *, size: int, n_documents: int, length_units: int, binary: bool = False) -> Segment:
        """Maps the files of a segment, and checks that their shapes fit together. binary: as its recipe is."""
        arrays = {name: _map_array(folder, name, binary=binary) for name in _ARRAYS}
        chunks, n_chunks = arrays["chunks"], len(arrays["chunks"]) - 1
        ends = [n_documents, *(len(arrays[name]) for name in ("records", "shorts", "codes"))]
        good = (
            n_chunks >= 0
            and not chunks[0].any()
            and chunks[-1].tolist() == ends
            and array_files.ascends(chunks)
            and bool((np.diff(chunks[:, 0]) <= CHUNK_DOCUMENTS).all())
            and len(arrays["lengths"]) == n_documents
            and len(arrays["packed_with"]) == n_chunks
            and len(arrays["known"]) == n_chunks * -(-size // LATENTS_PER_LINE)
            and bool((arrays["df"] >= 0).all() and (arrays["df"] <= [size - 1, n_documents]).all())
            and bool((arrays["doublings"] <= [n_documents - 1, quantisation.MAX_DOUBLINGS]).all())
        )
        if not good:
            raise ArtifactError(f'"{folder}" is damaged: its arrays do not fit together; {REMEDY}')
        return Segment(arrays, size, length_units)


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Deleted documents of a segment, and what they take from the collection's statistics."""

    mask: NDArray[np.bool_]  # [n_documents]: true where deleted
    df: NDArray[np.int64]  # [n, 2]: latents, and how many of the deleted documents have each
    length_units: int

    def __len__(self) -> int:
        return int(np.count_nonzero(self.mask))

    @staticmethod
    def of(segment: Segment, mask: NDArray[np.bool_], before: Tombstones | None = None) -> Tombstones:
        """Tombstones of a mask that includes the one before; only chunks with newly deleted documents are read."""
        newly_deleted = mask if before is None else mask & ~before.mask
        df = np.zeros(segment.size, np.int64)
        if before is not None:
            np.add.at(df, before.df[:, 0], before.df[:, 1])
        for chunk, (start, stop) in enumerate(pairwise(segment.arrays["chunks"][:, 0].tolist())):
            wanted = np.zeros(CHUNK_DOCUMENTS, np.bool_)
            wanted[: stop - start] = newly_deleted[start:stop]
            if not wanted.any():
                continue
            if not segment.compiled(chunk):
                segment.numpy_lists.count_latents(chunk, wanted, df)
                continue
            from lexent.topk import random_access

            if random_access.count_latents(segment.lists, chunk, wanted, df) < 0:
                raise damaged()
        known = np.flatnonzero(df)
        units = quantisation.length_units(segment.lengths[mask])
        return Tombstones(mask, np.stack([known, df[known]], axis=1), units)


class Packer:
    """Builds a segment from documents, in memory or on disk; holds at most one chunk unpacked."""

    def __init__(
        self,
        *,
        size: int,
        recipe: Recipe,
        folder: Path | None = None,
        memory: int | None = None,
        chunk: int = CHUNK_DOCUMENTS,
        concepts: int | None = None,
    ) -> None:
        """Begin a segment.

        folder: where to write; None for in memory. memory: limit in bytes; chunks are packed early to keep it.
        concepts: ids from here on are words, which add nothing to the length of a document; None for no words.
        """
        self.size = size
        """How many latents there can be; it may be raised while documents bring new words."""
        self.concepts = concepts
        self._max_waiting_postings = math.inf if memory is None else max(memory // PACKING_BYTES_PER_POSTING, 1)
        self._recipe = recipe
        self._values = quantisation.transformed_values(recipe)
        self._chunk = min(chunk, CHUNK_DOCUMENTS)
        self._waiting: list[Codes] = []
        self._n_waiting = 0
        self._starts = np.zeros((1, 4), np.int64)
        self._df = np.zeros(size, np.int64)
        self._latents: list[NDArray[np.uint32]] = []
        self.length_units = 0
        self._doublings: list[NDArray[np.uint32]] = [np.empty((0, 2), np.uint32)]
        self._types = _BINARY_ARRAYS if recipe.binary else _ARRAYS
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in self._types}
        self._files: dict[str, array_files.ArrayWriter] = {}
        if folder is not None:
            for name, (dtype, width) in self._types.items():
                self._files[name] = array_files.ArrayWriter(folder / f"{name}.npy", np.dtype(dtype), width)

    @property
    def n_added(self) -> int:
        """Documents added so far."""
        return self.n_documents + self._n_waiting

    @property
    def n_documents(self) -> int:
        """Documents packed so far."""
        return int(self._starts[-1, 0])

    def add(self, codes: Codes) -> None:
        """Adds documents; packs a chunk when it is full."""
        start = 0
        while len(codes) - start + self._n_waiting >= self._chunk:
            stop = start + self._chunk - self._n_waiting
            self._pack([*self._waiting, codes.slice(start, stop)])
            self._waiting, self._n_waiting, start = [], 0, stop
        if start < len(codes):
            self._waiting.append(codes.slice(start, len(codes)))
            self._n_waiting += len(codes) - start
        if sum(len(part.ids) for part in self._waiting) > self._max_waiting_postings:
            self._flush()

    def close(self) -> None:
        """Packs the remaining documents and finishes the files."""
        self._flush()
        from lexent.indexing.postings import packing

        known = np.flatnonzero(self._df)
        for latents in self._latents:  # each chunk has as many lines, so they wait for the last word
            self._put("known", packing.build_known(latents, self.size))
        self._put("chunks", self._starts)
        self._put("df", np.stack([known, self._df[known]], axis=1))
        self._put("doublings", np.concatenate(self._doublings))
        for file in self._files.values():
            file.close()

    def abandon(self) -> None:
        """Closes the files without finishing them."""
        for file in self._files.values():
            file.abandon()

    def _flush(self) -> None:
        if self._n_waiting:
            self._pack(self._waiting)
            self._waiting, self._n_waiting = [], 0

    def segment(self) -> Segment:
        """The segment that was packed in memory."""
        self.close()
        arrays = {}
        for name, parts in self._parts.items():
            dtype, width = self._types[name]
            empty = np.empty((0, width) if width else 0, dtype)
            arrays[name] = parts[0] if len(parts) == 1 else np.concatenate([empty, *parts])
            arrays[name].setflags(write=False)  # as mapped arrays are, so that each kernel is compiled once
        return Segment(arrays, self.size)

    def _put(self, name: str, array: NDArray[Any]) -> None:
        (self._files or self._parts)[name].append(array.astype(self._types[name][0], copy=False))

    def _pack(self, waiting: list[Codes]) -> None:
        codes = Codes.concatenate(waiting)
        n = len(codes)
        packing = ways(len(codes.ids))
        counted = codes.codes if self.concepts is None else np.where(codes.ids < self.concepts, codes.codes, 0)
        sums, doublings = packing.document_sums(counted.astype(np.uint8), codes.offsets, self._values), codes.doublings
        if doublings is not None:
            sums *= 2.0 ** (self._recipe.power * doublings)
        lengths = quantisation.encode_lengths(sums)
        # The collection's average length is not known yet, so the max positions use the chunk's; searches correct them.
        average = quantisation.average_length(quantisation.length_units(lengths), n)
        shifts = quantisation.narrow_shifts(lengths, average, self._recipe, doublings=doublings)
        starts, documents, posting_codes = packing.invert(codes.ids, codes.codes, codes.offsets, self.size)
        if self._recipe.binary:
            from lexent.indexing.postings import binary_postings

            packed = binary_postings.pack(starts, documents, n)
            if packed is None:  # more bytes than a record can address
                for half in (codes.slice(0, n // 2), codes.slice(n // 2, n)):
                    self._pack([half])
                return
        else:
            packed = packing.pack(starts, documents, posting_codes, shifts)
        if doublings is not None:
            some = np.flatnonzero(doublings)
            self._doublings.append(np.stack([self.n_documents + some, doublings[some]], axis=1).astype(np.uint32))
        latents, lists = packed
        self._df = np.concatenate([self._df, np.zeros(self.size - len(self._df), np.int64)]) + np.diff(starts)
        self._latents.append(latents)
        self.length_units += quantisation.length_units(lengths)
        ends = self._starts[-1] + [n, *(len(lists[name]) for name in ("records", "shorts", "codes"))]
        self._starts = np.concatenate([self._starts, ends[None]])
        arrays: dict[str, NDArray[Any]] = {
            **lists,
            "lengths": lengths,
            "packed_with": np.array([[average, quantisation.length_slope(self._recipe)]]),
        }
        for name, array in arrays.items():
            self._put(name, array)


def repacked(segment: Segment, recipe: Recipe, *, concepts: int | None = None) -> Segment:
    """Packs a segment again under another transform or a smaller cap, in memory. concepts: see `Packer`."""
    packer = Packer(size=segment.size, recipe=recipe, concepts=concepts)
    for codes in segment.unpack():
        packer.add(codes.capped(recipe.document_cap, concepts=concepts))
    return packer.segment()


def _map_array(folder: Path, name: str, *, binary: bool) -> NDArray[Any]:
    path, (dtype, width) = folder / f"{name}.npy", (_BINARY_ARRAYS if binary else _ARRAYS)[name]
    if name == "doublings" and not path.exists():  # formats 6 and 7
        return np.empty((0, 2), np.uint32)
    array = array_files.map_array(path)
    if name == "lengths" and array.dtype == np.float16:  # formats 6 and 7: the same bits
        array = array.view(np.uint16)
    if array.dtype != dtype or array.ndim != (2 if width else 1) or (width and array.shape[1] != width):
        raise ArtifactError(f'"{folder}" is damaged: {path.name} is {array.dtype}{list(array.shape)}; {REMEDY}')
    return array
