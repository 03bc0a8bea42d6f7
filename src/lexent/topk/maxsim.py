"""The Numba kernels of MaxSim over stores of tokens. Their slow twin is `lexent.indexing.maxsim_reference`.

A query is a list of rows: its tokens, each a few latents with whole-number weights. What a row gives to a document is
the most that it has in common with one of the document's rows, the sum of the products of weights and codes over the
latents that the two share. All of it is whole numbers, so a score is the same whatever is pruned.

A document's rows cannot have more of a latent than the highest code of it, which the lists keep. So the sum of weights
times highest codes, over all latents of all rows, is never below the document's score: the search adds up the lists,
scores the documents of the highest such bounds, and stops where no bound reaches the k-th best score any more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bare, bitmaps
from lexent.indexing.heap import offer
from lexent.indexing.packing import CHUNK, EVERY, GAPS, SPARSE, Lists, known_in, locate, row_of
from lexent.indexing.token_kernels import DAMAGED, PART, Tokens

BINS = 2048
"""Steps by which bounds are put in order."""
NOTHING = -2
ROOM = 2**31 - 1
"""No bound is larger."""
MANY = 2**15 - 1
"""Latents of a query that `top` can tell apart; `refine` has no such limit."""
FIRST = 64
"""So many documents of a chunk are scored, where only some are, before it may end sooner."""
SEEDS = 32
"""About so many documents of a chunk, and two for each that is wanted, are scored before any is left out."""


class Asked(NamedTuple):
    """A query's rows, by latent: entries firsts[p] to firsts[p + 1] are of latents[p], and table[latents[p]] == p."""

    table: NDArray[np.int16]  # [size + 1], -1 for latents that the query lacks, as for the last
    latents: NDArray[np.uint32]  # [n_latents], ascending
    firsts: NDArray[np.int32]  # [n_latents + 1]
    rows: NDArray[np.int32]  # [n_entries]
    values: NDArray[np.int32]  # [n_entries]
    sims: NDArray[np.int32]  # [PART * n_rows]: working memory, zero between parts
    best: NDArray[np.int32]  # [n_rows]: working memory
    hits: NDArray[np.uint64]  # [size + 1]: working memory


class Scratch(NamedTuple):
    """Working memory of a search."""

    bounds: NDArray[np.int32]  # [CHUNK]
    order: NDArray[np.uint16]  # [CHUNK]
    tally: NDArray[np.int32]  # [BINS]: how many documents have a bound in each step
    places: NDArray[np.int32]  # [BINS]


def ask(ids: NDArray[np.int32], values: NDArray[np.int32], offsets: NDArray[np.int64], *, size: int) -> Asked:
    """A query as the kernels read it. ids, values: of row i from offsets[i] to offsets[i + 1]."""
    known = (ids >= 0) & (ids < size) & (values != 0)
    rows = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))[known]
    order = np.argsort(ids[known], kind="stable")
    latents, firsts = np.unique(ids[known][order], return_index=True)
    table = np.full(size + 1, -1, np.int16 if len(latents) <= MANY else np.int32)
    table[latents] = np.arange(len(latents))
    n_rows = len(offsets) - 1
    return Asked(
        table=table,
        latents=latents.astype(np.uint32),
        firsts=np.append(firsts, len(order)).astype(np.int32),
        rows=rows[order],
        values=values[known][order].astype(np.int32),
        sims=np.zeros(n_rows * PART, np.int32),
        best=np.zeros(n_rows, np.int32),
        hits=np.empty(size + 1, np.uint64),
    )


def scratch() -> Scratch:
    return Scratch(
        bounds=np.zeros(CHUNK, np.int32),
        order=np.zeros(CHUNK, np.uint16),
        tally=np.zeros(BINS, np.int32),
        places=np.zeros(BINS, np.int32),
    )


