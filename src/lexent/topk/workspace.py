"""Inputs and working memory of a top-k kernel: a chunk, the query's posting lists in it, accumulators and buffers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings.layout import CHUNK_DOCUMENTS, PostingLists
from lexent.indexing.postings.quantisation import CURVE_SIZE

DAMAGED = -1
"""Returned by kernels instead of a result: a posting list is damaged."""
THRESHOLD, AGGRESSIVENESS = 1, 2
"""Places in a search's state, after the number of documents in the heap: the score that a document must reach, and how
aggressively `bound_pruning` prunes."""


class Chunk(NamedTuple):
    """A chunk that is searched. Its arrays have an element for each of CHUNK_DOCUMENTS document numbers."""

    lists: PostingLists
    n_documents: int
    shifts: NDArray[np.uint16]
    lowest_shift: int
    half_shifts: NDArray[np.uint8]  # see `quantisation.half_shifts`
    curve: NDArray[np.float32]


class QueryTerms(NamedTuple):
    """The query terms that have a posting list in a chunk."""

    descriptors: NDArray[np.int64]  # [n_terms, COLUMNS]: see `descriptor`
    weights: NDArray[np.float32]  # [n_terms]
    upper_bounds: NDArray[np.int64]  # [n_terms]: the highest contribution of a posting


class Workspace(NamedTuple):
    """Working memory of one search at a time."""

    accumulators: NDArray[np.int32]  # [CHUNK_DOCUMENTS], zero between searches: partial scores
    contributions: NDArray[np.int32]  # [CURVE_SIZE]: the contribution table of the list that is accumulated
    candidates: NDArray[np.int64]  # [CHUNK_DOCUMENTS]: documents that may be among the best
    candidate_scores: NDArray[np.int64]  # [CHUNK_DOCUMENTS]: their partial scores, or upper bounds
    matches: NDArray[np.int64]  # [CHUNK_DOCUMENTS]: which of the candidates are in the list that is probed
    match_codes: NDArray[np.int64]  # [CHUNK_DOCUMENTS]: their codes in it
    upper_bounds: NDArray[np.uint8]  # [CHUNK_DOCUMENTS]: quantised to 8 bits
    block_maxima: NDArray[np.uint8]  # [CHUNK_DOCUMENTS / 64]: the highest upper bound of each 64 documents
    documents: NDArray[np.uint16]  # [binary_postings.MAX_LIST_ENTRIES]: of one list
    counts_8bit: NDArray[np.uint8]  # [CHUNK_DOCUMENTS] in a binary index, zero between searches
    counts_16bit: NDArray[np.uint16]  # the same for queries of many terms


def new_workspace(*, binary: bool) -> Workspace:
    """Working memory for searches of an index; binary: as its recipe is."""
    return Workspace(
        accumulators=np.zeros(CHUNK_DOCUMENTS, np.int32),
        contributions=np.zeros(CURVE_SIZE, np.int32),
        candidates=np.zeros(CHUNK_DOCUMENTS, np.int64),
        candidate_scores=np.zeros(CHUNK_DOCUMENTS, np.int64),
        matches=np.zeros(CHUNK_DOCUMENTS, np.int64),
        match_codes=np.zeros(CHUNK_DOCUMENTS, np.int64),
        upper_bounds=aligned_zeros(CHUNK_DOCUMENTS),
        block_maxima=np.zeros(CHUNK_DOCUMENTS // 64, np.uint8),
        documents=np.zeros(2 * CHUNK_DOCUMENTS, np.uint16),
        counts_8bit=np.zeros(CHUNK_DOCUMENTS if binary else 0, np.uint8),
        counts_16bit=np.zeros(CHUNK_DOCUMENTS if binary else 0, np.uint16),
    )


def aligned_zeros(size: int) -> NDArray[np.uint8]:
    """Zero bytes that begin at a cache line, since they are read 64 at a time."""
    buffer = np.zeros(size + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + size]
