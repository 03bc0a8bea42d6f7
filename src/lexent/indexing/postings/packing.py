"""The Numba kernels that pack a chunk of documents into lists, and unpack it again.

A chunk holds up to 65,536 documents, so a document is a 16-bit number in it. For each latent that any of them has there
is one list (which latents those are, a bitmap says), in one of four forms. The smallest is taken; but a latent of one
document in COMMON has a bitmap if that is smaller than 3 bytes a document, and one of most documents a code for each of
them, as those are searched quickest.

- SPARSE: document numbers (16 bits each), and codes.
- GAPS: one 16-bit entry a posting, code << 8 | distance from the document before. A distance above 255 is bridged by
  entries of code 0, which weigh nothing. After the entries stand the document numbers of entries 0, 64, 128, ...
- DENSE: a bitmap of the documents without the bytes of it that are 0, and codes: see `lexent.indexing.bitmaps`.
- EVERY: a code for each document of the chunk, 0 for those that are not in the list.

A binary index has other lists, without codes: see `lexent.indexing.bare`. What reads lists here reads those too.

Whatever the bytes of a damaged file say, a document number has 16 bits, so a kernel whose arrays have 65,536 places
stays inside them; where a list begins and ends is checked before it is read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lexent.indexing import bare, bitmaps
from lexent.indexing.bits import popcount, trailing_zeros
from lexent.indexing.scale import ONE

CHUNK = 65_536
SPARSE, GAPS, DENSE, EVERY = 0, 1, 2, 3
STRIDE = 64
"""Entries of a GAPS list between two document numbers."""
COMMON = 24
"""See above. With more bitmaps fewer postings are read one by one; with fewer, less is asked of all documents."""
MOST = 2
"""One document in so many is most of them."""
GROUP = 448
"""Latents of a line of `known`: with their count before it, 64 bytes."""


class Lists(NamedTuple):
    """The lists of a segment, chunk after chunk. Places count from the start of their chunk."""

    chunks: NDArray[np.int64]
    """[n_chunks + 1, 4]: where each chunk starts among documents, lists, shorts and codes."""
    known: NDArray[np.uint64]
    """[n_chunks * groups, 8]: which latents of each GROUP have lists (7 words), and how many lists come before."""
    records: NDArray[np.uint32]
    """[n_lists, 3]: highest << 20 | entries << 2 | form; place in codes for DENSE, in shorts for SPARSE and GAPS;
    place of the codes. highest: of 2 code + shift over the list's postings, with the shifts of when the chunk was
    packed. For bare lists [n_lists, 1]."""
    shorts: NDArray[np.uint16]
    codes: NDArray[np.uint8]
    """Bitmaps before their codes. Bare lists stand here, and nothing else."""


@njit(cache=True, nogil=True, inline="always")
def groups(size: int) -> int:
    """Lines of `known` for a chunk."""
    return (size + GROUP - 1) // GROUP


@njit(cache=True, nogil=True)
def mark_known(latents: NDArray[np.uint32], size: int) -> NDArray[np.uint64]:
    """The lines of `known` for a chunk whose lists are those of the latents, which ascend."""
    known = np.zeros((groups(size), 8), np.uint64)
    for latent in latents:
        place = latent % GROUP
        known[latent // GROUP, place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    before = 0
    for line in known:
        line[7] = before
        for word in range(7):
            before += popcount(line[word])
    return known


@njit(cache=True, nogil=True, inline="always")
def row_of(known: NDArray[np.uint64], latent: np.uint64, n_lists: int) -> int:
    """Which of a chunk's lists is that of a latent, by the chunk's lines of `known`; -1 where it has none."""
    group, place = latent // np.uint64(GROUP), latent % np.uint64(GROUP)
    if group >= len(known):
        return -1
    word, bit = place >> np.uint64(6), place & np.uint64(63)
    bits = known[group, word]
    # Without branches, so that the waits for memory of several latents overlap.
    rank = np.int64(known[group, np.uint64(7)]) + popcount(bits & ((np.uint64(1) << bit) - np.uint64(1)))
    for other in range(np.uint64(6)):
        rank += popcount(known[group, other]) * (other < word)
    return rank if (bits >> bit) & np.uint64(1) != 0 and 0 <= rank < n_lists else -1


@njit(cache=True, nogil=True, inline="always")
def known_in(lists: Lists, chunk: int) -> NDArray[np.uint64]:
    """The lines of `known` of one chunk."""
    per_chunk = len(lists.known) // (len(lists.chunks) - 1)
    return lists.known[chunk * per_chunk : (chunk + 1) * per_chunk]


@njit(cache=True, nogil=True)
def latents_in(lists: Lists, chunk: int) -> NDArray[np.uint32]:
    """The latents of a chunk's lists, ascending; fewer than it has lists if it is damaged."""
    latents = np.empty(lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1], np.uint32)
    known, n = known_in(lists, chunk), 0
    for group in range(len(known)):
        for word in range(7):
            bits = known[group, word]
            while bits != 0 and n < len(latents):
                latents[n] = group * GROUP + word * 64 + trailing_zeros(bits)
                bits &= bits - np.uint64(1)
                n += 1
    return latents[:n]


