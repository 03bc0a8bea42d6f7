"""The Numba kernels of exact top-k search over packed segments. Their slow twin is `lexent.indexing.reference`.

A posting's weight is `curve[2 code + shift of its document]` (see `lexent.indexing.scale`). What it adds to a score is
a whole number: the weight times the query's weight, which is scaled up so that all sums fit 31 bits. Whole numbers make
a sum the same in any order, so pruning cannot change a score; and each is at least 1 (at most -1 for a negative
weight), so every document that shares a latent with a query of positive weights scores above 0.

A chunk is searched the MaxScore way. Lists are added whole, those that lower the bound most for their length first,
until what the rest could add is a share of the score to reach; only documents that can still reach it are then looked
up in the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bare
from lexent.indexing.bits import popcount, trailing_zeros
from lexent.indexing.heap import arrange as arrange
from lexent.indexing.heap import offer
from lexent.indexing.packing import CHUNK, DENSE, GAPS, SPARSE, STRIDE, Lists, bitmap_words, known_in, locate, row_of
from lexent.indexing.scale import NEUTRAL, ONE

DAMAGED, NEGATIVE = -1, -2
"""What kernels say instead of giving a result."""
SHARE = 0.6
"""Lists are added until the rest could add this share of the score to reach: more is less to read, more to look up."""
SEEDS = 16
"""So many documents, or 5/4 k if more, are scored early in a first chunk, for a score to reach."""
MANY, SHARE_OF_MANY = 100, 0.35
"""Above this k, it is cheaper to take the score to reach from sums that are still growing, and to read more."""
SEEN = 2048
"""They are chosen among so many, or 8 k if more."""


class Weights(NamedTuple):
    """How the postings of a segment weigh; all of it follows from the recipe and the collection's average length."""

    curve: NDArray[np.float32]  # [768]
    shifts: NDArray[np.uint8]  # [n_documents + CHUNK]
    rises: NDArray[np.int64]  # [n_chunks]: the most that a shift rose since the chunk was packed


class Scratch(NamedTuple):
    """Working memory of one search at a time; `scores` is zero between searches."""

    scores: NDArray[np.int32]  # [CHUNK]
    gains: NDArray[np.int32]  # [768]
    flags: NDArray[np.uint8]  # [CHUNK], zero between steps
    chosen: NDArray[np.int64]  # [CHUNK]
    sums: NDArray[np.int32]  # [CHUNK]
    documents: NDArray[np.uint16]  # [bare.MOST], of one list
    narrow: NDArray[np.uint8]  # [CHUNK] in a binary index, zero between searches: counts
    wide: NDArray[np.uint16]  # the same for queries of many latents


@njit(cache=True, nogil=True)
def prepare(
    ids: NDArray[np.int32], weights: NDArray[np.float32], scale: float, size: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32], bool]:
    """A query's known latents that weigh something, ascending; their scaled weights; whether any is negative."""
    latents, scaled = np.empty(len(ids), np.uint32), np.empty(len(ids), np.float32)
    n, negative, ascending = 0, False, True
    for place in range(1, len(ids)):
        ascending &= ids[place - 1] <= ids[place]
    for place in np.arange(len(ids)) if ascending else np.argsort(ids):
        if 0 <= ids[place] < size and weights[place] != 0:
            latents[n], scaled[n] = ids[place], weights[place] * np.float32(scale)
            negative |= weights[place] < 0
            n += 1
    return latents[:n], scaled[:n], negative


