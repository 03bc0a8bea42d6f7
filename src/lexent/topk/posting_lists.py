"""Kernels that read one posting list of a chunk: accumulate it whole, or probe it for candidate documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings import binary_postings, bitmaps
from lexent.indexing.postings.descriptor import CODES, ENCODING, ENTRIES, MAX_POSITION, START
from lexent.indexing.postings.layout import BITMAP, CODE_ARRAY, DOC_IDS, GAPS, GROUP_DOCUMENTS, SKIP_INTERVAL
from lexent.indexing.postings.quantisation import CODE_OF_ONE
from lexent.indexing.postings.simd import (
    bytes_at_least,
    expand_bytes,
    load_word,
    popcount,
    prefetch,
    scores_at_least,
    trailing_zeros,
)
from lexent.jit import njit
from lexent.topk.impacts import contribution, curve_position
from lexent.topk.upper_bounds import SATURATED, UpperBounds, code_bound
from lexent.topk.workspace import DAMAGED, Chunk, QueryTerms, Workspace


@njit(cache=True, nogil=True)
def collect_candidates(required: int, n_documents: int, live: NDArray[np.bool_], workspace: Workspace) -> int:
    """Collects the documents whose accumulators reach a score, ascending; returns how many."""
    n, accumulators = 0, workspace.accumulators
    for place in range(0, n_documents, 64):
        bits = scores_at_least(accumulators, place, np.int32(required))
        while bits != 0:
            document = place + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            if document < n_documents and (len(live) == 0 or live[document]):
                workspace.candidates[n], workspace.candidate_scores[n] = document, accumulators[document]
                n += 1
    return n


@njit(cache=True, nogil=True, forceinline=True)
def accumulate(chunk: Chunk, descriptor: NDArray[np.int64], weight: np.float32, workspace: Workspace) -> int:
    """Adds the contributions of a whole posting list to the accumulators; returns DAMAGED, or 0."""
    contributions, accumulators = workspace.contributions, workspace.accumulators
    lists, shifts, curve = chunk.lists, chunk.shifts, chunk.curve
    # No posting of the list lies outside of these positions.
    for position in range(chunk.lowest_shift, min(descriptor[MAX_POSITION] + 1, len(curve))):
        contributions[position] = contribution(curve[position], weight)
    encoding, count, start = descriptor[ENCODING], descriptor[ENTRIES], descriptor[START]
    # Indices are unsigned, so that Numba omits the test for negative ones.
    if encoding >= binary_postings.BINARY_DOC_IDS:
        n = binary_postings.decode(lists.codes, descriptor, workspace.documents)
        for d in workspace.documents[:n]:
            accumulators[d] += contributions[curve_position(np.int64(CODE_OF_ONE), shifts[d])]
        return 0
    if encoding == GAPS:
        document = np.int64(lists.shorts[start + count]) - (np.int64(lists.shorts[start]) & 255)
        for entry in lists.shorts[start : start + count]:
            document += np.int64(entry) & 255
            d, code = np.uint16(document), np.int64(entry) >> 8
            accumulators[d] += contributions[curve_position(code, shifts[d])] * np.int32(code > 0)
        return 0
    if encoding == CODE_ARRAY:
        for place in range(0, chunk.n_documents, 64):
            bits = bytes_at_least(lists.codes, descriptor[CODES] + place, np.uint8(1))
            while bits != 0:
                d = np.uint16(place + trailing_zeros(bits))
                code = np.int64(lists.codes[np.uint64(descriptor[CODES]) + np.uint64(d)])
                accumulators[d] += contributions[curve_position(code, shifts[d])]
                bits &= bits - np.uint64(1)
        return 0
    codes = lists.codes[descriptor[CODES] : descriptor[CODES] + count]
    if encoding == DOC_IDS:
        for d, code in zip(lists.shorts[start : start + count], codes):  # noqa: B905  (Numba's zip has no strict)
            accumulators[d] += contributions[curve_position(np.int64(code), shifts[d])]
        return 0
    at, posting, document = descriptor[START] + bitmaps.header_bytes(chunk.n_documents), np.uint64(0), 0
    for group in range(bitmaps.n_groups(chunk.n_documents)):
        nonzero, at = load_word(lists.codes, descriptor[START] + 8 * group), min(at, descriptor[CODES])
        for _ in range(8):
            bits = expand_bytes(lists.codes, at, nonzero & np.uint64(255))
            if np.int64(posting) + popcount(bits) > count:
                return DAMAGED
            while bits != 0:
                d = np.uint16(document + trailing_zeros(bits))
                accumulators[d] += contributions[curve_position(np.int64(codes[posting]), shifts[d])]
                bits &= bits - np.uint64(1)
                posting += np.uint64(1)
            at += popcount(nonzero & np.uint64(255))
            nonzero >>= np.uint64(8)
            document += 64
    return 0


@njit(cache=True, nogil=True)
def score_candidates(
    chunk: Chunk,
    terms: QueryTerms,
    order: NDArray[np.int64],
    bounded: NDArray[np.int64],
    required: NDArray[np.int64],
    bounds: UpperBounds,
    n: int,
    workspace: Workspace,
) -> int:
    """Probes posting lists for the n candidates, which ascend, and drops those that fall short; returns how many stay.

    order: the terms whose lists are probed, one after the other. bounded: the place of each in `bounds`, whose share of
    the candidate scores the exact contribution replaces; -1 for lists that no bound was added for. required: the score
    that a candidate must have after each list.
    """
    # Arrays are passed one by one: passing the tuples takes longer than probing a list for few documents.
    candidates = workspace.candidates
    scores = workspace.candidate_scores
    matches = workspace.matches
    codes = workspace.match_codes
    document_bounds = workspace.upper_bounds
    data, shorts, shifts = chunk.lists.codes, chunk.lists.shorts, chunk.shifts
    half_shifts, curve = chunk.half_shifts, chunk.curve
    descriptors, weights, n_documents = terms.descriptors, terms.weights, chunk.n_documents
    for step in range(len(order)):
        if n == 0:
            break
        term, number, next_term = order[step], bounded[step], order[min(step + 1, len(order) - 1)]
        prefetch_probes(data, descriptors, next_term, n_documents, candidates, n)
        weight, list_maximum = weights[term], bounds.list_maxima[number] if number >= 0 else 0
        for place in range(probe(data, shorts, descriptors, term, n_documents, candidates, n, matches, codes)):
            match, code = matches[place], codes[place]
            d = np.uint16(candidates[match])
            score = scores[match] + contribution(curve[curve_position(code, shifts[d])], weight)
            if number >= 0 and document_bounds[d] != SATURATED:
                by_code = bounds.bases[number] >= 0
                score -= (
                    bounds.unit * code_bound(bounds, number, code, np.int64(half_shifts[d]))
                    if by_code
                    else list_maximum
                )
            scores[match] = score
        if bounds.highest == SATURATED and number >= 0:
            for place in range(n):  # a saturated bound holds the maximum of every list
                scores[place] -= list_maximum * (document_bounds[np.uint16(candidates[place])] == SATURATED)
        kept = 0
        for place in range(n):
            document, score = candidates[place], scores[place]
            candidates[kept], scores[kept] = document, score
            kept += score >= required[step]
        n = kept
    return n


@njit(cache=True, nogil=True, forceinline=True)
def probe(
    data: NDArray[np.uint8],
    shorts: NDArray[np.uint16],
    descriptors: NDArray[np.int64],
    term: int,
    n_documents: int,
    candidates: NDArray[np.int64],
    n: int,
    matches: NDArray[np.int64],
    codes: NDArray[np.int64],
) -> int:
    """Finds which of the n candidates, which ascend, are in a posting list, and their codes; returns how many."""
    encoding = descriptors[term, ENCODING]
    start = descriptors[term, START]
    end = descriptors[term, START] + descriptors[term, ENTRIES]
    first_code = descriptors[term, CODES]
    found = 0
    if encoding == BITMAP:
        found = bitmaps.probe_many(data, descriptors, term, n_documents, candidates, n, matches, codes)
        for place in range(found):
            codes[place] = data[codes[place]]
    elif encoding == CODE_ARRAY:
        for place in range(n):
            code = data[first_code + candidates[place]]
            matches[found], codes[found] = place, code
            found += code != 0
    elif encoding == DOC_IDS:
        at = start
        for place in range(n):
            high = end
            while at < high:
                middle = (at + high) >> 1
                if np.int64(shorts[middle]) < candidates[place]:
                    at = middle + 1
                else:
                    high = middle
            if at < end and np.int64(shorts[at]) == candidates[place]:
                matches[found], codes[found] = place, data[first_code - start + at]
                found += 1
    elif encoding == GAPS:
        skips, last = end, (end - start - 1) // SKIP_INTERVAL
        skip, entry, at = 0, start, np.int64(shorts[skips])
        for place in range(n):
            document = candidates[place]
            if skip < last and np.int64(shorts[skips + skip + 1]) <= document:
                skip, high = skip + 1, last
                while skip < high:
                    middle = (skip + high + 1) >> 1
                    if np.int64(shorts[skips + middle]) <= document:
                        skip = middle
                    else:
                        high = middle - 1
                entry, at = start + skip * SKIP_INTERVAL, np.int64(shorts[skips + skip])
            while at < document and entry + 1 < skips:
                entry += 1
                at += np.int64(shorts[entry]) & 255
            code = np.int64(shorts[entry]) >> 8
            matches[found], codes[found] = place, code
            found += at == document and code > 0
    else:
        for place in range(n):
            matches[found], codes[found] = place, CODE_OF_ONE
            found += binary_postings.contains(data, descriptors[term], candidates[place])
    return found


@njit(cache=True, nogil=True, forceinline=True)
def prefetch_probes(
    data: NDArray[np.uint8],
    descriptors: NDArray[np.int64],
    term: int,
    n_documents: int,
    candidates: NDArray[np.int64],
    n: int,
) -> None:
    """Prefetches what `probe` will read of a long list; where bytes and codes stand is estimated from the document."""
    encoding, start, codes = descriptors[term, ENCODING], descriptors[term, START], descriptors[term, CODES]
    if encoding == CODE_ARRAY:
        for place in range(n):
            prefetch(data, codes + candidates[place])
    if encoding != BITMAP:
        return
    ranks, low = start + 8 * bitmaps.n_groups(n_documents), start + bitmaps.header_bytes(n_documents)
    bytes_per_document = (codes - low) / n_documents
    codes_per_document = descriptors[term, ENTRIES] / n_documents
    for place in range(n):
        document = candidates[place]
        prefetch(data, start + 8 * (document // GROUP_DOCUMENTS))
        prefetch(data, ranks + 4 * (document // GROUP_DOCUMENTS))
        prefetch(data, low + np.int64(document * bytes_per_document))
        prefetch(data, codes + np.int64(document * codes_per_document))