def pack(
    starts: NDArray[np.int64], documents: NDArray[np.uint16], codes: NDArray[np.uint8], shifts: NDArray[np.uint8]
) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
    """The lists of a chunk: their latents, and their part of each array. starts, documents, codes: see `invert`."""
    latents, forms, counts, places, code_places, sizes = plan(starts, documents, len(shifts))
    shorts, packed = np.zeros(sizes[0], np.uint16), np.zeros(sizes[1] + bitmaps.ROOM, np.uint8)
    highest = np.zeros(len(latents), np.uint32)
    fill(starts, documents, codes, shifts, latents, forms, places, code_places, shorts, packed, highest)
    records = np.stack([highest << 20 | counts << 2 | forms, places, code_places], axis=1)
    return latents, {"records": records, "shorts": shorts, "codes": packed}


@njit(cache=True, nogil=True)
def invert(
    ids: NDArray[np.int32], codes: NDArray[np.uint8], offsets: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint8]]:
    """Documents to lists, document numbers ascending within each: a counting sort. Also where each list starts."""
    starts = np.zeros(size + 1, np.int64)
    for latent in ids:
        starts[latent + 1] += 1
    for latent in range(size):
        starts[latent + 1] += starts[latent]
    free = starts[:-1].copy()
    documents = np.empty(len(ids), np.uint16)
    sorted_codes = np.empty(len(ids), np.uint8)
    for document in range(len(offsets) - 1):
        for entry in range(offsets[document], offsets[document + 1]):
            place = free[ids[entry]]
            free[ids[entry]] = place + 1
            documents[place] = document
            sorted_codes[place] = codes[entry]
    return starts, documents, sorted_codes


@njit(cache=True, nogil=True)
def plan(
    starts: NDArray[np.int64], documents: NDArray[np.uint16], n_documents: int
) -> tuple[
    NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64]
]:
    """For each list that is not empty: latent, form, entries, place, place of its codes; and how long each part is."""
    n_lists = 0
    for latent in range(len(starts) - 1):
        n_lists += starts[latent + 1] > starts[latent]
    latents = np.empty(n_lists, np.uint32)
    forms = np.empty(n_lists, np.uint8)
    counts = np.empty(n_lists, np.uint32)
    places = np.empty(n_lists, np.uint32)
    code_places = np.empty(n_lists, np.uint32)
    shorts, codes, row = 0, 0, 0
    for latent in range(len(starts) - 1):
        n = starts[latent + 1] - starts[latent]
        if n == 0:
            continue
        entries, last, in_bitmap = n, np.int64(documents[starts[latent]]), bitmaps.head(n_documents) + 1
        for posting in range(starts[latent], starts[latent + 1]):
            document = np.int64(documents[posting])
            entries += max(document - last - 1, 0) // 255
            in_bitmap += document >> 3 != last >> 3
            last = document
        with_gaps = entries + (entries + STRIDE - 1) // STRIDE
        latents[row] = latent
        if n_documents <= max(MOST * n, min(n + in_bitmap, 2 * with_gaps, 3 * n)):
            forms[row], counts[row], places[row], code_places[row] = EVERY, n, 0, codes
            codes += n_documents
        elif n + in_bitmap <= (3 * n if n * COMMON >= n_documents else min(3 * n, 2 * with_gaps)):
            forms[row], counts[row], places[row], code_places[row] = DENSE, n, codes, codes + in_bitmap
            codes += in_bitmap + n
        elif 2 * with_gaps <= 3 * n:
            forms[row], counts[row], places[row], code_places[row] = GAPS, entries, shorts, 0
            shorts += with_gaps
        else:
            forms[row], counts[row], places[row], code_places[row] = SPARSE, n, shorts, codes
            shorts += n
            codes += n
        row += 1
    return latents, forms, counts, places, code_places, np.array([shorts, codes])


