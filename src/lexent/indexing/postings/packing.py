"""Encodings of weighted posting lists: packs a chunk of documents into lists, and unpacks it again.

A chunk holds up to 65,536 documents, so a document is a 16-bit number in it. For each latent that any of them has there
is one posting list, in one of four encodings; the array `known` says which latents those are. The smallest encoding is
taken, with two exceptions, as they are searched fastest: a list of at least one in BITMAP_MAX_MEAN_GAP documents is a
bitmap if that takes fewer than 3 bytes a posting, and a list of most documents has a code for each document.

- DOC_IDS: document numbers (16 bits each), and codes.
- GAPS: a 16-bit entry a posting, code << 8 | gap to the document before. A gap above 255 is bridged by entries of code
  0, which are no postings. After the entries stand skip pointers: the document numbers of entries 0, 64, 128, ...
- BITMAP: a bitmap of the documents without its zero bytes, and codes: see `bitmaps`.
- CODE_ARRAY: a code for each document of the chunk, 0 for those that are not in the list.

A binary index has posting lists without codes: see `binary_postings`. Functions here that read lists read those too.

Whatever the bytes of a damaged file, a document number has 16 bits, so a kernel whose arrays have 65,536 elements stays
inside them. Where a list begins and ends is checked before it is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings import binary_postings, bitmaps
from lexent.indexing.postings.descriptor import CODES, ENCODING, ENTRIES, START
from lexent.indexing.postings.layout import (
    BITMAP,
    BITMAP_MAX_MEAN_GAP,
    CHUNK_DOCUMENTS,
    CODE_ARRAY,
    CODE_ARRAY_MAX_MEAN_GAP,
    DOC_IDS,
    GAPS,
    LATENTS_PER_LINE,
    PADDING_BYTES,
    SKIP_INTERVAL,
    PostingLists,
)
from lexent.indexing.postings.quantisation import CODE_OF_ONE
from lexent.indexing.postings.simd import popcount, trailing_zeros
from lexent.jit import njit


@njit(cache=True, nogil=True, inline="always")
def known_lines(size: int) -> int:
    """Number of lines of `known` for a chunk."""
    return (size + LATENTS_PER_LINE - 1) // LATENTS_PER_LINE


@njit(cache=True, nogil=True)
def build_known(latents: NDArray[np.uint32], size: int) -> NDArray[np.uint64]:
    """Builds the lines of `known` for a chunk that has lists of these latents, which ascend."""
    known = np.zeros((known_lines(size), 8), np.uint64)
    for latent in latents:
        place = latent % LATENTS_PER_LINE
        known[latent // LATENTS_PER_LINE, place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    before = 0
    for line in known:
        line[7] = before
        for word in range(7):
            before += popcount(line[word])
    return known


@njit(cache=True, nogil=True, inline="always")
def find_list(known: NDArray[np.uint64], latent: np.uint64, n_lists: int) -> int:
    """Number of a latent's list among those of a chunk, from the chunk's lines of `known`; -1 where it has none."""
    line, place = latent // np.uint64(LATENTS_PER_LINE), latent % np.uint64(LATENTS_PER_LINE)
    if line >= len(known):
        return -1
    word, bit = place >> np.uint64(6), place & np.uint64(63)
    bits = known[line, word]
    # Without branches, so that the cache misses of several latents overlap.
    rank = np.int64(known[line, np.uint64(7)]) + popcount(bits & ((np.uint64(1) << bit) - np.uint64(1)))
    for other in range(np.uint64(6)):
        rank += popcount(known[line, other]) * (other < word)
    return rank if (bits >> bit) & np.uint64(1) != 0 and 0 <= rank < n_lists else -1


@njit(cache=True, nogil=True, inline="always")
def known_in(lists: PostingLists, chunk: int) -> NDArray[np.uint64]:
    """Lines of `known` of one chunk."""
    per_chunk = len(lists.known) // (len(lists.chunks) - 1)
    return lists.known[chunk * per_chunk : (chunk + 1) * per_chunk]


@njit(cache=True, nogil=True)
def latents_in(lists: PostingLists, chunk: int) -> NDArray[np.uint32]:
    """Latents of a chunk's lists, ascending; fewer than it has lists if it is damaged."""
    latents = np.empty(lists.chunks[chunk + 1, 1] - lists.chunks[chunk, 1], np.uint32)
    known, n = known_in(lists, chunk), 0
    for line in range(len(known)):
        for word in range(7):
            bits = known[line, word]
            while bits != 0 and n < len(latents):
                latents[n] = line * LATENTS_PER_LINE + word * 64 + trailing_zeros(bits)
                bits &= bits - np.uint64(1)
                n += 1
    return latents[:n]


