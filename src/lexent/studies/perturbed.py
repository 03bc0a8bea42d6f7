"""Texts with some of their concepts taken away, or put back: what the index, and the dense retriever, then score.

A `Side` is one text of a (query, document) pair with the concepts that may be taken from it, a column each. Masks say
which columns are there, a row a state of the text; the answer is the document's score and rank for each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from lexent.encoders.encoder import encode
from lexent.evaluation.pooling import Pooling, unit, weights
from lexent.types import Kind, RowCodes, States

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon
    from lexent.recipes import Recipe

Masks = NDArray[np.bool_]
"""bool[n_states, n_concepts]: the concepts that a text still has."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The document's score and place for each state of the changed text."""

    scores: NDArray[np.float64]  # [n_states]
    places: NDArray[np.float64]  # [n_states], one over the rank; 0 where the document is not found

    def __len__(self) -> int:
        return len(self.scores)


class Side(Protocol):
    """One text of a pair, as a retriever sees it."""

    def without(self, masks: Masks) -> Seen:
        """All else of the text stays."""
        ...

    def alone(self, masks: Masks) -> Seen:
        """Nothing else of the text is there."""
        ...


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """A query in the index: its concepts' weights, and what the rivals hold of them."""

    weights: NDArray[np.float64]  # [n_concepts]
    rivals: NDArray[np.float64]  # [n_rivals, n_concepts], stored weights; the target is among them
    target: int

    def without(self, masks: Masks) -> Seen:
        """Scores and ranks when the masked concepts are taken away."""
        return placed((masks * self.weights) @ self.rivals.T, self.target, found_above=0.0)

    def alone(self, masks: Masks) -> Seen:
        """Scores and ranks when only the masked concepts are left."""
        return self.without(masks)


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """A document in the index: what each of its concepts adds to the score, and the rivals' scores, which stay.

    Its length counts as before: only the concepts are taken away.
    """

    parts: NDArray[np.float64]  # [n_concepts]
    rivals: NDArray[np.float64]  # [n_rivals], scores; the target is among them
    target: int

    def without(self, masks: Masks) -> Seen:
        """Scores and ranks when the masked concepts are taken away."""
        scores = np.tile(self.rivals, (len(masks), 1))
        scores[:, self.target] = masks @ self.parts
        return placed(scores, self.target, found_above=0.0)

    def alone(self, masks: Masks) -> Seen:
        """Scores and ranks when only the masked concepts are left."""
        return self.without(masks)


@dataclass(frozen=True, slots=True)
class DenseText:
    """A text in dense retrieval: its vector, and what each concept adds to it through the decoder."""

    vector: NDArray[np.float32]  # [d_in], before it is brought to length 1
    ground: NDArray[np.float32]  # [d_in], what the decoder gives without any concept
    parts: NDArray[np.float32]  # [n_concepts, d_in]

    def taken(self, masks: Masks) -> NDArray[np.float32]:
        """float32[n_states, d_in]: the vector less the concepts that are not there; what no concept explains stays."""
        return unit(self.vector - (~masks).astype(np.float32) @ self.parts)

    def given(self, masks: Masks) -> NDArray[np.float32]:
        """float32[n_states, d_in]: what the concepts alone make."""
        return unit(self.ground + masks.astype(np.float32) @ self.parts)


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """A query whose vector loses concepts, for a dense retriever."""

    text: DenseText
    rivals: NDArray[np.float32]  # [n_rivals, d_in], documents of length 1; the target is among them
    target: int

    def without(self, masks: Masks) -> Seen:
        """Scores and ranks when the masked concepts are taken away."""
        return placed(self.text.taken(masks) @ self.rivals.T, self.target)

    def alone(self, masks: Masks) -> Seen:
        """Scores and ranks when only the masked concepts are left."""
        return placed(self.text.given(masks) @ self.rivals.T, self.target)


@dataclass(frozen=True, slots=True)
class DenseDocument:
    """A document whose vector loses concepts, for a dense retriever."""

    text: DenseText
    query: NDArray[np.float32]  # [d_in], of length 1
    rivals: NDArray[np.float32]  # [n_rivals], cosines; the target is among them
    target: int

    def without(self, masks: Masks) -> Seen:
        """Scores and ranks when the masked concepts are taken away."""
        return self._seen(self.text.taken(masks))

    def alone(self, masks: Masks) -> Seen:
        """Scores and ranks when only the masked concepts are left."""
        return self._seen(self.text.given(masks))

    def _seen(self, vectors: NDArray[np.float32]) -> Seen:
        scores = np.tile(self.rivals, (len(vectors), 1))
        scores[:, self.target] = vectors @ self.query
        return placed(scores, self.target)


def placed(scores: NDArray[np.floating], target: int, *, found_above: float = -np.inf) -> Seen:
    """The target's score and place in each row; of equal scores the earlier column is first, as in a search."""
    own = scores[:, [target]]
    margin = 1e-6 * np.maximum(np.abs(own), 1.0)  # equal texts differ in the last digits of a product
    above = (scores > own + margin).sum(axis=1) + (np.abs(scores[:, :target] - own) <= margin).sum(axis=1)
    places = np.where(own[:, 0] > found_above, 1.0 / (1.0 + above), 0.0)
    return Seen(own[:, 0].astype(np.float64), places)


def dense_text(
    text: str,
    concepts: NDArray[np.int32],
    *,
    kind: Kind,
    encoder: Encoder,
    lexicon: Lexicon,
    recipe: Recipe,
    pooling: Pooling | None,
    state: NDArray[np.float32],
) -> DenseText:
    """What each concept adds to a text's vector. state: the pooled one; of token recipes, states are encoded here.

    pooling: how token states become one vector; a recipe over pooled states needs none.
    """
    import torch

    if recipe.level == "pooled":
        rows, share = state[None, :], np.ones(1, np.float32)
        states = States(torch.from_numpy(rows), np.array([0, 1]))
    else:
        assert pooling is not None
        states = encode(encoder, [text], kind=kind, level="tokens")
        rows, share = states.numpy(), weights(len(states.values), pooling)
    codes = lexicon.codes(states, k=recipe.k_for(kind))
    lengths = np.linalg.norm(rows, axis=1).astype(np.float32)
    config = lexicon.sae.config
    activations = codes.values / config.activation_scale
    counts = share * lengths if config.unit_states else share  # of the decoder's unit states, or of states as they are
    if config.unit_states and config.mean_length > 0:
        activations = activations / (np.maximum(lengths, 1e-12) / config.mean_length)[:, None]
    totals = _totals(codes, activations * counts[:, None], concepts)
    return DenseText(
        vector=(share @ rows).astype(np.float32),
        ground=(counts.sum() * lexicon.sae.b_dec).astype(np.float32),
        parts=(totals[:, None] * lexicon.sae.decoder_rows[concepts]).astype(np.float32),
    )


def _totals(codes: RowCodes, values: NDArray[np.float32], concepts: NDArray[np.int32]) -> NDArray[np.float64]:
    """float64[n_concepts]: the sum of each concept's values; the concepts ascend."""
    places = np.searchsorted(concepts, codes.ids.ravel())
    known = (places < len(concepts)) & (concepts[np.minimum(places, len(concepts) - 1)] == codes.ids.ravel())
    totals = np.zeros(len(concepts))
    np.add.at(totals, places[known], values.ravel()[known])
    return totals