@njit(cache=True, nogil=True)
def fill(
    starts: NDArray[np.int64],
    documents: NDArray[np.uint16],
    posting_codes: NDArray[np.uint8],
    shifts: NDArray[np.uint8],
    latents: NDArray[np.uint32],
    forms: NDArray[np.uint8],
    places: NDArray[np.uint32],
    code_places: NDArray[np.uint32],
    shorts: NDArray[np.uint16],
    codes: NDArray[np.uint8],
    highest: NDArray[np.uint32],
) -> None:
    """Writes the lists to the places that `plan` gave them, and the highest 2 code + shift of each."""
    for row in range(len(latents)):
        start, stop = starts[latents[row]], starts[latents[row] + 1]
        most = np.int64(0)
        for posting in range(start, stop):
            most = max(most, 2 * np.int64(posting_codes[posting]) + np.int64(shifts[documents[posting]]))
        highest[row] = most
        if forms[row] == GAPS:
            _fill_gaps(documents[start:stop], posting_codes[start:stop], shorts, np.int64(places[row]))
            continue
        at = np.int64(code_places[row])
        if forms[row] == EVERY:
            for posting in range(start, stop):
                codes[at + np.int64(documents[posting])] = posting_codes[posting]
            continue
        codes[at : at + stop - start] = posting_codes[start:stop]
        at = np.int64(places[row])
        if forms[row] == SPARSE:
            shorts[at : at + stop - start] = documents[start:stop]
            continue
        bitmaps.fill(documents[start:stop], len(shifts), codes, at)


@njit(cache=True, nogil=True)
def _fill_gaps(
    documents: NDArray[np.uint16], posting_codes: NDArray[np.uint8], shorts: NDArray[np.uint16], place: int
) -> None:
    entry, last = place, np.int64(documents[0])
    for posting in range(len(documents)):
        gap = np.int64(documents[posting]) - last
        while gap > 255:
            shorts[entry] = 255
            entry += 1
            gap -= 255
        shorts[entry] = np.int64(posting_codes[posting]) << 8 | gap
        entry += 1
        last = np.int64(documents[posting])
    count, document = entry - place, np.int64(documents[0])
    for at in range(count):
        document += np.int64(shorts[place + at]) & 255
        if at % STRIDE == 0:
            shorts[entry + at // STRIDE] = document


@njit(cache=True, nogil=True, forceinline=True)
def locate(lists: Lists, chunk: int, row: int, found: NDArray[np.int64]) -> bool:
    """Form, entries, start and start of the codes of a list, counted from the start of the segment; see `bare.locate`.

    False where the list does not lie inside its chunk.
    """
    if lists.records.shape[1] == 1:
        return bare.locate(lists, chunk, row, found)
    form, count = np.int64(lists.records[row, 0]) & 3, np.int64(lists.records[row, 0]) >> 2 & 0x3FFFF
    place, code_place = np.int64(lists.records[row, 1]), np.int64(lists.records[row, 2])
    start, stop = lists.chunks[chunk], lists.chunks[chunk + 1]
    found[0], found[1] = form, count
    found[2] = place + (start[3] if form == DENSE else start[2])
    found[3] = code_place + start[3]
    if not 0 < count <= 2 * CHUNK:
        return False
    if form == GAPS:
        return found[2] + count + (count + STRIDE - 1) // STRIDE <= stop[2]
    if form == EVERY:
        return found[3] + stop[0] - start[0] + bitmaps.ROOM <= stop[3]
    if found[3] + count > stop[3]:
        return False
    if form == SPARSE:
        return found[2] + count <= stop[2]
    whole = found[2] + bitmaps.head(stop[0] - start[0]) < found[3]
    return whole and found[3] + count + bitmaps.ROOM <= stop[3]


@njit(cache=True, nogil=True)
def unpack(lists: Lists, chunk: int, row: int, out_documents: NDArray[np.uint16], out_codes: NDArray[np.uint8]) -> int:
    """The postings of one list; gives how many, or -1 if it is damaged. The outputs have 2 * CHUNK places."""
    found = np.empty(4, np.int64)
    if not locate(lists, chunk, row, found):
        return -1
    form, count, start, codes, n = found[0], found[1], found[2], found[3], 0
    if form >= bare.PLAIN:
        n = bare.read(lists.codes, found, out_documents)
        out_codes[:n] = ONE
        return n
    if form == GAPS:
        document = np.int64(lists.shorts[start + count]) - (np.int64(lists.shorts[start]) & 255)
        for entry in lists.shorts[start : start + count]:
            document += np.int64(entry) & 255
            if entry > 255:
                out_documents[n] = np.uint16(document)
                out_codes[n] = np.int64(entry) >> 8
                n += 1
        return n
    n_documents = lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]
    if form == EVERY:
        for document in range(n_documents):
            out_documents[n], out_codes[n] = document, lists.codes[codes + document]
            n += lists.codes[codes + document] > 0
        return n
    out_codes[:count] = lists.codes[codes : codes + count]
    if form == SPARSE:
        out_documents[:count] = lists.shorts[start : start + count]
        return count
    return min(bitmaps.unpack(lists.codes, found, n_documents, out_documents), count)


