"""The questions of each task, each with a control: wrong names or, in the blind intrusion test, other concepts' texts.

Simulation has CL-SR's three settings. R is a retrieved passage and NR one that is not; P is a positive (relevant) one,
N a negative. R@P-R@P: two retrieved positives. R@P-NR@P: a retrieved positive and one that is not retrieved. R@N-NR@P:
a retrieved negative and a positive that is not retrieved. In a collection of no more documents than the depth all are
retrieved, and only the first setting has questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lexent.encoders import Encoder
from lexent.errors import InputError
from lexent.evaluation.baselines import pooled_sides
from lexent.evaluation.collections import Collection
from lexent.lexicon.activations import Activations, observe
from lexent.lexicon.evidence import MAX_EXAMPLE_WORDS, Evidence, Example
from lexent.lexicon.lexicon import Lexicon
from lexent.studies.naming.questions import SETTINGS, Named, Option, Pair, Question, Setting
from lexent.weighting import idf

CONCEPTS_PER_BLOCK = 50
"""Concepts of neighbouring frequency that exchange their names."""
TEXTS_WITH_CONCEPT = 9
"""Texts that have the concept; one more lacks it."""
DISTRACTORS = 9
SHOWN_CONCEPTS = 10
"""Concepts of a passage that are shown."""
RETRIEVED_DEPTH = 1000
"""Depth of the ranking: documents that count as retrieved."""
Nearness = Literal["random", "near"]
"""Where the other passages come from: anywhere, or from those that share most concepts with the one that is meant."""


def exchanged(names: Sequence[str], counts: NDArray[np.int64], *, seed: int = 0) -> dict[int, str]:
    """A wrong name for each concept that is active at all: that of another, about as frequent one."""
    live = np.flatnonzero(counts > 0)
    order = live[np.lexsort((live, -counts[live]))]
    draw = np.random.default_rng(seed)
    found: dict[int, str] = {}
    for block in np.array_split(order, max(1, len(order) // CONCEPTS_PER_BLOCK)):
        ring = draw.permutation(block)
        for place, concept in enumerate(ring):
            others = (names[ring[(place + step) % len(ring)]] for step in range(1, len(ring)))
            found[int(concept)] = next((name for name in others if name != names[concept]), "")
    return found


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


def about_concepts(
    evidence: Sequence[Evidence], lexicon: Lexicon, controls: Mapping[int, str], *, seed: int = 0
) -> list[Pair]:
    """Of each concept, from held-out texts: intrusion without the name and with it, and detection.

    The control of intrusion without the name has nine texts that belong together by chance only: each is another
    concept's.
    """
    pairs = []
    for one in evidence:
        active, silent = one.held_out.active, one.held_out.silent
        draw = np.random.default_rng([seed, one.concept, 1])
        nine = _some(active, TEXTS_WITH_CONCEPT, draw)
        intruder = silent[int(draw.integers(len(silent)))]
        place = int(draw.integers(TEXTS_WITH_CONCEPT + 1))
        others = [evidence[at] for at in draw.permutation(len(evidence)) if evidence[at].concept != one.concept]
        nine_others = (others * TEXTS_WITH_CONCEPT)[:TEXTS_WITH_CONCEPT]
        mixed = [_some(other.held_out.active, 1, draw)[0] for other in nine_others]
        category, subject = lexicon.concept(one.concept).category, str(one.concept)
        blind = Question("intrusion", _placed(nine, intruder, place), (place,), category, subject)
        pairs.append(Pair(blind, replace(blind, options=_placed(mixed or nine, intruder, place))))
        examples = [*active, *silent]
        order = np.random.default_rng([seed, one.concept, 2]).permutation(len(examples))
        options = tuple(Option(examples[at].text) for at in order)
        right = tuple(int(at) for at in np.flatnonzero(order < len(active)))
        name, wrong = (Named(name) for name in (lexicon.label(one.concept), controls[one.concept]))
        for question in (
            replace(blind, task="named-intrusion", concepts=(name,)),
            Question("detection", options, right, category, subject, concepts=(name,)),
        ):
            pairs.append(Pair(question, replace(question, concepts=(wrong,))))
    return pairs


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
    """From the names of its concepts alone, which of ten held-out passages is meant?"""
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
            shared = np.zeros(activations.n_texts)  # how much of these concepts each text has
            for concept, weight in weighed:
                own = activations.of(concept)
                shared[activations.texts[own]] += weight * np.minimum(activations.peaks[own], 1.0)
            others = others[np.lexsort((others, -shared[others]))][:DISTRACTORS]
        chosen = draw.permutation(others)[:DISTRACTORS].tolist()
        place = int(draw.integers(DISTRACTORS + 1))
        chosen.insert(place, target)
        options = tuple(Option(" ".join(texts[at].split()[:MAX_EXAMPLE_WORDS])) for at in chosen)
        names = _named(weighed, weigher.lexicon)
        question = Question("identification", options, (place,), distractors, str(target), concepts=names)
        pairs.append(Pair(question, replace(question, concepts=_named(weighed, controls))))
    return pairs


def simulations(
    collection: Collection,
    controls: Mapping[int, str],
    *,
    weigher: Weigher,
    encoder: Encoder,
    n: int = 100,
    top: int = RETRIEVED_DEPTH,
    shown: int = SHOWN_CONCEPTS,
    k: int | None = None,
    seed: int = 0,
) -> list[Pair]:
    """From the named concepts of a query and two passages: which does the retriever rank higher?

    Up to n questions a setting, one a query; the query's words and concepts and the passages' concepts are shown.
    """
    if top < 1:
        raise InputError(f"top is {top}; allowed: 1 or more")
    draw = np.random.default_rng([seed, 4])
    chosen = _ranked_pairs(collection, encoder, top=top, n=n, draw=draw)
    lexicon, texts = weigher.lexicon, collection.texts
    wanted = sorted({place for _, _, *both in chosen for place in both})
    seen = observe([texts[place] for place in wanted], encoder=encoder, lexicon=lexicon, k=k)
    concepts = dict(zip(wanted, seen.concepts_of(range(len(wanted))).values(), strict=True))
    ids = list(dict.fromkeys(query for _, query, *_ in chosen))
    seen = observe([collection.queries[id] for id in ids], encoder=encoder, lexicon=lexicon, k=k, kind="query")
    queries = dict(zip(ids, seen.concepts_of(range(len(ids))).values(), strict=True))
    pairs = []
    for setting, query, higher, lower in chosen:
        place = int(draw.integers(2))
        ordered = (higher, lower) if place == 0 else (lower, higher)
        weighed = [weigher.strongest(*concepts[at], shown=shown) for at in ordered]
        own, text = weigher.strongest(*queries[query], shown=shown), collection.queries[query]
        question, control = (
            Question("simulation", options, (place,), setting, query, text, _named(own, names))
            for names in (lexicon, controls)
            for options in [tuple(Option(concepts=_named(one, names)) for one in weighed)]
        )
        pairs.append(Pair(question, control))
    return pairs


def _ranked_pairs(
    collection: Collection, encoder: Encoder, *, top: int, n: int, draw: np.random.Generator
) -> list[tuple[Setting, str, int, int]]:
    """Setting, query, the document that ranks higher and the one that ranks lower."""
    documents, queries = pooled_sides(encoder, collection)
    relevant = collection.relevant
    found: dict[Setting, list[tuple[Setting, str, int, int]]] = {setting: [] for setting in SETTINGS}
    names = list(collection.queries)
    for row in draw.permutation(len(names)).tolist():
        scores = documents @ queries[row]
        order = np.lexsort((np.arange(len(scores)), -scores))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        retrieved = [int(at) for at in order[:top]]
        positives = [at for at in retrieved if at in relevant[row]]
        negatives = [at for at in retrieved if at not in relevant[row]]
        missed = sorted(at for at in relevant[row] if rank[at] >= top)
        sides = ((positives, positives), (positives, missed), (negatives, missed))
        for setting, (first, second) in zip(SETTINGS, sides, strict=True):
            both = _two(first, second, draw)
            if both and len(found[setting]) < n:
                higher, lower = sorted(both, key=lambda at: rank[at])
                found[setting].append((setting, names[row], higher, lower))
    return [pair for setting in SETTINGS for pair in found[setting]]


def _two(first: list[int], second: list[int], draw: np.random.Generator) -> tuple[int, int] | None:
    """One of each, and never the same twice."""
    if not first:
        return None
    one = first[int(draw.integers(len(first)))]
    others = [at for at in second if at != one]
    return (one, others[int(draw.integers(len(others)))]) if others else None


def _named(weighed: Sequence[tuple[int, float]], names: Mapping[int, str] | Lexicon) -> tuple[Named, ...]:
    """The concepts by name; those without one are left out."""
    label = names.label if isinstance(names, Lexicon) else lambda concept: names.get(concept, "")
    return tuple(Named(label(concept), weight) for concept, weight in weighed if label(concept))


def _some(examples: Sequence[Example], n: int, draw: np.random.Generator) -> list[Example]:
    """n examples, evenly from the strongest to the weakest, in an order that tells nothing."""
    edges = np.linspace(0, len(examples), min(n, len(examples)) + 1).astype(int)
    return [examples[place] for place in draw.permutation(draw.integers(edges[:-1], edges[1:]))]


def _placed(group: Sequence[Example], intruder: Example, place: int) -> tuple[Option, ...]:
    texts = [example.text for example in group]
    return tuple(Option(text) for text in (*texts[:place], intruder.text, *texts[place:]))
