"""Dense search over an index that keeps the encoder's own vectors: exact cosine, for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lexent import arguments
from lexent.encoders.encoder import encode
from lexent.errors import NotFoundError
from lexent.indexing.forward.dense import DenseStore
from lexent.search.results import DenseHit

if TYPE_CHECKING:
    from lexent.search.view import View


def search(view: View, query: str, k: int) -> list[DenseHit]:
    """The k documents of highest cosine; equal ones in document order."""
    arguments.whole("k", k, least=1)
    if "dense" not in view.manifest.extras:
        raise NotFoundError(
            f'"{view.path}" keeps no vectors; build it with them: lexent index CORPUS --out {view.path} --with dense '
            "--overwrite"
        )
    vector = encode(view.encoder, [query], kind="query", level="pooled").numpy()[0]
    vector = vector / max(float(np.linalg.norm(vector)), 1e-12)
    found, places = [np.empty(0, np.float32)], [np.empty(0, np.int64)]
    masks = view.searcher.masks(None)
    for stores, mask, base in zip(view.documents.forward, masks, view.searcher.bases.tolist(), strict=False):
        store = stores[DenseStore.name]
        assert isinstance(store, DenseStore)
        live = np.flatnonzero(mask) if len(mask) else np.arange(len(store))
        found.append(store.cosines(vector)[live])
        places.append(live + base)
    scores, positions = np.concatenate(found), np.concatenate(places)
    best = np.lexsort((positions, -scores))[:k]
    documents = view.documents.at(positions[best].tolist())
    return [
        DenseHit(rank, document.id, score, document.title, document.text, document.metadata)
        for rank, (document, score) in enumerate(zip(documents, scores[best].tolist(), strict=True), start=1)
    ]
