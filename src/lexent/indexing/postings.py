"""The inverted index: for each latent the documents that have it, with their weights. Three mappable .npy files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import artifact
from lexent.errors import ArtifactError
from lexent.types import SparseVectors

_FILES = {"offsets": "postings/offsets.npy", "documents": "postings/documents.npy", "weights": "postings/weights.npy"}


@dataclass(frozen=True, slots=True)
class Postings:
    """Latent j owns the entries offsets[j] to offsets[j + 1]. The arrays are read-only, in memory or mapped."""

    offsets: NDArray[np.int64]  # [n_latents + 1]
    documents: NDArray[np.int32]  # [n_postings], ascending within a latent
    weights: NDArray[np.float32]  # [n_postings]
    n_documents: int

    @property
    def n_latents(self) -> int:
        return len(self.offsets) - 1

    @property
    def df(self) -> NDArray[np.int64]:
        """int64[n_latents]: how many documents have each latent."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.documents)

    @staticmethod
    def of(vectors: SparseVectors) -> Postings:
        """The postings of documents given by their stored weights, in document order."""
        from lexent.indexing import kernels

        arrays = kernels.invert(vectors.ids, vectors.values, vectors.offsets, vectors.size)
        for array in arrays:
            array.setflags(write=False)  # as when mapped: one compiled form of each kernel serves both
        return Postings(*arrays, n_documents=len(vectors))

    def write(self, folder: Path) -> None:
        with artifact.disk_errors(folder):
            (folder / "postings").mkdir()
        for field, name in _FILES.items():
            artifact.write_array(folder / name, getattr(self, field))

    @staticmethod
    def open(folder: Path, *, n_latents: int, n_documents: int, n_postings: int) -> Postings:
        """Maps the files; refuses those whose type or length is not what the manifest says."""
        offsets = _mapped(folder, _FILES["offsets"], np.dtype(np.int64), n_latents + 1)
        documents = _mapped(folder, _FILES["documents"], np.dtype(np.int32), n_postings)
        weights = _mapped(folder, _FILES["weights"], np.dtype(np.float32), n_postings)
        # Kernels trust the offsets: they must rise from 0 to the number of postings.
        if offsets[0] != 0 or offsets[-1] != n_postings or bool((np.diff(offsets) < 0).any()):
            raise ArtifactError(
                f'"{folder}" is damaged: {_FILES["offsets"]} does not rise from 0 to {n_postings}; ' + _remedy(folder)
            )
        return Postings(offsets, documents, weights, n_documents)


def _mapped(folder: Path, name: str, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    remedy = _remedy(folder)
    try:
        # An empty array cannot be mapped.
        array = np.load(folder / name, mmap_mode="r" if length else None, allow_pickle=False)
    except FileNotFoundError:
        raise ArtifactError(f'"{folder}" is damaged: the file {name} is missing; {remedy}') from None
    except (OSError, ValueError, EOFError) as error:
        raise ArtifactError(f'"{folder}" is damaged: {name} is not a readable array ({error}); {remedy}') from error
    if array.dtype != dtype or array.shape != (length,):
        raise ArtifactError(
            f'"{folder}" is damaged: {name} is {array.dtype}{list(array.shape)}, the manifest says {dtype}[{length}]; '
            f"{remedy}"
        )
    array = np.asarray(array)
    array.setflags(write=False)
    return array


def _remedy(folder: Path) -> str:
    return f"build the index again: lexent index CORPUS --out {folder} --overwrite"
