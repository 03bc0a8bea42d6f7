"""Pairs to train retrieval on: from the train split of a collection, or from texts that have titles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from lexent.coders.pairs import Pairs
from lexent.corpus.corpus import read
from lexent.errors import InputError, NotFoundError

_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+")
FEWEST_SENTENCES = 3
"""A text with fewer gives none away: what is left would be too little to be found."""


def collection_pairs(source: str | Path, *, split: str = "train") -> Pairs:
    """A pair for each judgement above 0 of a collection's split; all its documents may serve as negatives.

    A split for tests is refused. So is a query, silently, whose words are those of a query of the test split: some
    collections ask the same question in both.
    """
    from lexent.evaluation.collections import load

    if "test" in split.lower() or (_is_id(source) and "test" in str(source).split("/")):
        raise InputError(
            f'the split "{split}" of {source} is for measuring: a lexicon trained on it would know the answers that it '
            f"is measured by; give a split to learn from, such as train"
        )
    found = load(source, split=split)
    known: set[str] = set()
    with suppress(NotFoundError):  # where there is no split for tests, all queries may be learned from
        known = {_plain(text) for text in load(source, split="test").queries.values()}
    contents = {document.id: document.content for document in found.documents if document.content.strip()}
    pairs = [
        (query, contents[document])
        for id, query in found.queries.items()
        if _plain(query) not in known
        for document, grade in found.qrels[id].items()
        if grade > 0 and document in contents
    ]
    return Pairs.of(pairs, documents=list(contents.values()))


def title_pairs(source: str | Path | Sequence[str | Path], *, sentences: int = 0, seed: int = 0) -> Pairs:
    """A pair for each text with a title: the title asks, the text answers. Texts without one make no pair.

    sentences: up to this many sentences of each text ask too; the text without that sentence answers.
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
    parts = _BETWEEN_SENTENCES.split(text.strip())
    able = [place for place, part in enumerate(parts) if len(part) > 20]  # shorter: initials, numbers
    if not each or len(able) < FEWEST_SENTENCES:
        return []
    places = sorted(draw.permutation(able)[:each].tolist())
    return [(parts[place], " ".join([*parts[:place], *parts[place + 1 :]])) for place in places]


def _is_id(source: str | Path) -> bool:
    """Whether it is the name of a collection of ir_datasets, which may end with its split."""
    return str(source).startswith("irds:") or not Path(source).is_dir()


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
