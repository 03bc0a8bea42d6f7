"""Exact top-k by MaxSim over the token codes of a segment. The slow twin is `lexent.topk.maxsim_reference`.

A query is a list of rows, one a token: a few latents with integer weights. The similarity of two rows is the sum over
the latents that they share of weight times code. A row of the query adds its highest similarity to a row of the
document. Everything is integer arithmetic, so a score does not depend on what is pruned.

The posting lists keep the highest code of each latent over a document's rows. So the sum of weight times highest code,
over all latents of all rows of the query, is an upper bound of the document's score. The search accumulates these
bounds, scores documents by descending bound, and stops where no bound reaches the k-th best score.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.forward.token_kernels import DAMAGED, PART_ROWS, TokenArrays
from lexent.indexing.postings import binary_postings, bitmaps
from lexent.indexing.postings.descriptor import CODES, ENCODING, ENTRIES, START
from lexent.indexing.postings.layout import CHUNK_DOCUMENTS, CODE_ARRAY, DOC_IDS, GAPS, PostingLists
from lexent.indexing.postings.packing import find_list, known_in, locate
from lexent.jit import njit
from lexent.topk.heap import COUNT, push

SCORED = 1
"""Place in a search's state: how many documents were scored."""
BOUND_BINS = 2048
"""Bins of the histogram by which documents are ordered by upper bound."""
NO_MATCHES = -2
MAX_BOUND = 2**31 - 1
"""No upper bound is larger."""
MAX_QUERY_LATENTS = 2**15 - 1
"""Distinct latents of a query, at most, in `top_k`; `score_documents` has no limit."""
MIN_SCORED_DOCUMENTS = 64
"""Documents of a chunk that an approximate search scores before it may stop early."""
MIN_SEEDS = 32
"""About this many documents of a chunk, plus 2 k, are scored before any is pruned."""


class InvertedQuery(NamedTuple):
    """A query's rows by latent: entries firsts[p] to firsts[p + 1] are of latents[p], and table[latents[p]] == p."""

    table: NDArray[np.int16]  # [size + 1], -1 for latents that the query lacks, as for the last
    latents: NDArray[np.uint32]  # [n_latents], ascending
    firsts: NDArray[np.int32]  # [n_latents + 1]
    rows: NDArray[np.int32]  # [n_entries]
    values: NDArray[np.int32]  # [n_entries]
    similarities: NDArray[np.int32]  # [PART_ROWS * n_rows]: working memory, zero between parts
    best: NDArray[np.int32]  # [n_rows]: working memory
    shared: NDArray[np.uint64]  # [size + 1]: working memory


class MaxSimWorkspace(NamedTuple):
    """Working memory of one search at a time."""

    bounds: NDArray[np.int32]  # [CHUNK_DOCUMENTS]
    order: NDArray[np.uint16]  # [CHUNK_DOCUMENTS]
    histogram: NDArray[np.int32]  # [BOUND_BINS]: documents whose upper bound is in each bin
    places: NDArray[np.int32]  # [BOUND_BINS]


def invert_query(
    ids: NDArray[np.int32], values: NDArray[np.int32], offsets: NDArray[np.int64], *, size: int
) -> InvertedQuery:
    """Inverts a query's rows. ids, values: of row i from offsets[i] to offsets[i + 1]."""
    known = (ids >= 0) & (ids < size) & (values != 0)
    rows = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))[known]
    order = np.argsort(ids[known], kind="stable")
    latents, firsts = np.unique(ids[known][order], return_index=True)
    table = np.full(size + 1, -1, np.int16 if len(latents) <= MAX_QUERY_LATENTS else np.int32)
    table[latents] = np.arange(len(latents))
    n_rows = len(offsets) - 1
    return InvertedQuery(
        table=table,
        latents=latents.astype(np.uint32),
        firsts=np.append(firsts, len(order)).astype(np.int32),
        rows=rows[order],
        values=values[known][order].astype(np.int32),
        similarities=np.zeros(n_rows * PART_ROWS, np.int32),
        best=np.zeros(n_rows, np.int32),
        shared=np.empty(size + 1, np.uint64),
    )


