"""What a collection's weights depend on: how many documents there are, how long, and how many have each latent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.indexing import scale
from lexent.indexing.segment import Deleted, Segment


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the documents that are not deleted; sums of whole numbers, so that how they are spread does not matter."""

    n_documents: int
    df: NDArray[np.int64]  # [size]
    length_units: int

    @staticmethod
    def of(segments: Sequence[Segment], deleted: Sequence[Deleted | None], *, size: int) -> Statistics:
        df = np.zeros(size, np.int64)
        n_documents, units = 0, 0
        for segment, gone in zip(segments, deleted, strict=True):
            segment.add_df(df)
            n_documents += segment.n_documents
            units += segment.length_units
            if gone is not None:
                np.subtract.at(df, gone.df[:, 0], gone.df[:, 1])
                n_documents -= len(gone)
                units -= gone.length_units
        return Statistics(n_documents, df, units)

    @property
    def average_length(self) -> float:
        return scale.average_length(self.length_units, self.n_documents)