def pack(
    starts: NDArray[np.int64], documents: NDArray[np.uint16], codes: NDArray[np.uint8], shifts: NDArray[np.uint16]
) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
    """Packs the lists of a chunk: their latents, and their part of each array. The arguments come from `invert`."""
    latents = np.flatnonzero(np.diff(starts)).astype(np.uint32)
    encodings, counts, places, code_places, sizes = plan(starts, documents, latents, len(shifts))
    shorts, packed = np.zeros(sizes[0], np.uint16), np.zeros(sizes[1] + PADDING_BYTES, np.uint8)
    max_positions = write(starts, documents, codes, shifts, latents, encodings, places, code_places, shorts, packed)
    records = np.stack([max_positions << 20 | counts << 2 | encodings, places, code_places], axis=1)
    return latents, {"records": records, "shorts": shorts, "codes": packed}


@njit(cache=True, nogil=True)
def invert(
    ids: NDArray[np.int32], codes: NDArray[np.uint8], offsets: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint8]]:
    """Inverts documents to posting lists, documents ascending in each, by counting sort; also where each begins."""
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
    starts: NDArray[np.int64], documents: NDArray[np.uint16], latents: NDArray[np.uint32], n_documents: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64]]:
    """Encoding, entries, place and place of the codes of the list of each latent; and the array sizes."""
    n_lists = len(latents)
    encodings, counts = np.empty(n_lists, np.uint8), np.empty(n_lists, np.uint32)
    places, code_places = np.empty(n_lists, np.uint32), np.empty(n_lists, np.uint32)
    shorts, codes = 0, 0
    for row in range(n_lists):
        latent = np.int64(latents[row])
        n = starts[latent + 1] - starts[latent]
        entries, last, size_in_bitmap = n, np.int64(documents[starts[latent]]), bitmaps.header_bytes(n_documents) + 1
        for posting in range(starts[latent], starts[latent + 1]):
            document = np.int64(documents[posting])
            entries += max(document - last - 1, 0) // 255
            size_in_bitmap += document >> 3 != last >> 3
            last = document
        shorts_in_gaps = entries + (entries + SKIP_INTERVAL - 1) // SKIP_INTERVAL
        if n_documents <= max(CODE_ARRAY_MAX_MEAN_GAP * n, min(n + size_in_bitmap, 2 * shorts_in_gaps, 3 * n)):
            encodings[row], counts[row], places[row], code_places[row] = CODE_ARRAY, n, 0, codes
            codes += n_documents
        elif n + size_in_bitmap <= (
            3 * n if n * BITMAP_MAX_MEAN_GAP >= n_documents else min(3 * n, 2 * shorts_in_gaps)
        ):
            encodings[row], counts[row], places[row], code_places[row] = BITMAP, n, codes, codes + size_in_bitmap
            codes += size_in_bitmap + n
        elif 2 * shorts_in_gaps <= 3 * n:
            encodings[row], counts[row], places[row], code_places[row] = GAPS, entries, shorts, 0
            shorts += shorts_in_gaps
        else:
            encodings[row], counts[row], places[row], code_places[row] = DOC_IDS, n, shorts, codes
            shorts += n
            codes += n
    return encodings, counts, places, code_places, np.array([shorts, codes])


