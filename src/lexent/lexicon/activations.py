"""Which concepts fire in which texts: one pass over some texts, all concepts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexent.types import Kind, RowCodes, States

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon.lexicon import Lexicon


@dataclass(frozen=True, slots=True)
class Activations:
    """What fires where: concept i owns the entries offsets[i] to offsets[i + 1], its texts ascending."""

    texts: NDArray[np.int32]  # [n_entries], place of the text
    peaks: NDArray[np.float32]  # [n_entries], the strongest activation in the text
    totals: NDArray[np.float32]  # [n_entries], the sum over its tokens; the same where a text is one state
    places: NDArray[np.int32]  # [n_entries], the token that fired strongest; 0 where a text is one state
    offsets: NDArray[np.int64]  # [n_concepts + 1]
    n_texts: int

    @property
    def counts(self) -> NDArray[np.int64]:
        """int64[n_concepts]: in how many texts each concept is active."""
        return np.diff(self.offsets)

    def of(self, concept: int) -> slice:
        """The entries of a concept."""
        return slice(int(self.offsets[concept]), int(self.offsets[concept + 1]))

    def concepts_of(self, texts: Sequence[int]) -> dict[int, tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """The concepts of some texts, ascending, with their totals."""
        wanted = np.flatnonzero(np.isin(self.texts, np.asarray(texts, np.int64)))
        concept = np.searchsorted(self.offsets, wanted, side="right") - 1
        found = {}
        for text in dict.fromkeys(texts):
            own = self.texts[wanted] == text
            found[text] = (concept[own], self.totals[wanted[own]])
        return found


def observe(
    texts: Sequence[str],
    *,
    encoder: Encoder,
    lexicon: Lexicon,
    k: int | None = None,
    kind: Kind = "document",
    states: States | None = None,
    progress: Callable[[int], None] | None = None,
) -> Activations:
    """Code the texts, with as many concepts a state as the lexicon was trained for, or k of them.

    states: those of all the texts, where they are known already. progress is told how many texts were done since its
    last call.
    """
    lexicon.check(encoder)
    parts = []
    if states is None:
        batches = encoder.batches(texts, kind=kind, level=lexicon.info.level)
    else:
        batches = iter([(np.arange(len(texts)), states)])
    for rows, batch in batches:
        parts.append(_reduced(lexicon.sae.encode(batch, k=k), rows, n_texts=len(texts)))
        if progress is not None:
            progress(len(rows))
    keys, peaks, totals, places = (
        np.concatenate([np.empty(0, kind), *(part[column] for part in parts)])
        for column, kind in enumerate((np.int64, np.float32, np.float32, np.int64))
    )
    order = np.argsort(keys)
    concept, text = np.divmod(keys[order], max(1, len(texts)))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(concept, minlength=lexicon.size))]).astype(np.int64)
    text, places = text.astype(np.int32), places[order].astype(np.int32)
    return Activations(text, peaks[order], totals[order], places, offsets, len(texts))


def _reduced(
    codes: RowCodes, rows: NDArray[np.int64], *, n_texts: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    """One entry for each concept of each text of a batch: key, peak, sum, and where the peak is."""
    lengths = np.diff(codes.offsets)
    active = np.flatnonzero(codes.values.ravel() > 0)
    row = active // codes.ids.shape[1]
    value = codes.values.ravel()[active]
    text = np.repeat(rows, lengths)[row]
    place = (np.arange(len(codes.ids)) - np.repeat(codes.offsets[:-1], lengths))[row]
    keys = codes.ids.ravel()[active].astype(np.int64) * n_texts + text
    order = np.lexsort((place, -value, keys))
    keys, value, place = keys[order], value[order], place[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    totals = np.add.reduceat(value, first) if len(first) else value
    return keys[first], value[first], totals.astype(np.float32), place[first]
