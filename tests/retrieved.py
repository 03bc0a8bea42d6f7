"""A small index for tests of retrievers: documents of one passage and of several, on the tiny encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import small
from lexent.engine import Index
from lexent.recipes import RECIPES
from lexent.types import Document

QUERY = "yeast dough"


def build(folder: Path) -> Index:
    """An index that can be opened by its path alone."""
    long = " ".join(f"Part {number} has {words}." for number in range(5) for words in small.TOPICS.values())
    texts = [
        *small.documents(20),
        Document("long", long, "All topics", {"n": 100, "score": "own", "source": "a.txt"}),
    ]
    lexicon = small.lexicon().save(folder / "lexicon")
    recipe = RECIPES["latent-terms"].changed(passage_tokens=16, passage_overlap=4)
    return small.build(folder / "small.lexent", texts, lexicon=lexicon, recipe=recipe)


def check(index: Index, *, id: str, text: str, score: float, metadata: dict[str, Any]) -> None:
    """What a retriever gives of a passage is what the index says."""
    document = index.document(metadata["document_id"])
    assert text == document.text[metadata["start"] : metadata["stop"]]
    assert sum(line["value"] for line in metadata["explanation"]) == pytest.approx(score, abs=1e-5)
    assert metadata["score"] == score
    assert 0 <= metadata["strength"] <= 1
    assert metadata["n"] == document.metadata["n"]
    assert id.startswith(document.id)
