"""Queries as rows of tokens, for MaxSim: coded, steered and weighed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexent.search import steering
from lexent.search.query import ADDED, WHOLE, Query, Rows
from lexent.types import RowCodes, SparseVectors
from lexent.weighting import pool, transform

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon
    from lexent.recipes import Recipe
    from lexent.search.searcher import Searcher


@dataclass(frozen=True, slots=True)
class TokenRows:
    """The rows of one query before idf."""

    vectors: SparseVectors  # a vector a row
    tokens: NDArray[np.int32]  # [n_rows], as in `Rows`
    strengths: NDArray[np.float32]  # [n_rows]

    @staticmethod
    def of(codes: RowCodes, recipe: Recipe, *, size: int) -> TokenRows:
        """The rows of one text, as `pipeline.coded` gives them."""
        n = len(codes.ids)
        tokens = np.arange(n, dtype=np.int32)
        if recipe.whole:
            tokens[-1] = WHOLE
        alone = replace(codes, offsets=np.arange(n + 1, dtype=np.int64))
        vectors = transform(pool(alone, size=size, how="max"), power=recipe.power_for("query"))
        return TokenRows(vectors, tokens, np.linalg.norm(codes.values, axis=1).astype(np.float32))

    def merged(self) -> SparseVectors:
        """One vector: the sum of the rows."""
        ids, places = np.unique(self.vectors.ids, return_inverse=True)
        sums = np.bincount(places, weights=self.vectors.values.astype(np.float64), minlength=len(ids))
        ends = np.array([0, len(ids)], np.int64)
        return SparseVectors(ids.astype(np.int32), sums.astype(np.float32), ends, self.vectors.size)

    def steered(self, steer: steering.Steer, *, lexicon: Lexicon) -> TokenRows:
        """With the factors applied in every row. A concept that no row has becomes a row of its own."""
        whole = self.merged()
        factors = steering.factors(steer, whole.ids.tolist(), lexicon=lexicon)
        base = float(whole.values.mean()) if len(whole.ids) else 1.0
        ids, places = np.unique(self.vectors.ids, return_inverse=True)
        by_id = np.array([factors.get(concept, 1.0) for concept in ids.tolist()], np.float32)
        own = replace(self.vectors, values=self.vectors.values * by_id[places])
        new = sorted(set(factors) - set(ids.tolist()))
        added = SparseVectors(
            np.array(new, np.int32),
            np.array([base * factors[concept] for concept in new], np.float32),
            np.arange(len(new) + 1, dtype=np.int64),
            own.size,
        )
        return TokenRows(
            SparseVectors.concatenate([own, added], size=own.size),
            np.concatenate([self.tokens, np.full(len(new), ADDED, np.int32)]),
            np.concatenate([self.strengths, added.values]),
        )

    def query(self, text: str, searcher: Searcher, *, factors: NDArray[np.float64] | None = None) -> Query:
        """With its final weights: times idf, and cut to the strongest concepts where the recipe has a cap."""
        weights = searcher.query_weights(self.vectors, factors=factors)
        kept = weights.values != 0
        cap = searcher.recipe.query_cap
        if cap is not None:
            strongest = transform(self.merged(), power=1.0, cap=cap).ids
            kept &= np.isin(weights.ids, strongest)
        owners = np.repeat(np.arange(len(self.tokens)), np.diff(weights.offsets))
        counts = np.bincount(owners[kept], minlength=len(self.tokens))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Query.of_rows(text, Rows(weights.ids[kept], weights.values[kept], offsets, self.tokens, self.strengths))


def represent(queries: Sequence[str], *, encoder: Encoder, lexicon: Lexicon, recipe: Recipe) -> list[TokenRows]:
    """The rows of each query."""
    from lexent.pipeline import coded

    found: list[TokenRows | None] = [None] * len(queries)
    for batch in coded(queries, kind="query", encoder=encoder, lexicon=lexicon, recipe=recipe):
        for place, position in enumerate(batch.positions.tolist()):
            found[position] = TokenRows.of(of_text(batch.codes, place), recipe, size=lexicon.size)
    return [rows for rows in found if rows is not None]


def of_text(codes: RowCodes, text: int) -> RowCodes:
    """The rows of one text."""
    rows = slice(codes.offsets[text], codes.offsets[text + 1])
    count = int(codes.offsets[text + 1] - codes.offsets[text])
    return RowCodes(codes.ids[rows], codes.values[rows], np.array([0, count], np.int64))
