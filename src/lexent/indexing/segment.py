"""A segment: a run of documents packed into lists, written once and never changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import artifact
from lexent.errors import ArtifactError
from lexent.indexing import scale
from lexent.recipes import Recipe
from lexent.types import SparseVectors

CHUNK = 65_536
"""Documents of a chunk, at most. Also in `packing`, which needs Numba."""
BYTES_OF_AN_ENTRY = 16
"""What one latent of one document takes while its chunk is packed."""
GROUP = 448
"""Also in `packing`."""
UNPACKED = 64
"""More documents than this are got by unpacking their chunk; fewer, by asking every list for each of them."""
_TYPES: dict[str, Any] = {
    "chunks": np.int64,
    "known": np.uint64,
    "records": np.uint32,
    "shorts": np.uint16,
    "codes": np.uint8,
    "lengths": np.float16,
    "packed_with": np.float64,
    "df": np.int64,
}
"""The arrays of a segment, a .npy file each."""
_WIDTHS = {"chunks": 4, "known": 8, "records": 3, "packed_with": 2, "df": 2}
_BINARY_TYPES = {**_TYPES, "df": np.uint32}
_BINARY_WIDTHS = {**_WIDTHS, "records": 1}
"""Of a segment that keeps only which latents a document has: see `lexent.indexing.bare`."""


@dataclass(frozen=True, slots=True)
class Codes:
    """Documents as latents and 8-bit codes, before they are packed."""

    ids: NDArray[np.int32]  # [n_entries], ascending within a document
    codes: NDArray[np.uint8]  # [n_entries], none of them 0
    offsets: NDArray[np.int64]  # [n_documents + 1]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def of(vectors: SparseVectors, recipe: Recipe) -> Codes:
        """Pooled vectors, before the transform; at most the recipe's cap of each is kept, by code, lower ids first.

        For a binary recipe by value, and all that are kept have the code of 1.
        """
        if recipe.binary:
            from lexent.weighting import transform

            kept = transform(vectors, power=1.0, cap=recipe.document_cap)
            return Codes(kept.ids, np.full(len(kept.ids), scale.ONE, np.uint8), kept.offsets)
        encode = scale.encode if recipe.match == "documents" else scale.encode_linear
        return Codes(vectors.ids, encode(vectors.values), vectors.offsets).capped(recipe.document_cap)

    def capped(self, cap: int | None) -> Codes:
        counts = np.diff(self.offsets)
        if cap is None or not len(counts) or int(counts.max()) <= cap:
            return self
        from lexent.weighting import kernels

        kept = kernels.strongest(self.codes.astype(np.float32), self.offsets, cap)
        offsets = np.concatenate([[0], np.cumsum(np.minimum(counts, cap))]).astype(np.int64)
        return Codes(self.ids[kept], self.codes[kept], offsets)

    @staticmethod
    def concatenate(parts: list[Codes]) -> Codes:
        if len(parts) == 1:
            return parts[0]
        counts = [np.diff(part.offsets) for part in parts]
        return Codes(
            ids=np.concatenate([np.empty(0, np.int32), *(part.ids for part in parts)]),
            codes=np.concatenate([np.empty(0, np.uint8), *(part.codes for part in parts)]),
            offsets=np.concatenate([np.zeros(1, np.int64), *counts]).cumsum(),
        )

    def slice(self, start: int, stop: int) -> Codes:
        first, last = self.offsets[start], self.offsets[stop]
        return Codes(self.ids[first:last], self.codes[first:last], self.offsets[start : stop + 1] - first)


@dataclass(frozen=True)
class Segment:
    """The packed lists of some documents (see `lexent.indexing.packing`), in memory or mapped, read-only."""

    arrays: dict[str, NDArray[Any]]
    size: int
    """How many latents there can be."""
    units: int | None = None
    """The sum of the lengths where it is known, so that opening need not read them."""

    @property
    def n_documents(self) -> int:
        return len(self.arrays["lengths"])

    @property
    def lengths(self) -> NDArray[np.float16]:
        return self.arrays["lengths"]

    @cached_property
    def n_postings(self) -> int:
        return int(self.arrays["df"][:, 1].sum())

    @cached_property
    def length_units(self) -> int:
        return scale.length_units(self.lengths) if self.units is None else self.units

    @property
    def bytes(self) -> int:
        """All that a search reads."""
        return sum(array.nbytes for array in self.arrays.values())

    @cached_property
    def lists(self) -> Any:
        """The arrays that the kernels read, as a `packing.Lists`."""
        from lexent.indexing.packing import Lists

        return Lists(*(self.arrays[name] for name in Lists._fields))

    def add_df(self, df: NDArray[np.int64]) -> None:
        """Adds how many documents have each latent."""
        latents, counts = self.arrays["df"].T
        np.add.at(df, latents, counts)

    @staticmethod
    def pack(codes: Codes, *, size: int, recipe: Recipe) -> Segment:
        """A segment in memory."""
        packer = Packer(size=size, recipe=recipe)
        packer.add(codes)
        return packer.segment()

    def unpack(self, keep: NDArray[np.bool_] | None = None) -> Iterator[Codes]:
        """The documents again, chunk by chunk; those that `keep` names, where it is given."""
        starts = self.arrays["chunks"][:, 0]
        for chunk in range(len(starts) - 1):
            yield self._unpack(chunk, True if keep is None else keep[starts[chunk] : starts[chunk + 1]])

    def documents(self, positions: NDArray[np.int64]) -> Codes:
        """Some documents, by ascending positions: of each chunk, few are looked up in its lists, many are unpacked."""
        starts, parts = self.arrays["chunks"][:, 0], []
        for chunk in range(len(starts) - 1):
            low, high = np.searchsorted(positions, starts[chunk : chunk + 2])
            if high - low > UNPACKED:
                keep = np.zeros(int(starts[chunk + 1] - starts[chunk]), np.bool_)
                keep[positions[low:high] - starts[chunk]] = True
                parts.append(self._unpack(chunk, keep))
            else:
                parts += [self._document(chunk, int(position)) for position in positions[low:high]]
        return Codes.concatenate(parts)

    def _unpack(self, chunk: int, keep: NDArray[np.bool_] | bool) -> Codes:
        from lexent.indexing import packing

        starts = self.arrays["chunks"][:, 0]
        wanted = np.zeros(CHUNK, np.bool_)
        wanted[: starts[chunk + 1] - starts[chunk]] = keep
        ids, codes, offsets, outcome = packing.unpack_chunk(self.lists, chunk, wanted)
        if outcome < 0 or (len(ids) and not 0 <= ids.min() <= ids.max() < self.size):
            raise damaged()
        return Codes(ids, codes, offsets)

    def _document(self, chunk: int, position: int) -> Codes:
        from lexent.indexing import tallies

        room = int(np.diff(self.arrays["chunks"][chunk : chunk + 2, 1])[0])
        ids, codes = np.empty(room, np.int32), np.empty(room, np.uint8)
        n = tallies.latents_of(self.lists, chunk, position, ids, codes)
        if n < 0 or (n and not 0 <= ids[:n].min() <= ids[:n].max() < self.size):
            raise damaged()
        return Codes(ids[:n].copy(), codes[:n].copy(), np.array([0, n], np.int64))

    @staticmethod
    def open(folder: Path, *, size: int, n_documents: int, length_units: int, binary: bool = False) -> Segment:
        """Maps the files of a segment; refuses those that do not fit together. binary: as its recipe is."""
        arrays = {name: _mapped(folder, name, binary=binary) for name in _TYPES}
        chunks, n_chunks = arrays["chunks"], len(arrays["chunks"]) - 1
        ends = [n_documents, *(len(arrays[name]) for name in ("records", "shorts", "codes"))]
        good = (
            n_chunks >= 0
            and not chunks[0].any()
            and chunks[-1].tolist() == ends
            and bool((np.diff(chunks, axis=0) >= 0).all())
            and bool((np.diff(chunks[:, 0]) <= CHUNK).all())
            and len(arrays["lengths"]) == n_documents
            and len(arrays["packed_with"]) == n_chunks
            and len(arrays["known"]) == n_chunks * -(-size // GROUP)
            and (not len(arrays["df"]) or 0 <= arrays["df"][:, 0].min() <= arrays["df"][:, 0].max() < size)
            and (not len(arrays["df"]) or 0 <= arrays["df"][:, 1].min() <= arrays["df"][:, 1].max() <= n_documents)
        )
        if not good:
            raise ArtifactError(f'"{folder}" is damaged: its arrays do not fit together; {REMEDY}')
        return Segment(arrays, size, length_units)


@dataclass(frozen=True, slots=True)
class Deleted:
    """The documents of a segment that no longer count, and what that takes from the collection's statistics."""

    mask: NDArray[np.bool_]  # [n_documents]: true where deleted
    df: NDArray[np.int64]  # [n, 2]: latents, and how many of the deleted documents have each
    length_units: int

    def __len__(self) -> int:
        return int(np.count_nonzero(self.mask))

    @staticmethod
    def of(segment: Segment, mask: NDArray[np.bool_], before: Deleted | None = None) -> Deleted:
        """For a mask that holds all of the one before; only chunks with newly deleted documents are read."""
        from lexent.indexing import tallies

        fresh = mask if before is None else mask & ~before.mask
        df = np.zeros(segment.size, np.int64)
        if before is not None:
            np.add.at(df, before.df[:, 0], before.df[:, 1])
        starts = segment.arrays["chunks"][:, 0]
        for chunk in range(len(starts) - 1):
            wanted = np.zeros(CHUNK, np.bool_)
            wanted[: starts[chunk + 1] - starts[chunk]] = fresh[starts[chunk] : starts[chunk + 1]]
            if wanted.any() and tallies.count_latents(segment.lists, chunk, wanted, df) < 0:
                raise damaged()
        known = np.flatnonzero(df)
        units = scale.length_units(segment.lengths[mask])
        return Deleted(mask, np.stack([known, df[known]], axis=1), units)