@njit(cache=True, nogil=True)
def top(
    ids: NDArray[np.int32],
    query: NDArray[np.float32],
    scale: float,
    size: int,
    lists: Lists,
    weights: Weights,
    allowed: NDArray[np.bool_],
    base: int,
    best: NDArray[np.int32],
    who: NDArray[np.int64],
    state: NDArray[np.int64],
    scratch: Scratch,
) -> int:
    """Adds a segment's best documents to the heap `best`, `who`; state: how many it holds, and a score known reached.

    ids, query: the query's latents and weights; scale, size: see `prepare`. allowed: which documents count, empty for
    all. base: what the segment's first document is called. NEGATIVE says that a weight is, and nothing was done.
    """
    query_ids, query_weights, negative = prepare(ids, query, scale, size)
    if negative:
        return NEGATIVE
    n_query, k = len(query_ids), len(best)
    share = SHARE if k <= MANY else SHARE_OF_MANY
    rows = np.empty((n_query, 4), np.int64)
    row_weights = np.empty(n_query, np.float32)
    bounds = np.empty(n_query, np.int64)
    rates = np.empty(n_query, np.float64)
    rest = np.empty(n_query + 1, np.int64)
    for chunk in range(len(lists.chunks) - 1):
        first = lists.chunks[chunk, 0]
        n_documents = lists.chunks[chunk + 1, 0] - first
        shifts = weights.shifts[first : first + CHUNK]
        live = allowed[first : first + n_documents] if len(allowed) else allowed
        n = _resolve(query_ids, query_weights, lists, chunk, weights, rows, row_weights, bounds)
        if n == DAMAGED:
            return DAMAGED
        for place in range(n):
            rates[place] = -bounds[place] / np.float64(rows[place, 1])
        order = np.argsort(rates[:n])
        _sum_up(bounds, order, 0, rest)
        bar = max(state[1], np.int64(best[0]) + 1) if state[0] == k else max(state[1], 1)
        if n == 0 or rest[0] < bar:
            continue
        done, read, seeded = 0, 0, bar > 1
        check = 2 * n_documents
        while done < n and not (bar > 1 and rest[done] <= share * bar):
            row, weight = rows[order[done]], row_weights[order[done]]
            if scan(lists, row, n_documents, shifts, weights.curve, weight, scratch) == DAMAGED:
                scratch.scores[:] = 0
                return DAMAGED
            read += row[1]
            done += 1
            if k > MANY and len(live) == 0:
                if read >= check:
                    check = read + read // 2
                    reached = _reached(n_documents, k, scratch)
                    state[1] = max(state[1], reached)
                    bar = max(bar, reached)
            elif not seeded and read >= n_documents:
                seeded = True
                reached = _seed(
                    lists, n_documents, rows, row_weights, order, done, shifts, weights.curve, live, k, scratch
                )
                state[1] = max(state[1], reached)
                bar = max(bar, reached)
        left = order[done:]
        left[:] = left[np.argsort(-bounds[left])]
        _sum_up(bounds, order, done, rest)
        n_chosen = choose(max(bar - rest[done], 1), n_documents, live, scratch)
        for place in range(done, n):
            if n_chosen == 0:
                break
            row, weight, needed = rows[order[place]], row_weights[order[place]], bar - rest[place + 1]
            n_chosen = look_up(lists, row, n_documents, shifts, weights.curve, weight, needed, n_chosen, scratch)
        for one in range(n_chosen):
            offer(best, who, state, k, scratch.sums[one], base + first + scratch.chosen[one])
        scratch.scores[:] = 0
    return 0


@njit(cache=True, nogil=True)
def top_of_few(
    ids: NDArray[np.int32],
    query: NDArray[np.float32],
    scale: float,
    size: int,
    lists: Lists,
    weights: Weights,
    documents: NDArray[np.int64],
    base: int,
    best: NDArray[np.int32],
    who: NDArray[np.int64],
    state: NDArray[np.int64],
    scratch: Scratch,
) -> int:
    """What `top` does, for a few documents of a segment, which ascend: each is looked up in every list."""
    query_ids, query_weights, negative = prepare(ids, query, scale, size)
    if negative:
        return NEGATIVE
    n_query, k, start = len(query_ids), len(best), 0
    rows = np.empty((n_query, 4), np.int64)
    row_weights = np.empty(n_query, np.float32)
    bounds = np.empty(n_query, np.int64)
    for chunk in range(len(lists.chunks) - 1):
        first, stop, n_chosen = lists.chunks[chunk, 0], lists.chunks[chunk + 1, 0], 0
        while start < len(documents) and documents[start] < stop:
            scratch.chosen[n_chosen], scratch.sums[n_chosen] = documents[start] - first, 0
            start += 1
            n_chosen += 1
        if n_chosen == 0:
            continue
        n = _resolve(query_ids, query_weights, lists, chunk, weights, rows, row_weights, bounds)
        if n == DAMAGED:
            return DAMAGED
        shifts = weights.shifts[first : first + CHUNK]
        for place in range(n):
            look_up(lists, rows[place], stop - first, shifts, weights.curve, row_weights[place], 0, n_chosen, scratch)
        for one in range(n_chosen):
            if scratch.sums[one] > 0:
                offer(best, who, state, k, scratch.sums[one], base + first + scratch.chosen[one])
    return 0


