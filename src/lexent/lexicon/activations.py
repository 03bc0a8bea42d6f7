"""Which concepts fire in which texts: one pass over some texts, all concepts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.encoders import Encoder
from lexent.lexicon.lexicon import Lexicon
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.types import Batches, Kind, Progress, RowCodes, States


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
    progress: Progress = None,
) -> Activations:
    """Code the texts, with as many concepts a state as the lexicon was trained for, or k of them.

    states: those of all the texts, where they are known already. progress is called with the number of texts done since
    its last call.
    """
    lexicon.check(encoder)
    known = None if states is None else iter([(np.arange(len(texts)), states)])
    batches = known or encoder.batches(texts, kind=kind, level=lexicon.info.level)
    return reduced(batches, lexicon.sae, n_texts=len(texts), n_concepts=lexicon.size, k=k, progress=progress)


def reduced(
    batches: Batches,
    sae: SparseAutoencoder,
    *,
    n_texts: int,
    n_concepts: int,
    k: int | None = None,
    progress: Progress = None,
) -> Activations:
    """One entry for each concept of each text, from the states of batches of texts."""
    columns: list[list[NDArray[Any]]] = [[np.empty(0, kind)] for kind in (np.int64, np.float32, np.float32, np.int32)]
    for rows, states in batches:
        _, text, place, latent, value = active(sae.encode(states, k=k), rows)
        keys = latent * n_texts + text
        order = np.lexsort((place, -value, keys))
        keys, value, place = keys[order], value[order], place[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        totals = np.add.reduceat(value, first) if len(first) else value
        for column, part in zip(columns, (keys[first], value[first], totals, place[first]), strict=True):
            column.append(part.astype(column[0].dtype))
        if progress is not None:
            progress(len(rows))
    keys, peaks, totals, places = map(np.concatenate, columns)
    order = np.argsort(keys)
    concept, text = np.divmod(keys[order], max(1, n_texts))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(concept, minlength=n_concepts))]).astype(np.int64)
    return Activations(text.astype(np.int32), peaks[order], totals[order], places[order], offsets, n_texts)


def active(codes: RowCodes, texts: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    """Of each activation above 0: its row, the text, the token of the text, the latent and the value."""
    lengths = np.diff(codes.offsets)
    found = np.flatnonzero(codes.values.ravel() > 0)
    row = found // codes.ids.shape[1]
    token = np.arange(len(codes.ids)) - np.repeat(codes.offsets[:-1], lengths)
    latent, value = codes.ids.ravel()[found].astype(np.int64), codes.values.ravel()[found]
    return row, np.repeat(texts, lengths)[row], token[row], latent, value
