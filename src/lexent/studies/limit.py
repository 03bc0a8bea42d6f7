"""LIMIT at any size: people and what they like, so that every pair of a few documents answers some query.

The task is that of Weller et al. (2025): 46 documents, a query for each of their 1,035 pairs ("Who likes X?"), and any
number of people who like none of what is asked for. Nothing is hard about a query, but no single vector of moderate
width can rank all pairs first. Names and things are our own, made anew from a seed.
"""

from __future__ import annotations

import random
import tomllib
from importlib import resources
from itertools import combinations

from lexent.errors import InputError
from lexent.evaluation.collections import Collection
from lexent.types import Document

_WORDS = tomllib.loads(resources.files("lexent.studies").joinpath("limit_words.toml").read_text(encoding="utf-8"))
FIRST_NAMES, STEMS, ENDINGS, THINGS = (
    tuple(_WORDS[name].split()) for name in ("first_names", "stems", "endings", "things")
)
RELEVANT = 46
PAIRS = RELEVANT * (RELEVANT - 1) // 2
LIKES_PER_PERSON = RELEVANT - 1
"""Things that each person likes: a relevant one shares one of them with each of the 45 others."""


def limit(documents: int = 1000, *, seed: int = 0) -> Collection:
    """A collection of that many documents, the same for the same seed; a larger one holds all of a smaller one.

    Every query has exactly two relevant documents. Documents are of one length: 45 things.
    """
    people = [f"{first} {stem}{ending}" for ending in ENDINGS for stem in STEMS for first in FIRST_NAMES]
    if not RELEVANT <= documents <= len(people):
        raise InputError(f"documents is {documents}; allowed: {RELEVANT} to {len(people):,}")
    dice = random.Random(seed)
    things = list(THINGS)
    dice.shuffle(things)
    liked_by_two, others = things[:PAIRS], things[PAIRS:]
    liked: list[list[str]] = [[] for _ in range(RELEVANT)]
    pairs = list(combinations(range(RELEVANT), 2))
    for thing, pair in zip(liked_by_two, pairs, strict=True):
        for person in pair:
            liked[person].append(thing)
    dice.shuffle(liked[0])
    dice.shuffle(people)  # between the two: a seed makes the same collection in every version
    for likes in liked[1:]:
        dice.shuffle(likes)
    names = iter(people)
    found = [_document(next(names), likes) for likes in liked]
    relevant = [document.id for document in found]
    queries = {f"q{number:04}": f"Who likes {thing}?" for number, thing in enumerate(liked_by_two)}
    qrels = {query: {relevant[person]: 1 for person in pair} for query, pair in zip(queries, pairs, strict=True)}
    while len(found) < documents:
        found.append(_document(next(names), dice.sample(others, LIKES_PER_PERSON)))
    return Collection(f"limit-{documents}", found, queries, qrels)


def _document(name: str, likes: list[str]) -> Document:
    return Document(id=name, text=f"{name} likes {', '.join(likes[:-1])} and {likes[-1]}.")
