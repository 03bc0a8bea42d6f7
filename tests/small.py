"""A small collection on the tiny encoder, for tests of the index, the search and the explanations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.lexicon import Lexicon
from lexent.types import Document

TOPICS = {
    "bread": "flour yeast dough oven crust bake loaf knead rise salt",
    "stars": "telescope galaxy orbit planet light gravity dust nebula comet mass",
    "chess": "pawn bishop rook castle check mate opening king queen board",
    "sleep": "dream night rest brain memory rhythm hormone light bed deep",
}


def documents(n: int = 40) -> list[Document]:
    """n documents, each on one topic, with a different cut of its words."""
    made = []
    for number in range(n):
        topic = list(TOPICS)[number % len(TOPICS)]
        words = TOPICS[topic].split()
        start = number // len(TOPICS) % len(words)
        text = " ".join((words * 3)[start : start + 3 + number % 7])
        made.append(Document(id=f"d{number}", text=text, title=topic if number % 2 else "", metadata={"n": number}))
    return made


def lexicon(seed: int = 0) -> Lexicon:
    return Lexicon.random(TinyEncoder(), size=96, seed=seed)


def build(out: Path, docs: list[Document] | None = None, **settings: Any) -> Index:
    chosen: dict[str, Any] = {"encoder": TinyEncoder(), "lexicon": lexicon(), "recipe": "latent-terms", **settings}
    return Index.build(documents() if docs is None else docs, out=out, **chosen)