@njit(cache=True, nogil=True)
def write(
    starts: NDArray[np.int64],
    documents: NDArray[np.uint16],
    posting_codes: NDArray[np.uint8],
    shifts: NDArray[np.uint16],
    latents: NDArray[np.uint32],
    encodings: NDArray[np.uint8],
    places: NDArray[np.uint32],
    code_places: NDArray[np.uint32],
    shorts: NDArray[np.uint16],
    codes: NDArray[np.uint8],
) -> NDArray[np.uint32]:
    """Writes the lists to where `plan` placed them; returns the highest 2 code + shift of each."""
    max_positions = np.zeros(len(latents), np.uint32)
    for row in range(len(latents)):
        start, stop = starts[latents[row]], starts[latents[row] + 1]
        highest = np.int64(0)
        for posting in range(start, stop):
            highest = max(highest, 2 * np.int64(posting_codes[posting]) + np.int64(shifts[documents[posting]]))
        max_positions[row] = highest
        if encodings[row] == GAPS:
            _write_gaps(documents[start:stop], posting_codes[start:stop], shorts, np.int64(places[row]))
            continue
        at = np.int64(code_places[row])
        if encodings[row] == CODE_ARRAY:
            for posting in range(start, stop):
                codes[at + np.int64(documents[posting])] = posting_codes[posting]
            continue
        codes[at : at + stop - start] = posting_codes[start:stop]
        at = np.int64(places[row])
        if encodings[row] == DOC_IDS:
            shorts[at : at + stop - start] = documents[start:stop]
        else:
            bitmaps.write(documents[start:stop], len(shifts), codes, at)
    return max_positions


@njit(cache=True, nogil=True)
def _write_gaps(
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
        if at % SKIP_INTERVAL == 0:
            shorts[entry + at // SKIP_INTERVAL] = document


@njit(cache=True, nogil=True, forceinline=True)
def locate(lists: PostingLists, chunk: int, row: int, descriptor: NDArray[np.int64]) -> bool:
    """Fills the descriptor of a list; False where the list does not lie inside its chunk.

    row: of `records`.
    """
    if lists.records.shape[1] == 1:
        return binary_postings.locate(lists, chunk, row, descriptor)
    encoding, count = np.int64(lists.records[row, 0]) & 3, np.int64(lists.records[row, 0]) >> 2 & 0x3FFFF
    place, code_place = np.int64(lists.records[row, 1]), np.int64(lists.records[row, 2])
    start, stop = lists.chunks[chunk], lists.chunks[chunk + 1]
    descriptor[ENCODING], descriptor[ENTRIES] = encoding, count
    descriptor[START] = place + (start[3] if encoding == BITMAP else start[2])
    descriptor[CODES] = code_place + start[3]
    if not 0 < count <= 2 * CHUNK_DOCUMENTS:
        return False
    if encoding == GAPS:
        return descriptor[START] + count + (count + SKIP_INTERVAL - 1) // SKIP_INTERVAL <= stop[2]
    if encoding == CODE_ARRAY:
        return descriptor[CODES] + stop[0] - start[0] + PADDING_BYTES <= stop[3]
    if descriptor[CODES] + count > stop[3]:
        return False
    if encoding == DOC_IDS:
        return descriptor[START] + count <= stop[2]
    in_order = descriptor[START] + bitmaps.header_bytes(stop[0] - start[0]) < descriptor[CODES]
    return in_order and descriptor[CODES] + count + PADDING_BYTES <= stop[3]


@njit(cache=True, nogil=True)
def unpack(
    lists: PostingLists, chunk: int, row: int, out_documents: NDArray[np.uint16], out_codes: NDArray[np.uint8]
) -> int:
    """Decodes the postings of one list; returns how many, or -1 if damaged. Outputs have 2 * CHUNK_DOCUMENTS places."""
    descriptor = np.empty(4, np.int64)
    if not locate(lists, chunk, row, descriptor):
        return -1
    encoding, count, start, codes = descriptor[ENCODING], descriptor[ENTRIES], descriptor[START], descriptor[CODES]
    n = 0
    if encoding >= binary_postings.BINARY_DOC_IDS:
        n = binary_postings.decode(lists.codes, descriptor, out_documents)
        out_codes[:n] = CODE_OF_ONE
        return n
    if encoding == GAPS:
        document = np.int64(lists.shorts[start + count]) - (np.int64(lists.shorts[start]) & 255)
        for entry in lists.shorts[start : start + count]:
            document += np.int64(entry) & 255
            if entry > 255:
                out_documents[n] = np.uint16(document)
                out_codes[n] = np.int64(entry) >> 8
                n += 1
        return n
    n_documents = lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]
    if encoding == CODE_ARRAY:
        for document in range(n_documents):
            out_documents[n], out_codes[n] = document, lists.codes[codes + document]
            n += lists.codes[codes + document] > 0
        return n
    out_codes[:count] = lists.codes[codes : codes + count]
    if encoding == DOC_IDS:
        out_documents[:count] = lists.shorts[start : start + count]
        return count
    return min(bitmaps.unpack(lists.codes, descriptor, n_documents, out_documents), count)


@njit(cache=True, nogil=True)
def unpack_latent(
    lists: PostingLists, chunk: int, latent: np.uint32, out_documents: NDArray[np.uint16], out_codes: NDArray[np.uint8]
) -> int:
    """Decodes the postings of a latent in a chunk; returns how many, or -1 if damaged or beyond the chunk."""
    first = lists.chunks[chunk, 1]
    row = find_list(known_in(lists, chunk), np.uint64(latent), lists.chunks[chunk + 1, 1] - first)
    if row < 0:
        return 0
    n = unpack(lists, chunk, first + row, out_documents, out_codes)
    for document in out_documents[: max(n, 0)]:
        if np.int64(document) >= lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]:
            return -1
    return n


