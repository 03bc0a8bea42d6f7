"""Collection statistics that weights depend on: number of documents, average length, document frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings import quantisation
from lexent.indexing.segment import Segment, Tombstones


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of the live documents: integer sums, which do not depend on how documents are spread over segments."""

    n_documents: int
    df: NDArray[np.int64]  # [size]
    length_units: int

    @staticmethod
    def of(segments: Sequence[Segment], tombstones: Sequence[Tombstones | None], *, size: int) -> Statistics:
        """Sums the statistics of segments, less those of their deleted documents."""
        df = np.zeros(size, np.int64)
        n_documents, units = 0, 0
        for segment, deleted in zip(segments, tombstones, strict=True):
            segment.add_df(df)
            n_documents += segment.n_documents
            units += segment.length_units
            if deleted is not None:
                np.subtract.at(df, deleted.df[:, 0], deleted.df[:, 1])
                n_documents -= len(deleted)
                units -= deleted.length_units
        return Statistics(n_documents, df, units)

    @property
    def average_length(self) -> float:
        """Average length of a document."""
        return quantisation.average_length(self.length_units, self.n_documents)