class Packer:
    """Documents to a segment, a chunk at a time, in memory or on disk: holds no more than one chunk unpacked."""

    def __init__(
        self, *, size: int, recipe: Recipe, folder: Path | None = None, memory: int | None = None, chunk: int = CHUNK
    ) -> None:
        """folder: where to write to. memory: bytes to stay within; chunks are packed sooner to keep to it."""
        self.size = size
        self._room = None if memory is None else max(memory // BYTES_OF_AN_ENTRY, 1)
        self._recipe = recipe
        self._values = scale.transformed(recipe)
        self._types, self._widths = (_BINARY_TYPES, _BINARY_WIDTHS) if recipe.binary else (_TYPES, _WIDTHS)
        self._chunk = min(chunk, CHUNK)
        self._waiting: list[Codes] = []
        self._n_waiting = 0
        self._starts = np.zeros((1, 4), np.int64)
        self._df = np.zeros(size, np.int64)
        self.length_units = 0
        self._parts: dict[str, artifact.ArrayWriter | list[NDArray[Any]]] = {
            name: []
            if folder is None
            else artifact.ArrayWriter(folder / f"{name}.npy", np.dtype(dtype), self._widths.get(name))
            for name, dtype in self._types.items()
        }

    @property
    def n_documents(self) -> int:
        """Packed so far."""
        return int(self._starts[-1, 0])

    def add(self, codes: Codes) -> None:
        start = 0
        while len(codes) - start + self._n_waiting >= self._chunk:
            stop = start + self._chunk - self._n_waiting
            self._pack([*self._waiting, codes.slice(start, stop)])
            self._waiting, self._n_waiting, start = [], 0, stop
        if start < len(codes):
            self._waiting.append(codes.slice(start, len(codes)))
            self._n_waiting += len(codes) - start
        if self._room is not None and sum(len(part.ids) for part in self._waiting) > self._room:
            self._flush()

    def close(self) -> None:
        """Packs what is left and writes the rest; the files are whole afterwards."""
        self._flush()
        known = np.flatnonzero(self._df)
        self._put("chunks", self._starts)
        self._put("df", np.stack([known, self._df[known]], axis=1))
        for part in self._parts.values():
            if isinstance(part, artifact.ArrayWriter):
                part.close()

    def abandon(self) -> None:
        """Closes the files without finishing them."""
        for part in self._parts.values():
            if isinstance(part, artifact.ArrayWriter):
                with suppress(OSError):  # a full disk refuses what is still held
                    part.abandon()

    def _flush(self) -> None:
        if self._n_waiting:
            self._pack(self._waiting)
            self._waiting, self._n_waiting = [], 0

    def segment(self) -> Segment:
        """What was packed in memory."""
        self.close()
        arrays = {}
        for name, parts in self._parts.items():
            assert isinstance(parts, list)
            width = self._widths.get(name)
            empty = np.empty((0, width) if width else 0, self._types[name])
            arrays[name] = parts[0] if len(parts) == 1 else np.concatenate([empty, *parts])
            arrays[name].setflags(write=False)  # as when mapped: one compiled form of each kernel serves both
        return Segment(arrays, self.size)

    def _put(self, name: str, array: NDArray[Any]) -> None:
        part = self._parts[name]
        array = array.astype(self._types[name], copy=False)
        part.append(array)

    def _pack(self, waiting: list[Codes]) -> None:
        from lexent.indexing import bare, packing

        codes = Codes.concatenate(waiting)
        n = len(codes)
        lengths = np.minimum(packing.sums_of(codes.codes, codes.offsets, self._values), 65_504).astype(np.float16)
        # The collection's average is not known yet; the chunk's is near it. How far off it was is made up for later.
        average = scale.average_length(scale.length_units(lengths), n)
        shifts = scale.shifts(lengths, average, self._recipe)
        starts, documents, posting_codes = packing.invert(codes.ids, codes.codes, codes.offsets, self.size)
        if self._recipe.binary:
            made = bare.pack(starts, documents, n)
            if made is None:  # more than the records of one chunk can say
                for half in (codes.slice(0, n // 2), codes.slice(n // 2, n)):
                    self._pack([half])
                return
        else:
            made = packing.pack(starts, documents, posting_codes, shifts)
        latents, lists = made
        self._df += np.diff(starts)
        self.length_units += scale.length_units(lengths)
        ends = self._starts[-1] + [n, *(len(lists[name]) for name in ("records", "shorts", "codes"))]
        self._starts = np.concatenate([self._starts, ends[None]])
        arrays: dict[str, NDArray[Any]] = {
            "known": packing.mark_known(latents, self.size),
            **lists,
            "lengths": lengths,
            "packed_with": np.array([[average, scale.slope(self._recipe)]]),
        }
        for name, array in arrays.items():
            self._put(name, array)


REMEDY = "check it with `lexent verify DIR`, and build it again: lexent index CORPUS --out DIR --overwrite"


def damaged() -> ArtifactError:
    return ArtifactError(f"the index is damaged: a list lies outside its chunk; {REMEDY}")


def repacked(segment: Segment, recipe: Recipe) -> Segment:
    """The segment under another transform or a smaller cap, in memory."""
    packer = Packer(size=segment.size, recipe=recipe)
    for codes in segment.unpack():
        packer.add(codes.capped(recipe.document_cap))
    return packer.segment()


def _mapped(folder: Path, name: str, *, binary: bool) -> NDArray[Any]:
    types, widths = (_BINARY_TYPES, _BINARY_WIDTHS) if binary else (_TYPES, _WIDTHS)
    path, width = folder / f"{name}.npy", widths.get(name)
    array = artifact.map_array(path)
    if array.dtype != types[name] or array.ndim != (2 if width else 1) or (width and array.shape[1] != width):
        raise ArtifactError(f'"{folder}" is damaged: {path.name} is {array.dtype}{list(array.shape)}; {REMEDY}')
    return array
