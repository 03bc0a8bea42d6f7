"""The compiled kernels of a search as one group: see `lexent.compiled`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lexent.compiled import KernelGroup
from lexent.indexing.postings.layout import CHUNK_DOCUMENTS, PostingLists


def _lists(n: int = 600, size: int = 12, *, binary: bool = False) -> Any:
    """Posting lists of a few latents in all encodings, read-only as those of a segment are."""
    from lexent.indexing.postings import binary_postings, packing

    random = np.random.default_rng(0)
    present = random.random((n, size)) < np.geomspace(0.9, 0.005, size)
    ids = np.nonzero(present)[1]
    offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int64)
    codes = random.integers(1, 256, len(ids)).astype(np.uint8)
    starts, documents, own = packing.invert(ids.astype(np.int32), codes, offsets, size)
    if binary:
        packed = binary_postings.pack(starts, documents, n)
        assert packed is not None
        latents, arrays = packed
    else:
        latents, arrays = packing.pack(starts, documents, own, np.full(n, 112, np.uint16))
    ends = [n, *(len(arrays[name]) for name in ("records", "shorts", "codes"))]
    held = {"chunks": np.array([[0] * 4, ends]), "known": packing.build_known(latents, size), **arrays}
    for array in held.values():
        array.setflags(write=False)
    return PostingLists(*(held[name] for name in PostingLists._fields))


def _query(lists: Any) -> tuple[Any, ...]:
    """The arguments of a search of such lists, up to the weights of documents."""
    size = len(lists.records)
    return np.arange(size, dtype=np.int32), np.linspace(1, 2, size, dtype=np.float32), 1000.0, size


def _masks(n: int) -> tuple[Any, Any]:
    """No mask, and one that allows every second document, read-only as the scorer gives them."""
    none, some = np.empty(0, np.bool_), np.arange(n) % 2 == 0
    for mask in (none, some):
        mask.setflags(write=False)
    return none, some


def _state() -> tuple[Any, Any, Any]:
    from lexent.topk.bound_pruning import NEUTRAL_AGGRESSIVENESS

    return np.zeros(3, np.int32), np.full(3, -1, np.int64), np.array([0, 0, NEUTRAL_AGGRESSIVENESS])


def _exercise() -> None:
    _read(_lists())


def _exercise_binary() -> None:
    from lexent.topk import counting
    from lexent.topk.workspace import new_workspace

    lists = _lists(binary=True)
    _read(lists)
    workspace = new_workspace(binary=True)
    for counts in (workspace.counts_8bit, workspace.counts_16bit):
        scores, documents, state = _state()
        mask = _masks(0)[0]
        counting.top_k(*_query(lists), lists, mask, 0, scores, documents, state, workspace, counts)


def _read(lists: Any) -> None:
    """Everything but counting: weighted and binary lists are read by the same compiled code."""
    from lexent.indexing.postings import packing, quantisation
    from lexent.topk import heap, random_access, weighted
    from lexent.topk.workspace import aligned_zeros, new_workspace

    n, room = int(lists.chunks[1, 0]), CHUNK_DOCUMENTS
    shifts = np.full(n + room, quantisation.NEUTRAL_SHIFT, np.uint16)
    half_shifts = aligned_zeros(len(shifts))
    quantisation.half_shifts(shifts, half_shifts)
    curve = np.linspace(0.1, 3, quantisation.CURVE_SIZE, dtype=np.float32)
    chunks = np.zeros(1, np.int64), np.full(1, quantisation.NEUTRAL_SHIFT)
    impacts = weighted.SegmentImpacts(curve, shifts, half_shifts, *chunks)
    workspace = new_workspace(binary=False)
    for mask in _masks(n):
        scores, documents, state = _state()
        few = np.flatnonzero(mask)
        weighted.top_k(*_query(lists), lists, impacts, mask, few, 0, scores, documents, state, workspace)
        heap.sort_heap(scores, documents, int(state[0]))
    latents, scaled, _ = weighted.prepare_terms(*_query(lists))
    random_access.all_scores(latents, scaled, lists, impacts, np.zeros(n, np.int32), np.zeros(n, np.bool_))
    random_access.codes_of(latents, lists, 3, np.zeros(len(latents), np.uint8))
    random_access.latents_of(lists, 0, 3, np.zeros(len(latents), np.int32), np.zeros(len(latents), np.uint8))
    wanted, df = np.zeros(room, np.bool_), np.zeros(len(latents), np.int64)
    wanted[:5] = True
    random_access.count_within(latents, lists, _masks(n)[1], df)
    random_access.count_latents(lists, 0, wanted, df)
    packing.unpack_chunk(lists, 0, wanted)


def _entries() -> Sequence[Any]:
    from lexent.indexing.postings import packing
    from lexent.topk import heap, random_access, weighted

    others = (heap.sort_heap, packing.unpack_chunk, random_access.all_scores, random_access.codes_of)
    return (weighted.top_k, *others, random_access.latents_of, random_access.count_within, random_access.count_latents)


def _binary_entries() -> Sequence[Any]:
    from lexent.topk import counting

    return (*_entries(), counting.top_k)


KERNELS = KernelGroup("search", __name__, compile_s=40, exercise=_exercise, entries=_entries)
BINARY = KernelGroup(
    "binary", __name__, attribute="BINARY", compile_s=45, exercise=_exercise_binary, entries=_binary_entries
)
"""The same, and counting: for indexes without weights."""


def group(*, binary: bool) -> KernelGroup:
    """The kernels that read posting lists with weights, or without."""
    return BINARY if binary else KERNELS
