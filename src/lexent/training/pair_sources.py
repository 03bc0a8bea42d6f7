"""Pairs to train retrieval on: from the train split of a collection, or from texts that have titles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lexent.corpus.sources import read
from lexent.errors import InputError
from lexent.evaluation.collections import Collection
from lexent.evaluation.training_split import training_split
from lexent.training.pairs import Pairs
from lexent.training.stream import BETWEEN_SENTENCES

FEWEST_SENTENCES = 3
"""A text with fewer gives none away: what is left would be too little to be found."""


def collection_pairs(source: str | Path, *, split: str | None = None) -> Pairs:
    """The pairs of a collection's train split, or of the split that is named. A test split is refused.

    Queries with the same words as one of a test split are left out: some collections have a question in both.
    """
    return judged_pairs(training_split(source, split))


def judged_pairs(collection: Collection) -> Pairs:
    """A pair for each judgement above 0; all documents may serve as negatives."""
    contents = {document.id: document.content for document in collection.documents if document.content.strip()}
    pairs = [
        (query, contents[document])
        for id, query in collection.queries.items()
        for document, grade in collection.qrels[id].items()
        if grade > 0 and document in contents
    ]
    return Pairs.of(pairs, documents=list(contents.values()))


def title_pairs(source: str | Path | Sequence[str | Path], *, sentences: int = 0, seed: int = 0) -> Pairs:
    """A pair for each text with a title: the title is the query, the text the document. Texts without one make no pair.

    sentences: up to this many sentences of each text are queries too, for the text without that sentence.
    """
    paths = [source] if isinstance(source, str | Path) else list(source)
    draw = np.random.default_rng(seed)
    pairs: list[tuple[str, str]] = []
    for path in paths:
        before = len(pairs)
        for document in read(Path(path)):
            if document.title.strip() and document.text.strip():
                pairs.append((document.title.strip(), document.text.strip()))
            pairs += _cloze(document.text, sentences, draw)
        if len(pairs) == before:
            raise InputError(f'{path} has no text with a title; a line reads {{"title": "...", "text": "..."}}')
    return Pairs.of(pairs)


def _cloze(text: str, each: int, draw: np.random.Generator) -> list[tuple[str, str]]:
    """Sentences of a text, drawn at random, each with the rest of the text."""
    parts = BETWEEN_SENTENCES.split(text.strip())
    able = [place for place, part in enumerate(parts) if len(part) > 20]  # shorter: initials, numbers
    if not each or len(able) < FEWEST_SENTENCES:
        return []
    places = sorted(draw.permutation(able)[:each].tolist())
    return [(parts[place], " ".join([*parts[:place], *parts[place + 1 :]])) for place in places]
