"""The intrusion test, and detection: questions about single concepts, from held-out examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lexent.lexicon.evidence import Evidence, Example
from lexent.lexicon.lexicon import Lexicon
from lexent.studies.naming.questions import Named, Option, Pair, Question

TEXTS_WITH_CONCEPT = 9
"""Texts that have the concept; one more lacks it."""


def intrusions(
    evidence: Sequence[Evidence], lexicon: Lexicon, controls: Mapping[int, str], *, seed: int = 0
) -> list[Pair]:
    """Nine held-out texts of a concept and one without it: without the name, and with it.

    The control without the name has nine texts that belong together by chance only: each is another concept's.
    """
    pairs = []
    for one in evidence:
        draw = np.random.default_rng([seed, one.concept, 1])
        nine = _some(one.held_out.active, TEXTS_WITH_CONCEPT, draw)
        intruder = one.held_out.silent[int(draw.integers(len(one.held_out.silent)))]
        place = int(draw.integers(TEXTS_WITH_CONCEPT + 1))
        others = [evidence[at] for at in draw.permutation(len(evidence)) if evidence[at].concept != one.concept]
        mixed = [
            _some(other.held_out.active, 1, draw)[0] for other in (others * TEXTS_WITH_CONCEPT)[:TEXTS_WITH_CONCEPT]
        ]
        category, subject = lexicon.concept(one.concept).category, str(one.concept)
        blind = Question("intrusion", _placed(nine, intruder, place), (place,), category, subject)
        chance = Question("intrusion", _placed(mixed or nine, intruder, place), (place,), category, subject)
        pairs.append(Pair(blind, chance))
        named = [
            Question("named-intrusion", blind.options, (place,), category, subject, concepts=(Named(name),))
            for name in (lexicon.label(one.concept), controls[one.concept])
        ]
        pairs.append(Pair(*named))
    return pairs


def detections(
    evidence: Sequence[Evidence], lexicon: Lexicon, controls: Mapping[int, str], *, seed: int = 0
) -> list[Pair]:
    """Held-out texts with and without a concept, mixed, to be told apart by its name."""
    pairs = []
    for one in evidence:
        examples = [*one.held_out.active, *one.held_out.silent]
        order = np.random.default_rng([seed, one.concept, 2]).permutation(len(examples))
        options = tuple(Option(examples[place].text) for place in order)
        right = tuple(int(at) for at in np.flatnonzero(order < len(one.held_out.active)))
        category, subject = lexicon.concept(one.concept).category, str(one.concept)
        named = [
            Question("detection", options, right, category, subject, concepts=(Named(name),))
            for name in (lexicon.label(one.concept), controls[one.concept])
        ]
        pairs.append(Pair(*named))
    return pairs


def _some(examples: Sequence[Example], n: int, draw: np.random.Generator) -> list[Example]:
    """n examples, evenly from the strongest to the weakest, in an order that tells nothing."""
    edges = np.linspace(0, len(examples), min(n, len(examples)) + 1).astype(int)
    return [examples[place] for place in draw.permutation(draw.integers(edges[:-1], edges[1:]))]


def _placed(group: Sequence[Example], intruder: Example, place: int) -> tuple[Option, ...]:
    texts = [example.text for example in group]
    return tuple(Option(text) for text in (*texts[:place], intruder.text, *texts[place:]))
