"""The compiled kernels that pack weighted posting lists as one group: see `lexent.compiled`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lexent.compiled import KernelGroup

NUMPY_SECONDS_PER_POSTING = 5e-7
"""What NumPy takes to pack a posting, roughly."""


def ways(postings: int) -> Any:
    """The kernels, or their twins in NumPy."""
    if KERNELS.use(postings * NUMPY_SECONDS_PER_POSTING):
        from lexent.indexing.postings import packing

        return packing
    from lexent.indexing.postings import numpy_packing

    return numpy_packing


def _exercise() -> None:
    from lexent.indexing.postings import packing

    ids, codes, offsets = np.array([0, 1], np.int32), np.array([9, 9], np.uint8), np.array([0, 1, 2], np.int64)
    packing.document_sums(codes, offsets, np.arange(256, dtype=np.float64))
    starts, documents, own = packing.invert(ids, codes, offsets, 3)
    latents, _ = packing.pack(starts, documents, own, np.full(2, 112, np.uint16))
    packing.build_known(latents, 3)


def _entries() -> Sequence[Any]:
    from lexent.indexing.postings import packing

    return packing.document_sums, packing.invert, packing.plan, packing.write, packing.build_known


KERNELS = KernelGroup("packing", __name__, compile_s=4, exercise=_exercise, entries=_entries)
