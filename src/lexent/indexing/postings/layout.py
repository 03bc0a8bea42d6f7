"""How weighted posting lists lie in the arrays of a segment, for kernels and for NumPy: see `packing`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexent.errors import ArtifactError

CHUNK_DOCUMENTS = 65_536
"""Documents of a chunk, at most."""
DOC_IDS, GAPS, BITMAP, CODE_ARRAY = 0, 1, 2, 3
SKIP_INTERVAL = 64
"""Entries of a GAPS list between two skip pointers."""
BITMAP_MAX_MEAN_GAP = 24
"""See `packing`. With a higher value more lists are bitmaps: fewer postings are accumulated, more bounds added."""
CODE_ARRAY_MAX_MEAN_GAP = 2
"""A list of at least one in so many documents has a code for each document."""
LATENTS_PER_LINE = 448
"""Latents of a line of `known`: with the rank before it, a cache line of 64 bytes."""
GROUP_DOCUMENTS = 512
"""Documents of a group of a bitmap."""
PADDING_BYTES = 640
"""Bytes behind the lists of a chunk, since a vector load may begin in the last list and end behind it. The words of a
damaged list may claim more bytes than it has, by a group at most."""
REMEDY = "check it with `lexent verify DIR`, and build it again: lexent index CORPUS --out DIR --overwrite"


class PostingLists(NamedTuple):
    """The posting lists of a segment, chunk after chunk. Places count from the start of their chunk."""

    chunks: NDArray[np.int64]
    """[n_chunks + 1, 4]: where each chunk begins among documents, lists, shorts and codes."""
    known: NDArray[np.uint64]
    """[n_chunks * known_lines, 8]: bitmap of the latents that have lists (7 words), and the rank of the first."""
    records: NDArray[np.uint32]
    """[n_lists, 3]: max position << 20 | entries << 2 | encoding; place in `codes` for BITMAP, in `shorts` for DOC_IDS
    and GAPS; place of the codes. Max position: the highest 2 code + narrow shift (see `quantisation`) of a posting when
    the chunk was packed. [n_lists, 1] for binary posting lists."""
    shorts: NDArray[np.uint16]
    codes: NDArray[np.uint8]
    """Codes, with bitmaps before theirs. Binary posting lists are here alone."""


def damaged() -> ArtifactError:
    """The error of a posting list that lies outside of its chunk."""
    return ArtifactError(f"the index is damaged: a posting list lies outside its chunk; {REMEDY}")
