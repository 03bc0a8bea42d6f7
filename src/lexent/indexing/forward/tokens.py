"""Token store of the forward index: the codes of every token of every document, for MaxSim.

Codes are grouped by latent inside a document, so that a query reads only the latents that it shares. A document is cut
into parts of at most 256 rows, so that a row number has 8 bits. A row is a token. Where a recipe codes the whole text
too, that is the last row, with latents of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lexent import array_files
from lexent.errors import ArtifactError
from lexent.indexing.codes import Codes
from lexent.indexing.forward.stores import Arrays, Column, ForwardStore
from lexent.indexing.postings import quantisation
from lexent.indexing.postings.layout import REMEDY
from lexent.types import RowCodes

PART_ROWS = 256
"""Rows of a part, at most. Also in `token_kernels`, which needs Numba."""


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """Rows of one document as entries: row, latent and code."""

    rows: NDArray[np.int64]  # [n_entries]
    latents: NDArray[np.int64]  # [n_entries]
    values: NDArray[np.int64]  # [n_entries], from 1 to 255
    n_rows: int


@dataclass(frozen=True)
class TokenStore(ForwardStore):
    """Token codes, grouped by latent within the parts of documents."""

    name: ClassVar[str] = "tokens"
    columns: ClassVar[dict[str, Column]] = {
        "parts": Column((np.int64,), mode="running"),  # [n_documents + 1]: the first part of each document
        "starts": Column((np.int64,), mode="running", width=2),  # [n_parts + 1]: into the directory, into the entries
        "rows": Column((np.uint16,)),  # [n_parts]: how many rows
        "latents": Column((np.uint16, np.uint32)),  # directory: the latents of a part, ascending
        "counts": Column((np.uint8,)),  # directory: how many entries a latent has, less 1
        "tokens": Column((np.uint8,)),  # entries: the row within its part, ascending within a latent
        "values": Column((np.uint8,)),  # entries: the code, on the linear scale
    }

    @staticmethod
    def of(codes: RowCodes, *, size: int) -> TokenStore:
        """Packs the codes of texts; rows have length 1. size: number of latents."""
        from lexent.indexing.forward import token_kernels as kernels

        # The kernel indexes arrays of `size` places by these ids, unchecked.
        if codes.ids.size and not 0 <= codes.ids.min() <= codes.ids.max() < size:
            raise ValueError(f"codes hold latents from {codes.ids.min()} to {codes.ids.max()} of {size}")
        small: Any = np.uint16 if size <= 1 << 16 else np.uint32
        packed = kernels.pack(codes.ids, quantisation.encode_linear(codes.values), codes.offsets, size)
        return TokenStore(packed._replace(latents=packed.latents.astype(small))._asdict())

    def __len__(self) -> int:
        return len(self.arrays["parts"]) - 1

    @property
    def rows(self) -> int:
        """Number of rows: tokens, and whole texts where those are coded."""
        return int(self.arrays["rows"].sum(dtype=np.int64))

    def take(self, documents: NDArray[np.int64]) -> Self:
        """Selects documents, in that order."""
        from lexent.indexing.forward import token_kernels as kernels

        parts, starts = self.checked.parts, self.checked.starts
        first, last = parts[documents], parts[documents + 1]
        which = _ranges(first, last)
        taken: Arrays = {"parts": _running(last - first), "rows": self.arrays["rows"][which]}
        lengths = starts[which + 1] - starts[which]
        taken["starts"] = np.stack([_running(lengths[:, column]) for column in (0, 1)], axis=1)
        for column, names in ((0, ("latents", "counts")), (1, ("tokens", "values"))):
            for name in names:
                array = self.arrays[name]
                taken[name] = np.empty(int(lengths[:, column].sum()), array.dtype)
                kernels.gather(array, starts, column, which, taken[name])
        return type(self)(taken)

    def fits(self, *, size: int, n_documents: int) -> bool:
        """Whether the lengths of the arrays fit together."""
        arrays = self.arrays
        parts, starts = arrays["parts"], arrays["starts"]
        return (
            len(parts) == n_documents + 1
            and len(starts) == len(arrays["rows"]) + 1
            and parts[0] == 0
            and parts[-1] == len(arrays["rows"])
            and starts[0].tolist() == [0, 0]
            and starts[-1].tolist() == [len(arrays["latents"]), len(arrays["tokens"])]
            and len(arrays["counts"]) == len(arrays["latents"])
            and len(arrays["values"]) == len(arrays["tokens"])
        )

    @cached_property
    def checked(self) -> Any:
        """The arrays as `token_kernels.TokenArrays`, if all parts lie inside them; kernels check the rest."""
        from lexent.indexing.forward.token_kernels import TokenArrays

        parts, starts = self.arrays["parts"], self.arrays["starts"]
        if not (array_files.ascends(parts) and array_files.ascends(starts)):
            raise damaged()
        return TokenArrays(*(self.arrays[name] for name in TokenArrays._fields))

    def maxima(self, *, size: int) -> Codes:
        """Highest code of each latent of each document: what the posting lists keep."""
        from lexent.indexing.forward import token_kernels as kernels

        ids, codes, offsets, outcome = kernels.maxima(self.checked, size)
        if outcome < 0:
            raise damaged()
        return Codes(ids, codes, offsets)

    def document(self, position: int) -> DocumentRows:
        """All rows of one document."""
        store, rows, latents, values = self.checked, [], [], []
        first, last = (int(part) for part in store.parts[position : position + 2])
        for part in range(first, last):
            (start, entry), (stop, end) = store.starts[part].tolist(), store.starts[part + 1].tolist()
            counts = store.counts[start:stop].astype(np.int64) + 1
            if counts.sum() != end - entry:
                raise damaged()
            latents.append(np.repeat(store.latents[start:stop].astype(np.int64), counts))
            rows.append(store.tokens[entry:end].astype(np.int64) + PART_ROWS * (part - first))
            values.append(store.values[entry:end].astype(np.int64))
        n_rows = int(store.rows[first:last].sum(dtype=np.int64))
        if any(one.max(initial=-1) >= n_rows for one in rows):
            raise damaged()
        return DocumentRows(_joined(rows), _joined(latents), _joined(values), n_rows)


def damaged() -> ArtifactError:
    """The error of a token store whose codes lie outside of their part."""
    return ArtifactError(f"the index is damaged: the codes of a document's tokens lie outside its part; {REMEDY}")


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _running(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _ranges(first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers from first[i] up to last[i], one range after the other."""
    lengths = last - first
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.repeat(first - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0)
