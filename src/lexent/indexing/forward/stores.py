"""What a segment keeps of each document beside the lists: stores, named groups of arrays, a .npy file each.

A store's arrays grow as documents come. What each holds says its mode: rows, one after the other, or running sums that
begin with 0. So any store can be written, joined and merged the same way, and a kind of store says only what its arrays
are and how to take some of its documents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from lexent import artifact
from lexent.errors import ArtifactError
from lexent.indexing.segment import REMEDY, Codes
from lexent.recipes import Recipe

STEP = 4096
"""Documents that are copied at a time."""
EXTRAS = ("dense", "lexical")
"""What an index may keep for comparison with other ways to search; of words nothing is stored, as texts are."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Column:
    """One array of a store."""

    types: tuple[Any, ...]
    """The types of number it may have."""
    mode: Literal["rows", "running"] = "rows"
    width: int | None = None
    """Numbers in a row; None for one, -1 for any."""


@dataclass(frozen=True)
class Store(ABC):
    """A store in memory or mapped, read-only."""

    arrays: Arrays
    name: ClassVar[str]
    columns: ClassVar[Mapping[str, Column]]

    def __post_init__(self) -> None:
        for array in self.arrays.values():
            array.setflags(write=False)  # as when mapped: one compiled form of each kernel serves both

    @abstractmethod
    def __len__(self) -> int:
        """Of how many documents."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows it holds: of tokens, or of documents."""

    @abstractmethod
    def take(self, documents: NDArray[np.int64]) -> Self:
        """The given documents, in that order."""

    @abstractmethod
    def fits(self, *, size: int, n_documents: int) -> bool:
        """Whether the arrays fit together, as far as that is cheap to see. size: how many latents there are."""

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """The documents of all parts, in order; at least one part."""
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
        """Maps the files of a store; refuses those that do not fit together."""
        arrays: Arrays = {}
        for name, column in cls.columns.items():
            path = folder / f"{cls.name}-{name}.npy"
            array = arrays[name] = artifact.map_array(path)
            shape = array.ndim == (1 if column.width is None else 2) and column.width in (None, -1, array.shape[-1])
            if array.dtype not in column.types or not shape:
                raise ArtifactError(f'"{folder}" is damaged: {path.name} is {array.dtype}{list(array.shape)}; {REMEDY}')
        found = cls(arrays)
        if not found.fits(size=size, n_documents=n_documents):
            raise ArtifactError(f'"{folder}" is damaged: the arrays of {cls.name}-*.npy do not fit together; {REMEDY}')
        return found


class StoreWriter:
    """A store's files, which grow; they are made when the first documents come."""

    def __init__(self, folder: Path, kind: type[Store]) -> None:
        self._folder, self._kind = folder, kind
        self._files: dict[str, artifact.ArrayWriter] = {}
        self._ends: Arrays = {}
        """For running sums the last of them."""
        self.rows = 0

    def append(self, store: Store) -> None:
        assert type(store) is self._kind
        for name, column in self._kind.columns.items():
            array = store.arrays[name]
            if name not in self._files:
                width = array.shape[1] if array.ndim == 2 else None
                self._files[name] = artifact.ArrayWriter(self._path(name), array.dtype, width)
                if column.mode == "running":
                    self._files[name].append(array[:1])
                    self._ends[name] = array[0]
            if column.mode == "running":
                moved = array[1:] + self._ends[name]
                self._files[name].append(moved)
                self._ends[name] = moved[-1] if len(moved) else self._ends[name]
            else:
                self._files[name].append(array)
        self.rows += store.rows

    def copy(self, store: Store, documents: NDArray[np.int64]) -> None:
        """Appends some documents of another store, holding few of them at a time."""
        for start in range(0, len(documents), STEP):
            self.append(store.take(documents[start : start + STEP]))

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def abandon(self) -> None:
        """Closes the files without finishing them."""
        for file in self._files.values():
            with suppress(OSError):
                file.abandon()

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._kind.name}-{name}.npy"


def kinds(recipe: Recipe, extras: Sequence[str]) -> list[type[Store]]:
    """The stores that the segments of an index have: what its recipe needs, and what was asked for beside."""
    from lexent.indexing.dense import DenseStore
    from lexent.indexing.tokens import TokenStore

    found: list[type[Store]] = [TokenStore] if recipe.match == "maxsim" else []
    return [*found, DenseStore] if "dense" in extras else found


Stores = dict[str, Store]
"""The stores of one segment, by name."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a segment keeps of some documents, beside their texts."""

    codes: Codes
    stores: Stores


def opened(folder: Path, kinds: Sequence[type[Store]], *, size: int, n_documents: int) -> Stores:
    return {kind.name: kind.open(folder, size=size, n_documents=n_documents) for kind in kinds}
