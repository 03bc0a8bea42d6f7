"""The named concepts of a passage, strongest first: what people see of it in the two tasks of the CL-SR paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent.lexicon.activations import Activations
from lexent.lexicon.lexicon import Lexicon
from lexent.studies.naming.questions import Named
from lexent.weighting.idf import idf

SHOWN_CONCEPTS = 10
"""Concepts of a passage that are shown."""


@dataclass(frozen=True, slots=True)
class Weigher:
    """Weighs the concepts of texts: activation times idf, as the recipes for that kind of lexicon do."""

    lexicon: Lexicon
    idf: NDArray[np.float64]  # [n_concepts]

    @staticmethod
    def of(lexicon: Lexicon, activations: Activations) -> Weigher:
        """A weigher by the document frequencies of these activations."""
        return Weigher(lexicon, idf(activations.counts, activations.n_texts, "clsr"))

    def strongest(
        self, concepts: NDArray[np.int64], totals: NDArray[np.float32], *, shown: int = SHOWN_CONCEPTS
    ) -> list[tuple[int, float]]:
        """Concepts and weights, strongest first. The sum over tokens is tempered by a square root."""
        power = 0.5 if self.lexicon.info.level == "tokens" else 1.0
        weights = totals.astype(np.float64) ** power * self.idf[concepts]
        order = np.lexsort((concepts, -weights))[:shown]
        return [(int(concepts[place]), float(weights[place])) for place in order if weights[place] > 0]


def named(weighed: Sequence[tuple[int, float]], names: Mapping[int, str] | Lexicon) -> tuple[Named, ...]:
    """The concepts by name; those without one are left out."""
    label = names.label if isinstance(names, Lexicon) else lambda concept: names.get(concept, "")
    return tuple(Named(label(concept), weight) for concept, weight in weighed if label(concept))