@njit(cache=True, nogil=True)
def top(
    asked: Asked,
    latents: NDArray[np.uint32],
    weights: NDArray[np.int64],
    at_most: int,
    lists: Lists,
    store: Tokens,
    live: NDArray[np.bool_],
    base: int,
    best: NDArray[np.int64],
    who: NDArray[np.int64],
    state: NDArray[np.int64],
    scratch: Scratch,
) -> int:
    """The best documents of a segment into a heap; DAMAGED, or 0. No weight of the query is below 0.

    latents, weights: what documents are ordered by, ascending. at_most: 0 for an exact search, where the latents are
    all of the query's and the weights their sums, so that a sum is a bound; else how many documents of a chunk are
    scored at most, those of the highest sums, whatever the latents are: it ends sooner where no sum is high enough to
    reach the k-th best score with the highest ratio of score to sum so far. live: which documents count, all where it
    is empty. state: how many are in the heap, and how many documents were scored.
    """
    k, step = len(best), _step(weights)
    scaled = np.empty(len(weights), np.int32)
    for place in range(len(weights)):
        scaled[place] = (weights[place] + step - 1) // step  # rounded up: a bound stays one
    for chunk in range(len(lists.chunks) - 1):
        first, n = lists.chunks[chunk, 0], lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]
        scratch.bounds[:n] = 0
        if _add_up(latents, scaled, lists, chunk, scratch.bounds) < 0:
            return DAMAGED
        if len(live):
            for document in range(n):
                scratch.bounds[document] *= np.int32(live[first + document])
        shift = _count(n, scratch)
        if shift == DAMAGED:
            return DAMAGED
        if shift == NOTHING:
            continue
        high, low = BINS, _lowest(at_most if at_most else SEEDS + 2 * k, scratch.tally)
        scored, ratio = 0, 0.0
        while low < high:
            for place in range(_order(n, low, high, shift, scratch)):
                document = np.int64(scratch.order[place])
                bound = np.int64(scratch.bounds[document]) * step
                if state[0] == k and at_most == 0 and bound < best[0]:
                    continue
                if at_most and (scored == at_most or (scored >= FIRST and state[0] == k and bound * ratio < best[0])):
                    break
                scored += 1
                state[1] += 1
                score = score_of(asked, store, first + document)
                if score < 0:
                    return DAMAGED
                if score > 0:
                    offer(best, who, state, k, score, base + first + document)
                    ratio = max(ratio, score / bound)
            if at_most:
                break
            high = low
            low = min(low, (best[0] // step) >> shift) if state[0] == k else 0
    return 0


@njit(cache=True, nogil=True)
def refine(asked: Asked, store: Tokens, documents: NDArray[np.int64], scores: NDArray[np.int64]) -> int:
    """The scores of some documents of a segment, by position in it, also where weights are negative; DAMAGED, or 0."""
    table, sims, best = asked.table, asked.sims, asked.best
    n_rows, size = len(best), len(table) - 1
    lowest = np.int32(-(2**31 - 1))
    for place in range(len(documents)):
        first, last = store.parts[documents[place]], store.parts[documents[place] + 1]
        best[:] = lowest if last > first else 0
        for part in range(first, last):
            n = np.int64(store.rows[part])
            if n > PART:
                return DAMAGED
            sims[: n * n_rows] = 0
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
                        for asking in range(asked.firsts[found], asked.firsts[found + 1]):
                            product = asked.values[asking] * np.int32(store.values[other])
                            sims[token * n_rows + asked.rows[asking]] += product
                entry += count
            for token in range(n):
                for row in range(n_rows):
                    best[row] = max(best[row], sims[token * n_rows + row])
        scores[place] = best.astype(np.int64).sum()
    return 0


@njit(cache=True, nogil=True)
def score_of(asked: Asked, store: Tokens, document: int) -> int:
    """The score of one document of a segment; DAMAGED where it lies outside its part. No weight is below 0.

    Sums only grow then, so the highest of a row is kept on the way: what the query lacks is never looked at.
    """
    table, firsts, rows, values = asked.table, asked.firsts, asked.rows, asked.values
    sims, best, hits = asked.sims, asked.best, asked.hits
    n_rows, size = len(best), np.uint64(len(table) - 1)
    best[:] = 0
    for part in range(store.parts[document], store.parts[document + 1]):
        n = np.int64(store.rows[part])
        (start, entry), (stop, end) = store.starts[part], store.starts[part + 1]
        if n > PART or stop - start > len(hits):
            return DAMAGED
        # First which latents are shared, without branches; most are not. A hit: its entry, their number and its place.
        n_hits, at = np.uint64(0), np.uint64(entry)
        for row in range(np.uint64(start), np.uint64(stop)):
            found = np.int64(table[min(np.uint64(store.latents[row]), size)])
            count = np.uint64(store.counts[row])
            hits[n_hits] = at << np.uint64(24) | count << np.uint64(16) | np.uint64(found & 0xFFFF)
            n_hits += np.uint64(found >= 0)
            at += count + np.uint64(1)
        if np.int64(at) != end:
            return DAMAGED
        sims[: n * n_rows] = 0
        for hit in hits[:n_hits]:
            found, other = hit & np.uint64(0xFFFF), hit >> np.uint64(24)
            first, last = np.uint64(firsts[found]), np.uint64(firsts[found + np.uint64(1)])
            for entry in range(other, other + (hit >> np.uint64(16) & np.uint64(0xFF)) + np.uint64(1)):
                token, value = np.int64(store.tokens[entry]), np.int32(store.values[entry])
                if token >= n:
                    return DAMAGED
                for asking in range(first, last):
                    owner = np.uint64(rows[asking])
                    place = np.uint64(token * n_rows) + owner
                    total = sims[place] + values[asking] * value
                    sims[place] = total
                    best[owner] = max(best[owner], total)
    score = np.int64(0)
    for row in range(n_rows):
        score += np.int64(best[row])
    return score


@njit(cache=True, nogil=True)
def _step(weights: NDArray[np.int64]) -> int:
    """What weights are divided by, so that no bound is beyond 31 bits."""
    total = np.int64(len(weights))  # what rounding up may add
    for weight in weights:
        total += weight
    return max(np.int64(1), (total * 255 + ROOM - 1) // ROOM)


@njit(cache=True, nogil=True)
def _add_up(
    latents: NDArray[np.uint32], weights: NDArray[np.int32], lists: Lists, chunk: int, bounds: NDArray[np.int32]
) -> int:
    """Adds the lists of some latents of a chunk, times their weights; DAMAGED, or 0."""
    found = np.empty(4, np.int64)
    first = lists.chunks[chunk, 1]
    known, n_lists = known_in(lists, chunk), lists.chunks[chunk + 1, 1] - first
    n_documents, documents = lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0], np.empty(bare.MOST, np.uint16)
    for place in range(len(latents)):
        row = row_of(known, np.uint64(latents[place]), n_lists)
        if row < 0:
            continue
        if not locate(lists, chunk, first + row, found):
            return DAMAGED
        form, count, start, weight = found[0], found[1], found[2], weights[place]
        if form == GAPS:
            document = np.int64(lists.shorts[start + count]) - (np.int64(lists.shorts[start]) & 255)
            for entry in lists.shorts[start : start + count]:
                document += np.int64(entry) & 255
                bounds[np.uint16(document)] += weight * (np.int32(entry) >> 8)
            continue
        if form == EVERY:
            for document in range(n_documents):
                bounds[document] += weight * np.int32(lists.codes[found[3] + document])
            continue
        codes = lists.codes[found[3] : found[3] + count]
        if form == SPARSE:
            for d, code in zip(lists.shorts[start : start + count], codes):  # noqa: B905  (Numba's zip has no strict)
                bounds[d] += weight * np.int32(code)
            continue
        n = bitmaps.unpack(lists.codes, found, n_documents, documents)
        if n > count:
            return DAMAGED
        for d, code in zip(documents[:n], codes):  # noqa: B905
            bounds[d] += weight * np.int32(code)
    return 0


@njit(cache=True, nogil=True)
def _count(n: int, scratch: Scratch) -> int:
    """Tallies bounds by their leading bits: by how many bits are they shifted? NOTHING where all are 0, or DAMAGED."""
    least, most = np.int32(0), np.int32(0)
    for document in range(n):
        least, most = min(least, scratch.bounds[document]), max(most, scratch.bounds[document])
    if least < 0:  # a list that holds a document again and again
        return DAMAGED
    if most == 0:
        return NOTHING
    shift = 0
    while (most >> shift) >= BINS:
        shift += 1
    scratch.tally[:] = 0
    for document in range(n):
        scratch.tally[np.uint64(scratch.bounds[document] >> shift)] += 1
    return shift


@njit(cache=True, nogil=True)
def _lowest(count: int, tally: NDArray[np.int32]) -> int:
    """The step from which on up at least so many documents are."""
    low, total = BINS, 0
    while low > 0 and total < count:
        low -= 1
        total += tally[low]
    return low


@njit(cache=True, nogil=True)
def _order(n: int, low: int, high: int, shift: int, scratch: Scratch) -> int:
    """Documents whose bounds are in the steps from low to below high, the highest steps first, without those of 0."""
    total = 0
    for step in range(high - 1, low - 1, -1):
        scratch.places[step] = total
        total += scratch.tally[step]
    for document in range(n):
        bound = scratch.bounds[document]
        step = np.int64(bound >> shift)
        if low <= step < high:
            scratch.order[np.uint64(scratch.places[step])] = document
            scratch.places[step] += 1
    if low == 0:  # of the lowest step, those of bound 0 share nothing with the query
        kept = scratch.places[0] - scratch.tally[0]
        for place in range(kept, scratch.places[0]):
            if scratch.bounds[scratch.order[place]] > 0:
                scratch.order[kept] = scratch.order[place]
                kept += 1
        total = kept
    return total
