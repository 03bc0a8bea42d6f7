"""What a split is for: to learn from (train, dev) or to measure (test), by its name or by an ir_datasets id."""

from __future__ import annotations

import re
from typing import Literal

Role = Literal["train", "dev", "test"]
ROLES: tuple[Role, ...] = ("train", "dev", "test")
LEARNABLE: tuple[Role, ...] = ("train", "dev")
"""Splits that settings and models may be learned from."""

_DEV = {"dev", "devel", "development", "val", "valid", "validation"}
_TEST = {"eval", "evaluation"}


def role(name: str) -> Role | None:
    """What a split of this name is for; None where its name does not say. A name that has "test" in it is a test's."""
    words = re.findall(r"[a-z]+", name.casefold())
    if any(word.startswith("test") or word in _TEST for word in words):
        return "test"
    if any(word in _DEV for word in words):
        return "dev"
    return "train" if any(word.startswith("train") for word in words) else None


def learnable(name: str) -> bool:
    """Whether settings and models may be learned from a split of this name."""
    return role(name) in LEARNABLE


def named_in(id: str) -> str | None:
    """The split that an ir_datasets id names: the last of its components that says what it is for, else None."""
    return next((part for part in reversed(id.split("/")) if role(part)), None)


def agree(own: str, wanted: str) -> bool:
    """Whether a split is the wanted one, by name, or by what it is for: "validation" is a "dev" split."""
    return own == wanted or (wanted in ROLES and role(own) == wanted)


def registered() -> tuple[str, ...]:
    """All ids of ir_datasets; none where it is not installed."""
    try:
        from ir_datasets import registry
    except ImportError:
        return ()
    return tuple(registry)


def part(id: str, split: str) -> str | None:
    """The registered id of a split of this collection: beir/scifact/train of beir/scifact."""
    every = registered()
    if f"{id}/{split}" in every:
        return f"{id}/{split}"
    children = sorted(each for each in every if each.rpartition("/")[0] == id)
    return next((each for each in children if agree(each.rpartition("/")[2], split)), None)


def beside(id: str, split: str) -> str | None:
    """The registered id of another split of the same collection: beir/scifact/train beside beir/scifact/test."""
    parts, own = id.split("/"), named_in(id)
    if own is None:  # such as msmarco-passage/trec-dl-2019: its own parts first, then its parents'
        heads = ["/".join(parts[:size]) for size in range(len(parts), 0, -1)]
        return next((found for head in heads if (found := part(head, split))), None)
    place = len(parts) - 1 - parts[::-1].index(own)
    found = part("/".join(parts[:place]), split)
    narrower = "/".join([found, *parts[place + 1 :]]) if found else None  # such as nfcorpus/test/video
    return narrower if narrower in registered() else found
