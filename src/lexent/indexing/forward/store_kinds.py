"""The kinds of forward stores that an index has."""

from __future__ import annotations

from collections.abc import Sequence

from lexent.indexing.forward.dense import DenseStore
from lexent.indexing.forward.stores import ForwardStore
from lexent.indexing.forward.tokens import TokenStore
from lexent.recipes import Recipe


def store_kinds(recipe: Recipe, extras: Sequence[str]) -> list[type[ForwardStore]]:
    """The stores that the segments of an index have: those that its recipe needs, and the extras it was built with."""
    found: list[type[ForwardStore]] = [TokenStore] if recipe.match == "maxsim" else []
    return [*found, DenseStore] if "dense" in extras else found