@njit(cache=True, nogil=True)
def _resolve(
    query_ids: NDArray[np.uint32],
    query_weights: NDArray[np.float32],
    lists: Lists,
    chunk: int,
    weights: Weights,
    rows: NDArray[np.int64],  # [n_query, 4]: see `locate`
    row_weights: NDArray[np.float32],
    bounds: NDArray[np.int64],
) -> int:
    """The query's lists in a chunk, their weights and the most that each can add; gives how many there are."""
    n, rise, known = 0, weights.rises[chunk], known_in(lists, chunk)
    first, n_lists = lists.chunks[chunk, 1], lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1]
    for place in range(len(query_ids)):
        row = row_of(known, np.uint64(query_ids[place]), n_lists)
        if row < 0:
            continue
        row += first
        if not locate(lists, chunk, row, rows[n]):
            return DAMAGED
        packed = 2 * ONE + NEUTRAL if lists.records.shape[1] == 1 else np.int64(lists.records[row, 0]) >> 20
        highest = min(max(packed + rise, 0), len(weights.curve) - 1)
        row_weights[n] = query_weights[place]
        bounds[n] = gain_of(weights.curve[highest], query_weights[place])
        n += 1
    return n


@njit(cache=True, nogil=True)
def _sum_up(bounds: NDArray[np.int64], order: NDArray[np.int64], start: int, rest: NDArray[np.int64]) -> None:
    """rest[i]: what the lists from place i on can add, at most."""
    rest[len(order)] = 0
    for place in range(len(order) - 1, start - 1, -1):
        rest[place] = rest[place + 1] + bounds[order[place]]


@njit(cache=True, nogil=True, inline="always")
def place_of(code: np.int64, shift: np.uint8) -> np.uint16:
    """Where the weight of a code stands in the curve, for a document of that shift."""
    return np.uint16((code << 1) + np.int64(shift))


@njit(cache=True, nogil=True, inline="always")
def gain_of(weight: np.float32, query_weight: np.float32) -> np.int32:
    gain = np.int32(weight * query_weight)
    return max(gain, np.int32(1)) if query_weight > 0 else min(gain, np.int32(-1))


