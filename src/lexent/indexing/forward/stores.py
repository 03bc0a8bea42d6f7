"""Forward index: what a segment keeps of each document beside its posting lists, in stores of named arrays.

A store has a .npy file for each array, and its arrays grow as documents are added. A column's mode says what its array
holds: rows, one after the other, or running sums that begin with 0. So all stores are written, concatenated and merged
by the same code, and a kind of store only declares its columns and how to select documents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from lexent import array_files
from lexent.errors import ArtifactError
from lexent.indexing.postings.layout import REMEDY

COPY_BATCH_DOCUMENTS = 4096
"""Documents that are copied at a time in a merge."""
EXTRAS = ("dense", "lexical")
"""What an index can keep for other kinds of search: vectors, and words, which stand in the posting lists."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Column:
    """One array of a store."""

    types: tuple[Any, ...]
    """Allowed types of its numbers."""
    mode: Literal["rows", "running"] = "rows"
    width: int | None = None
    """Numbers in a row; None for a one-dimensional array, -1 for any width."""


@dataclass(frozen=True)
class ForwardStore(ABC):
    """One store of a forward index, in memory or mapped, read-only."""

    arrays: Arrays
    name: ClassVar[str]
    columns: ClassVar[Mapping[str, Column]]

    def __post_init__(self) -> None:
        for array in self.arrays.values():
            array.setflags(write=False)  # as mapped arrays are, so that each kernel is compiled once

    @abstractmethod
    def __len__(self) -> int:
        """Number of documents."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Number of rows: of tokens, or of documents."""

    @abstractmethod
    def take(self, documents: NDArray[np.int64]) -> Self:
        """Selects documents, in that order."""

    @abstractmethod
    def fits(self, *, size: int, n_documents: int) -> bool:
        """Whether the shapes of the arrays fit together. size: number of latents."""

    @property
    def bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Joins the documents of one or more parts, in order."""
        if len(parts) == 1:
            return parts[0]
        joined: Arrays = {}
        for name, column in cls.columns.items():
            arrays = [part.arrays[name] for part in parts]
            if column.mode == "running":
                ends = np.cumsum([array[-1] for array in arrays], axis=0)
                moved = [array[1:] + end for array, end in zip(arrays[1:], ends[:-1], strict=True)]
                joined[name] = np.concatenate([arrays[0], *moved])
            else:
                joined[name] = np.concatenate(arrays)
        return cls(joined)

    @classmethod
    def open(cls, folder: Path, *, size: int, n_documents: int) -> Self:
        """Maps the files of a store, and checks that their shapes fit together."""
        arrays: Arrays = {}
        for name, column in cls.columns.items():
            path = folder / f"{cls.name}-{name}.npy"
            array = arrays[name] = array_files.map_array(path)
            shape = array.ndim == (1 if column.width is None else 2) and column.width in (None, -1, array.shape[-1])
            if array.dtype not in column.types or not shape:
                raise ArtifactError(f'"{folder}" is damaged: {path.name} is {array.dtype}{list(array.shape)}; {REMEDY}')
        found = cls(arrays)
        if not found.fits(size=size, n_documents=n_documents):
            raise ArtifactError(f'"{folder}" is damaged: the arrays of {cls.name}-*.npy do not fit together; {REMEDY}')
        return found


class ForwardStoreWriter:
    """Appends documents to the files of a store, which are created with the first documents."""

    def __init__(self, folder: Path, kind: type[ForwardStore]) -> None:
        self._folder, self._kind = folder, kind
        self._files: dict[str, array_files.ArrayWriter] = {}
        self._ends: Arrays = {}
        """The last element of each array of running sums."""
        self.rows = 0

    def append(self, store: ForwardStore) -> None:
        """Appends the documents of a store in memory."""
        assert type(store) is self._kind
        for name, column in self._kind.columns.items():
            array = store.arrays[name]
            if name not in self._files:
                width = array.shape[1] if array.ndim == 2 else None
                path = self._folder / f"{self._kind.name}-{name}.npy"
                self._files[name] = array_files.ArrayWriter(path, array.dtype, width)
                if column.mode == "running":
                    self._files[name].append(array[:1])
                    self._ends[name] = array[0]
            if column.mode == "running":
                array = array[1:] + self._ends[name]
                self._ends[name] = array[-1] if len(array) else self._ends[name]
            self._files[name].append(array)
        self.rows += store.rows

    def copy(self, store: ForwardStore, documents: NDArray[np.int64]) -> None:
        """Appends some documents of another store, in batches. Of no documents, the files are made all the same."""
        for start in range(0, max(len(documents), 1), COPY_BATCH_DOCUMENTS):
            self.append(store.take(documents[start : start + COPY_BATCH_DOCUMENTS]))

    def close(self) -> None:
        """Finishes the files."""
        for file in self._files.values():
            file.close()

    def abandon(self) -> None:
        """Closes the files without finishing them."""
        for file in self._files.values():
            file.abandon()


ForwardIndex = dict[str, ForwardStore]
"""The forward index of one segment: its stores by name."""
