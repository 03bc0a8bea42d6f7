"""Documents as latents and 8-bit codes, before they are inverted and packed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings import quantisation
from lexent.recipes import Recipe
from lexent.types import SparseVectors


@dataclass(frozen=True, slots=True)
class Codes:
    """Documents as latents and 8-bit codes, before they are inverted and packed."""

    ids: NDArray[np.int32]  # [n_entries], ascending within a document
    codes: NDArray[np.uint8]  # [n_entries], none of them 0
    offsets: NDArray[np.int64]  # [n_documents + 1]
    doublings: NDArray[np.uint8] | None = None  # [n_documents], see `quantisation`; None where no document has any

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def of(vectors: SparseVectors, recipe: Recipe) -> Codes:
        """Quantises pooled vectors, before the transform, and keeps the recipe's cap of each, the highest codes.

        Of equal codes the lower ids are kept. A binary recipe keeps the highest values; all have the code of 1.
        """
        if recipe.binary:
            from lexent.weighting import transform

            kept = transform(vectors, power=1.0, cap=recipe.document_cap)
            return Codes(kept.ids, np.full(len(kept.ids), quantisation.CODE_OF_ONE, np.uint8), kept.offsets)
        if recipe.match != "documents":
            return Codes(vectors.ids, quantisation.encode_linear(vectors.values), vectors.offsets)
        values, doublings = vectors.values, quantisation.doublings(vectors.values, vectors.offsets)
        if doublings is not None:
            values = np.ldexp(values, -np.repeat(doublings.astype(np.int32), np.diff(vectors.offsets)))
        return Codes(vectors.ids, quantisation.encode(values), vectors.offsets, doublings).capped(recipe.document_cap)

    def capped(self, cap: int | None, *, concepts: int | None = None) -> Codes:
        """Keeps at most `cap` latents of each document, the highest codes; None keeps all.

        concepts: ids from here on are words, which all stay.
        """
        counts = np.diff(self.offsets)
        if cap is None or not len(counts) or int(counts.max()) <= cap:
            return self
        if concepts is not None:
            own, words = self.divided(concepts)
            return own.capped(cap).joined(words)
        from lexent.weighting.pooling import strongest

        kept = strongest(self.codes.astype(np.float32), self.offsets, cap)
        offsets = np.concatenate([[0], np.cumsum(np.minimum(counts, cap))]).astype(np.int64)
        return Codes(self.ids[kept], self.codes[kept], offsets, self.doublings)

    @staticmethod
    def concatenate(parts: list[Codes]) -> Codes:
        """Joins the documents of some parts, in order."""
        if len(parts) == 1:
            return parts[0]
        counts, doublings = [np.diff(part.offsets) for part in parts], None
        if any(part.doublings is not None for part in parts):
            doublings = np.concatenate(
                [np.zeros(len(part), np.uint8) if part.doublings is None else part.doublings for part in parts]
            )
        return Codes(
            ids=np.concatenate([np.empty(0, np.int32), *(part.ids for part in parts)]),
            codes=np.concatenate([np.empty(0, np.uint8), *(part.codes for part in parts)]),
            offsets=np.concatenate([np.zeros(1, np.int64), *counts]).cumsum(),
            doublings=doublings,
        )

    def joined(self, words: Codes) -> Codes:
        """The documents with their words, whose ids are above those of all concepts."""
        own, more = np.diff(self.offsets), np.diff(words.offsets)
        ids = np.empty(len(self.ids) + len(words.ids), np.int32)
        codes = np.empty(len(ids), np.uint8)
        for part, places in (
            (self, np.arange(len(self.ids)) + np.repeat(words.offsets[:-1], own)),
            (words, np.arange(len(words.ids)) + np.repeat(self.offsets[1:], more)),
        ):
            ids[places], codes[places] = part.ids, part.codes
        return Codes(ids, codes, self.offsets + words.offsets, self.doublings)

    def divided(self, concepts: int) -> tuple[Codes, Codes]:
        """The concepts of the documents, which have the ids below `concepts`, and their words."""
        is_word = self.ids >= concepts
        before = np.concatenate([[0], np.cumsum(is_word)])[self.offsets].astype(np.int64)
        own = Codes(self.ids[~is_word], self.codes[~is_word], self.offsets - before, self.doublings)
        return own, Codes(self.ids[is_word], self.codes[is_word], before)

    def renumbered(self, numbers: NDArray[np.int32]) -> Codes:
        """The same documents with other ids, in the same order."""
        return replace(self, ids=numbers[self.ids])

    def with_words(self, counts: SparseVectors) -> Codes:
        """The documents with their words: a word that a document has n times is stored as a concept of the value n.

        counts: how often each document has each word; their ids are above those of all concepts.
        """
        values = np.minimum(counts.values, np.float32(quantisation.HIGHEST_VALUE))
        if self.doublings is not None:
            values = np.ldexp(values, -np.repeat(self.doublings.astype(np.int32), np.diff(counts.offsets)))
        return self.joined(Codes(counts.ids, quantisation.encode(values), counts.offsets))

    def slice(self, start: int, stop: int) -> Codes:
        """The documents from start to below stop."""
        first, last = self.offsets[start], self.offsets[stop]
        doublings = None if self.doublings is None else self.doublings[start:stop]
        return Codes(self.ids[first:last], self.codes[first:last], self.offsets[start : stop + 1] - first, doublings)
