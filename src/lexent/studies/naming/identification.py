"""Passage identification: from the names of its concepts alone, which of ten passages is meant?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lexent.lexicon.activations import Activations
from lexent.lexicon.evidence import MAX_EXAMPLE_WORDS
from lexent.studies.naming.passages import SHOWN_CONCEPTS, Weigher, named
from lexent.studies.naming.questions import Option, Pair, Question

DISTRACTORS = 9
Nearness = Literal["random", "near"]
"""Where the other passages come from: anywhere, or from those that share most concepts with the one that is meant."""


def identifications(
    activations: Activations,
    texts: Sequence[str],
    held_out: NDArray[np.bool_],
    controls: Mapping[int, str],
    *,
    weigher: Weigher,
    n: int = 100,
    shown: int = SHOWN_CONCEPTS,
    distractors: Nearness = "random",
    seed: int = 0,
) -> list[Pair]:
    """Questions about held-out passages."""
    draw = np.random.default_rng([seed, 3])
    pool = np.flatnonzero(held_out)
    targets = draw.permutation(pool)[:n]
    concepts = activations.concepts_of([int(text) for text in targets])
    pairs = []
    for target in targets.tolist():
        weighed = weigher.strongest(*concepts[target], shown=shown)
        if not weighed or len(pool) <= DISTRACTORS:
            continue
        others = pool[pool != target]
        if distractors == "near":
            shared = _shared(activations, weighed)[others]
            others = others[np.lexsort((others, -shared))][:DISTRACTORS]
        chosen = draw.permutation(others)[:DISTRACTORS].tolist()
        place = int(draw.integers(DISTRACTORS + 1))
        chosen.insert(place, target)
        options = tuple(Option(" ".join(texts[at].split()[:MAX_EXAMPLE_WORDS])) for at in chosen)
        question, control = (
            Question("identification", options, (place,), distractors, str(target), concepts=named(weighed, names))
            for names in (weigher.lexicon, controls)
        )
        pairs.append(Pair(question, control))
    return pairs


def _shared(activations: Activations, weighed: Sequence[tuple[int, float]]) -> NDArray[np.float64]:
    """float64[n_texts]: how much of these concepts each text has."""
    found = np.zeros(activations.n_texts)
    for concept, weight in weighed:
        own = activations.of(concept)
        found[activations.texts[own]] += weight * np.minimum(activations.peaks[own], 1.0)
    return found