@njit(cache=True, nogil=True)
def unpack_chunk(
    lists: PostingLists, chunk: int, keep: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64], int]:
    """Turns the posting lists of a chunk back into documents, those of `keep`: ids, codes, offsets, and their number.

    The number is -1 if the chunk is damaged. keep has CHUNK_DOCUMENTS elements.
    """
    documents, codes = np.empty(2 * CHUNK_DOCUMENTS, np.uint16), np.empty(2 * CHUNK_DOCUMENTS, np.uint8)
    counts = np.zeros(CHUNK_DOCUMENTS + 1, np.int64)
    latents, first = latents_in(lists, chunk), lists.chunks[chunk, 1]
    if first + len(latents) < lists.chunks[chunk + 1, 1]:
        return np.empty(0, np.int32), codes[:0], counts, -1
    for row in range(first, first + len(latents)):
        n = unpack(lists, chunk, row, documents, codes)
        if n < 0:
            return np.empty(0, np.int32), codes[:0], counts, -1
        for document in documents[:n]:
            counts[np.int64(document) + 1] += 1
    n_kept, total = 0, 0
    starts = np.zeros(CHUNK_DOCUMENTS, np.int64)
    offsets = np.zeros(CHUNK_DOCUMENTS + 1, np.int64)
    for document in range(lists.chunks[chunk + 1, 0] - lists.chunks[chunk, 0]):
        if keep[document]:
            starts[document] = total
            total += counts[document + 1]
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
def document_sums(
    codes: NDArray[np.uint8], offsets: NDArray[np.int64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum of the values of each document's codes."""
    sums = np.zeros(len(offsets) - 1, np.float64)
    for document in range(len(sums)):
        for entry in range(offsets[document], offsets[document + 1]):
            sums[document] += values[codes[entry]]
    return sums
