"""A part of a collection that is small enough to study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lexent.evaluation.collections import Collection


def sampled(collection: Collection, *, documents: int, seed: int, queries: int = 1000) -> Collection:
    """At most so many of its queries and documents: those judged relevant first, then any; itself where it is small."""
    if len(collection.documents) <= documents:
        return collection
    random = np.random.default_rng(seed)
    names = list(collection.queries)
    kept = names if len(names) <= queries else [names[at] for at in np.sort(random.permutation(len(names))[:queries])]
    qrels = {query: collection.qrels[query] for query in kept}
    relevant = {id for judged in qrels.values() for id, grade in judged.items() if grade > 0}
    first = [at for at, document in enumerate(collection.documents) if document.id in relevant]
    others = random.permutation(np.setdiff1d(np.arange(len(collection.documents)), first))
    chosen = np.sort(np.concatenate([first, others[: max(documents - len(first), 0)]]).astype(np.int64))
    return replace(
        collection,
        documents=[collection.documents[at] for at in chosen],
        queries={query: collection.queries[query] for query in kept},
        qrels=qrels,
    )