def new_workspace() -> MaxSimWorkspace:
    """Working memory for MaxSim searches."""
    return MaxSimWorkspace(
        bounds=np.zeros(CHUNK_DOCUMENTS, np.int32),
        order=np.zeros(CHUNK_DOCUMENTS, np.uint16),
        histogram=np.zeros(BOUND_BINS, np.int32),
        places=np.zeros(BOUND_BINS, np.int32),
    )


@njit(cache=True, nogil=True)
def top_k(
    query: InvertedQuery,
    latents: NDArray[np.uint32],
    weights: NDArray[np.int64],
    max_scored: int,
    lists: PostingLists,
    store: TokenArrays,
    live: NDArray[np.bool_],
    base: int,
    heap_scores: NDArray[np.int64],
    heap_documents: NDArray[np.int64],
    state: NDArray[np.int64],
    workspace: MaxSimWorkspace,
) -> int:
    """Pushes a segment's best documents to a heap; returns DAMAGED, or 0. No weight of the query is negative.

    latents, weights: the terms that documents are ordered by, ascending. max_scored: 0 for an exact search; latents and
    weights are then all of the query's, so that the sums are upper bounds. Else the approximate search scores at most
    this many documents of a chunk, by descending sum, and stops early where no sum times the highest ratio of score to
    sum so far reaches the k-th best score. live: which documents may be found, empty for all. state: documents in the
    heap, and documents scored.
    """
    k, divisor = len(heap_scores), _weight_divisor(weights)
    scaled = np.empty(len(weights), np.int32)
    for place in range(len(weights)):
        scaled[place] = (weights[place] + divisor - 1) // divisor  # rounded up, so that a bound stays a bound
    for chunk in range(len(lists.chunks) - 1):
        first, n = lists.chunks[chunk, 0], lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]
        workspace.bounds[:n] = 0
        if _accumulate_bounds(latents, scaled, lists, chunk, workspace.bounds) < 0:
            return DAMAGED
        if len(live):
            for document in range(n):
                workspace.bounds[document] *= np.int32(live[first + document])
        shift = _fill_histogram(n, workspace)
        if shift == DAMAGED:
            return DAMAGED
        if shift == NO_MATCHES:
            continue
        high_bin = BOUND_BINS
        low_bin = _lowest_bin(max_scored if max_scored else MIN_SEEDS + 2 * k, workspace.histogram)
        scored, ratio = 0, 0.0
        while low_bin < high_bin:
            for place in range(_order_by_bound(n, low_bin, high_bin, shift, workspace)):
                document = np.int64(workspace.order[place])
                bound = np.int64(workspace.bounds[document]) * divisor
                if state[COUNT] == k and max_scored == 0 and bound < heap_scores[0]:
                    continue
                if max_scored and (
                    scored == max_scored
                    or (scored >= MIN_SCORED_DOCUMENTS and state[COUNT] == k and bound * ratio < heap_scores[0])
                ):
                    break
                scored += 1
                state[SCORED] += 1
                score = score_document(query, store, first + document)
                if score < 0:
                    return DAMAGED
                if score > 0:
                    push(heap_scores, heap_documents, state, k, score, base + first + document)
                    ratio = max(ratio, score / bound)
            if max_scored:
                break
            high_bin = low_bin
            low_bin = min(low_bin, (heap_scores[0] // divisor) >> shift) if state[COUNT] == k else 0
    return 0


@njit(cache=True, nogil=True)
def score_documents(
    query: InvertedQuery, store: TokenArrays, documents: NDArray[np.int64], scores: NDArray[np.int64]
) -> int:
    """Scores some documents of a segment, by position in it; weights may be negative. Returns DAMAGED, or 0."""
    table, similarities, best = query.table, query.similarities, query.best
    n_rows, size = len(best), len(table) - 1
    lowest = np.int32(-(2**31 - 1))
    for place in range(len(documents)):
        first, last = store.parts[documents[place]], store.parts[documents[place] + 1]
        best[:] = lowest if last > first else 0
        for part in range(first, last):
            n = np.int64(store.rows[part])
            if n > PART_ROWS:
                return DAMAGED
            similarities[: n * n_rows] = 0
            entry, end = store.starts[part, 1], store.starts[part + 1, 1]
            for row in range(store.starts[part, 0], store.starts[part + 1, 0]):
                latent, count = np.int64(store.latents[row]), np.int64(store.counts[row]) + 1
                if latent >= size or entry + count > end:
                    return DAMAGED
                found = table[latent]
                if found >= 0:
                    for other in range(entry, entry + count):
                        token = np.int64(store.tokens[other])
                        if token >= n:
                            return DAMAGED
                        for entry_of_query in range(query.firsts[found], query.firsts[found + 1]):
                            product = query.values[entry_of_query] * np.int32(store.values[other])
                            similarities[token * n_rows + query.rows[entry_of_query]] += product
                entry += count
            for token in range(n):
                for row in range(n_rows):
                    best[row] = max(best[row], similarities[token * n_rows + row])
        scores[place] = best.astype(np.int64).sum()
    return 0


@njit(cache=True, nogil=True)
def score_document(query: InvertedQuery, store: TokenArrays, document: int) -> int:
    """Score of one document of a segment, or DAMAGED. No weight is negative.

    Similarities only grow, so the highest of each row is kept on the way, and the codes of other latents are not read.
    """
    table, firsts, rows, values = query.table, query.firsts, query.rows, query.values
    similarities, best, shared = query.similarities, query.best, query.shared
    n_rows, size = len(best), np.uint64(len(table) - 1)
    best[:] = 0
    for part in range(store.parts[document], store.parts[document + 1]):
        n = np.int64(store.rows[part])
        (start, entry), (stop, end) = store.starts[part], store.starts[part + 1]
        if n > PART_ROWS or stop - start > len(shared):
            return DAMAGED
        # First find the shared latents, without branches, as most are not shared. Each is packed in one word: the place
        # of its first entry, its number of entries less 1, and its place in the query.
        n_shared, at = np.uint64(0), np.uint64(entry)
        for row in range(np.uint64(start), np.uint64(stop)):
            found = np.int64(table[min(np.uint64(store.latents[row]), size)])
            count = np.uint64(store.counts[row])
            shared[n_shared] = at << np.uint64(24) | count << np.uint64(16) | np.uint64(found & 0xFFFF)
            n_shared += np.uint64(found >= 0)
            at += count + np.uint64(1)
        if np.int64(at) != end:
            return DAMAGED
        similarities[: n * n_rows] = 0
        for match in shared[:n_shared]:
            found, first_entry = match & np.uint64(0xFFFF), match >> np.uint64(24)
            first, last = np.uint64(firsts[found]), np.uint64(firsts[found + np.uint64(1)])
            for entry in range(first_entry, first_entry + (match >> np.uint64(16) & np.uint64(0xFF)) + np.uint64(1)):
                token, value = np.int64(store.tokens[entry]), np.int32(store.values[entry])
                if token >= n:
                    return DAMAGED
                for entry_of_query in range(first, last):
                    owner = np.uint64(rows[entry_of_query])
                    place = np.uint64(token * n_rows) + owner
                    total = similarities[place] + values[entry_of_query] * value
                    similarities[place] = total
                    best[owner] = max(best[owner], total)
    score = np.int64(0)
    for row in range(n_rows):
        score += np.int64(best[row])
    return score


@njit(cache=True, nogil=True)
def _weight_divisor(weights: NDArray[np.int64]) -> int:
    """Divisor of the weights, so that upper bounds fit 31 bits."""
    total = np.int64(len(weights))  # rounding up may add 1 to each weight
    for weight in weights:
        total += weight
    return max(np.int64(1), (total * 255 + MAX_BOUND - 1) // MAX_BOUND)


@njit(cache=True, nogil=True)
def _accumulate_bounds(
    latents: NDArray[np.uint32], weights: NDArray[np.int32], lists: PostingLists, chunk: int, bounds: NDArray[np.int32]
) -> int:
    """Adds weight times highest code of some latents to the bounds of a chunk's documents; returns DAMAGED, or 0."""
    descriptor = np.empty(4, np.int64)
    first = lists.chunks[chunk, 1]
    known, n_lists = known_in(lists, chunk), lists.chunks[chunk + 1, 1] - first
    n_documents = lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]
    documents = np.empty(binary_postings.MAX_LIST_ENTRIES, np.uint16)
    for place in range(len(latents)):
        row = find_list(known, np.uint64(latents[place]), n_lists)
        if row < 0:
            continue
        if not locate(lists, chunk, first + row, descriptor):
            return DAMAGED
        encoding, count, start, weight = descriptor[ENCODING], descriptor[ENTRIES], descriptor[START], weights[place]
        if encoding == GAPS:
            document = np.int64(lists.shorts[start + count]) - (np.int64(lists.shorts[start]) & 255)
            for entry in lists.shorts[start : start + count]:
                document += np.int64(entry) & 255
                bounds[np.uint16(document)] += weight * (np.int32(entry) >> 8)
            continue
        if encoding == CODE_ARRAY:
            for document in range(n_documents):
                bounds[document] += weight * np.int32(lists.codes[descriptor[CODES] + document])
            continue
        codes = lists.codes[descriptor[CODES] : descriptor[CODES] + count]
        if encoding == DOC_IDS:
            for d, code in zip(lists.shorts[start : start + count], codes):  # noqa: B905  (Numba's zip has no strict)
                bounds[d] += weight * np.int32(code)
            continue
        n = bitmaps.unpack(lists.codes, descriptor, n_documents, documents)
        if n > count:
            return DAMAGED
        for d, code in zip(documents[:n], codes):  # noqa: B905
            bounds[d] += weight * np.int32(code)
    return 0


@njit(cache=True, nogil=True)
def _fill_histogram(n: int, workspace: MaxSimWorkspace) -> int:
    """Fills the histogram of bounds; returns by how many bits they are shifted to bins, NO_MATCHES, or DAMAGED."""
    lowest, highest = np.int32(0), np.int32(0)
    for document in range(n):
        lowest, highest = min(lowest, workspace.bounds[document]), max(highest, workspace.bounds[document])
    if lowest < 0:  # overflow: a damaged list holds a document many times
        return DAMAGED
    if highest == 0:
        return NO_MATCHES
    shift = 0
    while (highest >> shift) >= BOUND_BINS:
        shift += 1
    workspace.histogram[:] = 0
    for document in range(n):
        workspace.histogram[np.uint64(workspace.bounds[document] >> shift)] += 1
    return shift


@njit(cache=True, nogil=True)
def _lowest_bin(count: int, histogram: NDArray[np.int32]) -> int:
    """The highest bin such that it and those above hold at least so many documents."""
    bin, total = BOUND_BINS, 0
    while bin > 0 and total < count:
        bin -= 1
        total += histogram[bin]
    return bin


@njit(cache=True, nogil=True)
def _order_by_bound(n: int, low_bin: int, high_bin: int, shift: int, workspace: MaxSimWorkspace) -> int:
    """Sorts the documents of the bins [low_bin, high_bin), highest first, without bounds of 0; returns how many."""
    total = 0
    for bin in range(high_bin - 1, low_bin - 1, -1):
        workspace.places[bin] = total
        total += workspace.histogram[bin]
    for document in range(n):
        bound = workspace.bounds[document]
        bin = np.int64(bound >> shift)
        if low_bin <= bin < high_bin:
            workspace.order[np.uint64(workspace.places[bin])] = document
            workspace.places[bin] += 1
    if low_bin == 0:  # in bin 0, documents of bound 0 share nothing with the query
        kept = workspace.places[0] - workspace.histogram[0]
        for place in range(kept, workspace.places[0]):
            if workspace.bounds[workspace.order[place]] > 0:
                workspace.order[kept] = workspace.order[place]
                kept += 1
        total = kept
    return total
