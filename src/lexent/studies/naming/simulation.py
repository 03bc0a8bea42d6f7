"""Ranking simulation: from a query and the named concepts of two passages, which does the dense retriever rank higher?

Three settings. R is a passage that is relevant to the query, NR one that is not; @P is one among the retrieved top, @N
one that is not. R@P-R@P: two relevant ones that were both found. R@P-NR@P: a relevant one and another, both found.
R@N-NR@P: a relevant one that was missed and another that was found in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from lexent.errors import InputError
from lexent.evaluation.baselines import pooled
from lexent.evaluation.naming.passages import SHOWN, Weigher, named
from lexent.evaluation.naming.questions import SETTINGS, Option, Pair, Question, Setting
from lexent.lexicon.activations import observe

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.evaluation.collections import Collection
    from lexent.evaluation.progress import Progress

TOP = 10
"""Documents that count as retrieved."""


def simulations(
    collection: Collection,
    controls: Mapping[int, str],
    *,
    weigher: Weigher,
    encoder: Encoder,
    n: int = 100,
    top: int = TOP,
    shown: int = SHOWN,
    k: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    coded: Callable[[int], None] | None = None,
) -> list[Pair]:
    """Up to n questions a setting, one a query; the query's words and the passages' concepts are shown, no passage."""
    if top < 1:
        raise InputError(f"top is {top}; allowed: 1 or more")
    draw = np.random.default_rng([seed, 4])
    chosen = _pairs(collection, encoder, top=top, n=n, draw=draw, progress=progress)
    texts = collection.texts
    wanted = sorted({place for _, _, *both in chosen for place in both})
    passages = [texts[place] for place in wanted]
    seen = observe(passages, encoder=encoder, lexicon=weigher.lexicon, k=k, progress=coded)
    concepts = dict(zip(wanted, seen.concepts_of(range(len(wanted))).values(), strict=True))
    pairs = []
    for setting, query, higher, lower in chosen:
        place = int(draw.integers(2))
        ordered = (higher, lower) if place == 0 else (lower, higher)
        weighed = [weigher.strongest(*concepts[at], shown=shown) for at in ordered]
        question, control = (
            Question(
                "simulation",
                tuple(Option(concepts=named(one, names)) for one in weighed),
                (place,),
                setting,
                query,
                collection.queries[query],
            )
            for names in (weigher.lexicon, controls)
        )
        pairs.append(Pair(question, control))
    return pairs


def _pairs(
    collection: Collection,
    encoder: Encoder,
    *,
    top: int,
    n: int,
    draw: np.random.Generator,
    progress: Progress | None,
) -> list[tuple[Setting, str, int, int]]:
    """Setting, query, the document that ranks higher and the one that ranks lower."""
    documents = pooled(encoder, collection.texts, kind="document", progress=progress)
    queries = pooled(encoder, list(collection.queries.values()), kind="query", progress=progress)
    places = {document.id: place for place, document in enumerate(collection.documents)}
    found: dict[Setting, list[tuple[Setting, str, int, int]]] = {setting: [] for setting in SETTINGS}
    names = list(collection.queries)
    for row in draw.permutation(len(names)).tolist():
        query = names[row]
        judged = collection.qrels.get(query, {})
        relevant = {places[id] for id, grade in judged.items() if grade > 0 and id in places}
        scores = documents @ queries[row]
        order = np.lexsort((np.arange(len(scores)), -scores))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        inside = [int(at) for at in order[:top]]
        good, bad = [at for at in inside if at in relevant], [at for at in inside if at not in relevant]
        missed = sorted(at for at in relevant if rank[at] >= top)
        for setting, first, second in zip(SETTINGS, (good, good, missed), (good, bad, bad), strict=True):
            both = _two(first, second, draw)
            if both and len(found[setting]) < n:
                higher, lower = sorted(both, key=lambda at: rank[at])
                found[setting].append((setting, query, higher, lower))
    return [pair for setting in SETTINGS for pair in found[setting]]


def _two(first: list[int], second: list[int], draw: np.random.Generator) -> tuple[int, int] | None:
    """One of each, and never the same twice."""
    if not first:
        return None
    one = first[int(draw.integers(len(first)))]
    others = [at for at in second if at != one]
    return (one, others[int(draw.integers(len(others)))]) if others else None
