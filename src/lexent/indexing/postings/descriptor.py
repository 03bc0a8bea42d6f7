"""Columns of a posting list's descriptor: what `packing.locate` finds out about a list before it is read.

Places count from the start of the segment's arrays.
"""

from __future__ import annotations

ENCODING = 0
"""One of the encodings of `packing` or `binary_postings`."""
ENTRIES = 1
"""Postings, or entries where the encoding has more of those than postings."""
START = 2
"""Where the list begins, in `codes` or in `shorts`."""
CODES = 3
"""Where the list's codes begin, in `codes`."""
END = 3
"""Where a binary posting list ends, in `codes`; it has no codes."""
MAX_POSITION = 4
"""The highest curve position of a posting: its impact is the highest of the list. Filled in by searches only."""
COLUMNS = 5
