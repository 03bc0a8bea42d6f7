"""Ranking simulation: from the named concepts of a query and two passages, which does the retriever rank higher?

CL-SR's three settings. R is a retrieved passage and NR one that is not; P is a positive (relevant) one, N a negative.
R@P-R@P: two retrieved positives. R@P-NR@P: a retrieved positive and one that is not retrieved. R@N-NR@P: a retrieved
negative and a positive that is not retrieved. In a collection of no more documents than the depth all are retrieved,
and only the first setting has questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from lexent.errors import InputError
from lexent.evaluation.baselines import pooled
from lexent.lexicon.activations import observe
from lexent.studies.naming.passages import SHOWN_CONCEPTS, Weigher, named
from lexent.studies.naming.questions import SETTINGS, Option, Pair, Question, Setting

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.evaluation.collections import Collection
    from lexent.evaluation.progress import Progress

RETRIEVED_DEPTH = 1000
"""Depth of the ranking: documents that count as retrieved."""


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
    progress: Progress | None = None,
    coded: Callable[[int], None] | None = None,
) -> list[Pair]:
    """Up to n questions a setting, one a query; the query's words and concepts and the passages' concepts are shown."""
    if top < 1:
        raise InputError(f"top is {top}; allowed: 1 or more")
    draw = np.random.default_rng([seed, 4])
    chosen = _pairs(collection, encoder, top=top, n=n, draw=draw, progress=progress)
    texts = collection.texts
    wanted = sorted({place for _, _, *both in chosen for place in both})
    passages = [texts[place] for place in wanted]
    seen = observe(passages, encoder=encoder, lexicon=weigher.lexicon, k=k, progress=coded)
    concepts = dict(zip(wanted, seen.concepts_of(range(len(wanted))).values(), strict=True))
    asked = list(dict.fromkeys(query for _, query, *_ in chosen))
    said = observe(
        [collection.queries[query] for query in asked], encoder=encoder, lexicon=weigher.lexicon, k=k, kind="query"
    )
    queries = dict(zip(asked, said.concepts_of(range(len(asked))).values(), strict=True))
    pairs = []
    for setting, query, higher, lower in chosen:
        place = int(draw.integers(2))
        ordered = (higher, lower) if place == 0 else (lower, higher)
        weighed = [weigher.strongest(*concepts[at], shown=shown) for at in ordered]
        own = weigher.strongest(*queries[query], shown=shown)
        question, control = (
            Question(
                "simulation",
                tuple(Option(concepts=named(one, names)) for one in weighed),
                (place,),
                setting,
                query,
                collection.queries[query],
                named(own, names),
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
        retrieved = [int(at) for at in order[:top]]
        positives = [at for at in retrieved if at in relevant]
        negatives = [at for at in retrieved if at not in relevant]
        missed = sorted(at for at in relevant if rank[at] >= top)
        sides = ((positives, positives), (positives, missed), (negatives, missed))
        for setting, (first, second) in zip(SETTINGS, sides, strict=True):
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