@njit(cache=True, nogil=True)
def unpack_latent(
    lists: Lists, chunk: int, latent: np.uint32, out_documents: NDArray[np.uint16], out_codes: NDArray[np.uint8]
) -> int:
    """The postings of a latent in a chunk, 0 where it has none; -1 if damaged, also by documents beyond the chunk."""
    first = lists.chunks[chunk, 1]
    row = row_of(known_in(lists, chunk), np.uint64(latent), lists.chunks[chunk + 1, 1] - first)
    if row < 0:
        return 0
    n = unpack(lists, chunk, first + row, out_documents, out_codes)
    for document in out_documents[: max(n, 0)]:
        if np.int64(document) >= lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]:
            return -1
    return n


@njit(cache=True, nogil=True)
def unpack_chunk(
    lists: Lists, chunk: int, keep: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64], int]:
    """The documents of a chunk that are kept, each with its latents ascending and their codes, and how many those are.

    -1 in the last place says that the chunk is damaged. keep has a place for each document that a chunk can name.
    """
    documents, codes = np.empty(2 * CHUNK, np.uint16), np.empty(2 * CHUNK, np.uint8)
    ends = np.zeros(CHUNK + 1, np.int64)
    latents, first = latents_in(lists, chunk), lists.chunks[chunk, 1]
    if first + len(latents) < lists.chunks[chunk + 1, 1]:
        return np.empty(0, np.int32), codes[:0], ends, -1
    for row in range(first, first + len(latents)):
        n = unpack(lists, chunk, row, documents, codes)
        if n < 0:
            return np.empty(0, np.int32), codes[:0], ends, -1
        for document in documents[:n]:
            ends[np.int64(document) + 1] += 1
    n_kept, total = 0, 0
    starts = np.zeros(CHUNK, np.int64)
    offsets = np.zeros(CHUNK + 1, np.int64)
    for document in range(lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]):
        if keep[document]:
            starts[document] = total
            total += ends[document + 1]
            n_kept += 1
            offsets[n_kept] = total
    ids, out_codes = np.empty(total, np.int32), np.empty(total, np.uint8)
    for row in range(first, first + len(latents)):
        for posting in range(unpack(lists, chunk, row, documents, codes)):
            document = documents[posting]
            if keep[document]:
                ids[starts[document]] = latents[row - first]
                out_codes[starts[document]] = codes[posting]
                starts[document] += 1
    return ids, out_codes, offsets[: n_kept + 1].copy(), n_kept


@njit(cache=True, nogil=True)
def sums_of(codes: NDArray[np.uint8], offsets: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each document the sum of the values that its codes stand for."""
    sums = np.zeros(len(offsets) - 1, np.float64)
    for document in range(len(sums)):
        for entry in range(offsets[document], offsets[document + 1]):
            sums[document] += values[codes[entry]]
    return sums
