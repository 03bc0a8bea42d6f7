"""Queries for MaxSim as rows of tokens: encoding, steering and weighting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexent.search import steering
from lexent.search.query import ADDED_CONCEPT_ROW, WHOLE_TEXT_ROW, Query, QueryRows, summed
from lexent.types import RowCodes, SparseVectors
from lexent.weighting import pool, transform

if TYPE_CHECKING:
    from lexent.lexicon import Lexicon
    from lexent.pipeline import Coded, Pipeline
    from lexent.recipes import Recipe
    from lexent.search.document_scorer import DocumentScorer
    from lexent.search.groups import QueryGroups


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Rows of one query before idf."""

    vectors: SparseVectors  # a vector a row
    tokens: NDArray[np.int32]  # [n_rows], as in `Rows`
    strengths: NDArray[np.float32]  # [n_rows]

    @staticmethod
    def of(codes: RowCodes, recipe: Recipe, *, size: int) -> TokenRows:
        """From the rows of one text, as `pipeline.coded` gives them."""
        n = len(codes.ids)
        tokens = np.arange(n, dtype=np.int32)
        if recipe.whole:
            tokens[-1] = WHOLE_TEXT_ROW
        alone = replace(codes, offsets=np.arange(n + 1, dtype=np.int64))
        vectors = transform(pool(alone, size=size, how="max"), power=recipe.power_for("query"))
        return TokenRows(vectors, tokens, np.linalg.norm(codes.values, axis=1).astype(np.float32))

    def merged(self) -> SparseVectors:
        """Sum of the rows as one vector."""
        ids, sums = summed(self.vectors.ids, self.vectors.values)
        return SparseVectors(ids, sums, np.array([0, len(ids)], np.int64), self.vectors.size)

    def steered(self, steer: steering.Steer, *, lexicon: Lexicon, groups: QueryGroups | None = None) -> TokenRows:
        """Applies steering factors in every row. A concept that no row has becomes a row of its own."""
        merged = self.merged()
        factors = steering.factors(steer, merged.ids.tolist(), lexicon=lexicon, groups=groups)
        base = float(merged.values.mean()) if len(merged.ids) else 1.0
        of_entries = np.array([factors.get(concept, 1.0) for concept in self.vectors.ids.tolist()], np.float32)
        scaled = replace(self.vectors, values=self.vectors.values * of_entries)
        added_ids = sorted(set(factors) - set(merged.ids.tolist()))
        added = SparseVectors(
            np.array(added_ids, np.int32),
            np.array([base * factors[concept] for concept in added_ids], np.float32),
            np.arange(len(added_ids) + 1, dtype=np.int64),
            scaled.size,
        )
        return TokenRows(
            SparseVectors.concatenate([scaled, added], size=scaled.size),
            np.concatenate([self.tokens, np.full(len(added_ids), ADDED_CONCEPT_ROW, np.int32)]),
            np.concatenate([self.strengths, added.values]),
        )

    def query(self, text: str, scorer: DocumentScorer, *, factors: NDArray[np.float64] | None = None) -> Query:
        """The query with its final weights: times idf, and only the strongest concepts where the recipe has a cap."""
        weights = scorer.query_weights(self.vectors, factors=factors)
        kept = weights.values != 0
        cap = scorer.recipe.query_cap
        if cap is not None:
            strongest = transform(self.merged(), power=1.0, cap=cap).ids
            kept &= np.isin(weights.ids, strongest)
        owners = np.repeat(np.arange(len(self.tokens)), np.diff(weights.offsets))
        counts = np.bincount(owners[kept], minlength=len(self.tokens))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Query.of_rows(
            text, QueryRows(weights.ids[kept], weights.values[kept], offsets, self.tokens, self.strengths)
        )


def represent(queries: Sequence[str], pipeline: Pipeline) -> list[TokenRows]:
    """Encodes queries to rows."""

    def rows(batch: Coded) -> list[TokenRows]:
        texts = range(len(batch.positions))
        return [TokenRows.of(of_text(batch.codes, text), pipeline.recipe, size=pipeline.lexicon.size) for text in texts]

    parts, order = pipeline.collect(queries, rows, kind="query")
    found = [one for part in parts for one in part]
    return [found[place] for place in order.tolist()]


def of_text(codes: RowCodes, text: int) -> RowCodes:
    """Selects the rows of one text."""
    rows = slice(codes.offsets[text], codes.offsets[text + 1])
    count = int(codes.offsets[text + 1] - codes.offsets[text])
    return RowCodes(codes.ids[rows], codes.values[rows], np.array([0, count], np.int64))