@njit(cache=True, nogil=True)
def scan(
    lists: Lists,
    row: NDArray[np.int64],
    n_documents: int,
    shifts: NDArray[np.uint8],
    curve: NDArray[np.float32],
    weight: np.float32,
    scratch: Scratch,
) -> int:
    """Adds a whole list to the scores of a chunk."""
    gains, scores = scratch.gains, scratch.scores
    for place in range(len(curve)):
        gains[place] = gain_of(curve[place], weight)
    form, count, start = row[0], row[1], row[2]
    # Indices are unsigned: Numba then leaves out the test for counting from the end.
    if form >= bare.PLAIN:
        n = bare.read(lists.codes, row, scratch.documents)
        for d in scratch.documents[:n]:
            scores[d] += gains[place_of(np.int64(ONE), shifts[d])]
        return 0
    if form == GAPS:
        document = np.int64(lists.shorts[start + count]) - (np.int64(lists.shorts[start]) & 255)
        for entry in lists.shorts[start : start + count]:
            document += np.int64(entry) & 255
            d, code = np.uint16(document), np.int64(entry) >> 8
            scores[d] += gains[place_of(code, shifts[d])] * np.int32(code > 0)
        return 0
    codes = lists.codes[row[3] : row[3] + count]
    if form == SPARSE:
        for d, code in zip(lists.shorts[start : start + count], codes):  # noqa: B905  (Numba's zip has no strict)
            scores[d] += gains[place_of(np.int64(code), shifts[d])]
        return 0
    at, document = np.uint64(0), 0
    for bits in lists.words[start : start + bitmap_words(n_documents)]:
        if np.int64(at) + popcount(bits) > count:
            return DAMAGED
        while bits != 0:
            d = np.uint16(document + trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            scores[d] += gains[place_of(np.int64(codes[at]), shifts[d])]
            at += np.uint64(1)
        document += 64
    return 0


@njit(cache=True, nogil=True)
def look_up(
    lists: Lists,
    row: NDArray[np.int64],
    n_documents: int,
    shifts: NDArray[np.uint8],
    curve: NDArray[np.float32],
    weight: np.float32,
    needed: int,
    n: int,
    scratch: Scratch,
) -> int:
    """Adds a list to the sums of the chosen documents, which ascend; keeps those of at least `needed`: how many?"""
    chosen, sums = scratch.chosen, scratch.sums
    form, count, start, kept = row[0], row[1], row[2], 0
    if form >= bare.PLAIN:
        for one in range(n):
            document, total = chosen[one], sums[one]
            if bare.holds(lists.codes, row, document):
                total += gain_of(curve[place_of(np.int64(ONE), shifts[np.uint16(document)])], weight)
            chosen[kept], sums[kept] = document, total
            kept += total >= needed
        return kept
    if form == DENSE:
        bitmap, ranks, codes = start, start + bitmap_words(n_documents), row[3]
        for one in range(n):
            # Without branches, so that the waits for memory of several documents overlap.
            document = chosen[one]
            group, word, bit = document >> 9, document >> 6, np.uint64(document & 63)
            packed = lists.words[np.uint64(ranks + (group >> 2))] >> np.uint64(16 * (group & 3))
            rank = np.int64(packed & np.uint64(0xFFFF))
            for other in range(8):
                rank += popcount(lists.words[np.uint64(bitmap + (group << 3) + other)]) * (other < (word & 7))
            bits = lists.words[np.uint64(bitmap + word)]
            rank += popcount(bits & ((np.uint64(1) << bit) - np.uint64(1)))
            code = np.int64(lists.codes[np.uint64(codes + min(rank, count - 1))])
            gain = gain_of(curve[place_of(code, shifts[np.uint16(document)])], weight)
            total = sums[one] + gain * np.int32((bits >> bit) & np.uint64(1))
            chosen[kept], sums[kept] = document, total
            kept += total >= needed
        return kept
    if form == SPARSE:
        codes, at, end = row[3] - start, start, start + count
        for one in range(n):
            document, total, high = chosen[one], sums[one], end
            while at < high:
                middle = (at + high) >> 1
                if np.int64(lists.shorts[middle]) < document:
                    at = middle + 1
                else:
                    high = middle
            if at < end and np.int64(lists.shorts[at]) == document:
                code = np.int64(lists.codes[codes + at])
                total += gain_of(curve[place_of(code, shifts[np.uint16(document)])], weight)
            chosen[kept], sums[kept] = document, total
            kept += total >= needed
        return kept
    marks, last = start + count, (count - 1) // STRIDE
    mark, entry, at = 0, start, np.int64(lists.shorts[marks])
    for one in range(n):
        document, total = chosen[one], sums[one]
        if mark < last and np.int64(lists.shorts[marks + mark + 1]) <= document:
            mark, high = mark + 1, last
            while mark < high:
                middle = (mark + high + 1) >> 1
                if np.int64(lists.shorts[marks + middle]) <= document:
                    mark = middle
                else:
                    high = middle - 1
            entry, at = start + mark * STRIDE, np.int64(lists.shorts[marks + mark])
        while at < document and entry + 1 < marks:
            entry += 1
            at += np.int64(lists.shorts[entry]) & 255
        code = np.int64(lists.shorts[entry]) >> 8
        if at == document and code:
            total += gain_of(curve[place_of(code, shifts[np.uint16(document)])], weight)
        chosen[kept], sums[kept] = document, total
        kept += total >= needed
    return kept


@njit(cache=True, nogil=True)
def _seed(
    lists: Lists,
    n_documents: int,
    rows: NDArray[np.int64],
    row_weights: NDArray[np.float32],
    order: NDArray[np.int64],
    done: int,
    shifts: NDArray[np.uint8],
    curve: NDArray[np.float32],
    live: NDArray[np.bool_],
    k: int,
    scratch: Scratch,
) -> int:
    """A score that k documents reach: the k-th of a few promising ones, looked up in the lists not yet added.

    The promising ones are the strongest so far among the documents of the shortest lists that were added.
    """
    wanted, limit = max(SEEDS, k + k // 4), max(SEEN, 8 * k)
    seen, n_seen = scratch.flags, 0
    for place in order[:done]:
        if rows[place, 0] == DENSE or rows[place, 0] == bare.BITMAP or n_seen >= limit:
            continue
        for d in scratch.documents[: _first(lists, rows[place], limit - n_seen, scratch.documents)]:
            if seen[d] == 0 and np.int64(d) < n_documents and (len(live) == 0 or live[d]):
                seen[d] = 1
                scratch.chosen[n_seen], scratch.sums[n_seen] = np.int64(d), scratch.scores[d]
                n_seen += 1
    # The strongest few, kept in order: with so many to choose from, hardly any is better than those already there.
    strong, n = np.empty(wanted, np.int64), 0
    for one in range(n_seen):
        document, score = scratch.chosen[one], scratch.sums[one]
        seen[np.uint16(document)] = 0
        if n < wanted:
            n += 1
        elif score <= scratch.scores[np.uint16(strong[n - 1])]:
            continue
        place = n - 1
        while place > 0 and scratch.scores[np.uint16(strong[place - 1])] < score:
            strong[place] = strong[place - 1]
            place -= 1
        strong[place] = document
    if n < k:
        return 0
    scratch.chosen[:n] = strong[:n]
    scratch.chosen[:n] = np.sort(scratch.chosen[:n])
    for one in range(n):
        scratch.sums[one] = scratch.scores[np.uint16(scratch.chosen[one])]
    for place in order[done:]:
        look_up(lists, rows[place], n_documents, shifts, curve, row_weights[place], 0, n, scratch)
    return np.partition(scratch.sums[:n], n - k)[n - k] if n >= k else 0


@njit(cache=True, nogil=True)
def _first(lists: Lists, row: NDArray[np.int64], n: int, out: NDArray[np.uint16]) -> int:
    """The first documents of a list that has no bitmap, up to n: how many?"""
    if row[0] >= bare.PLAIN:
        return min(bare.read(lists.codes, row, out), n)
    count, start, document = min(row[1], n), row[2], np.int64(0)
    if row[0] == SPARSE:
        out[:count] = lists.shorts[start : start + count]
        return count
    document = np.int64(lists.shorts[start + row[1]]) - (np.int64(lists.shorts[start]) & 255)
    for place in range(count):
        document += np.int64(lists.shorts[start + place]) & 255
        out[place] = np.uint16(document)
    return count


@njit(cache=True, nogil=True)
def _reached(n_documents: int, k: int, scratch: Scratch) -> int:
    """A score that k documents have reached already: the k-th of the highest of each 8 neighbours."""
    n_blocks = (n_documents + 7) // 8
    if n_blocks < k:
        return 0
    highest = np.empty(n_blocks, np.int32)
    for block in range(n_blocks):
        score = scratch.scores[8 * block]
        for document in range(8 * block + 1, 8 * block + 8):
            score = max(score, scratch.scores[document])
        highest[block] = score
    return np.partition(highest, n_blocks - k)[n_blocks - k]


@njit(cache=True, nogil=True)
def choose(needed: int, n_documents: int, live: NDArray[np.bool_], scratch: Scratch) -> int:
    """Chooses the documents of at least that score, in order, with their scores; gives how many."""
    scores, flags = scratch.scores, scratch.flags
    bar = np.int32(needed)
    for document in range(CHUNK):
        flags[document] = scores[document] >= bar
    n = 0
    eights = flags.view(np.uint64)
    for place in range(len(eights)):
        bits = eights[place]
        if bits == 0:
            continue
        eights[place] = 0
        while bits != 0:
            document = place << 3 | trailing_zeros(bits) >> 3
            bits &= bits - np.uint64(1)
            if document < n_documents and (len(live) == 0 or live[document]):
                scratch.chosen[n], scratch.sums[n] = document, scores[document]
                n += 1
    return n
