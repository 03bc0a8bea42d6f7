"""How often texts have words, as sparse vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from lexent.types import SparseVectors


def word_counts(texts: Iterable[Mapping[int, float]], *, size: int) -> SparseVectors:
    """A vector a text, from how often it has each word, by the numbers of the words. size: how many words there are."""
    ids: list[int] = []
    values: list[float] = []
    ends = [0]
    for counts in texts:
        own = sorted(counts)
        ids += own
        values += [counts[number] for number in own]
        ends.append(len(ids))
    return SparseVectors(np.array(ids, np.int32), np.array(values, np.float32), np.array(ends, np.int64), size)
