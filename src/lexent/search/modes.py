"""What a search gives, and how: documents or passages; exact, or fast and approximate for recipes of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from lexent import arguments
from lexent.recipes import Recipe

ModeName = Literal["exact", "fast"]
Unit = Literal["document", "passage"]
"""What hits are: documents, each by its best passage, or passages."""


@dataclass(frozen=True, slots=True)
class Fast:
    """Approximate search (SSR++): candidates by the strongest concepts of each query token, exact scores for those.

    A document that is no candidate is not found, however high it would score.
    """

    concepts: int = 4
    """Strongest concepts of each token that candidates are found by."""
    candidates: int = 2000
    """Documents that are scored, at most, in each chunk of an index (up to 65,536 documents of a segment)."""

    def __post_init__(self) -> None:
        for name, given in (("concepts", self.concepts), ("candidates", self.candidates)):
            arguments.whole(f"{name} of the fast mode", given, least=1)


Mode = ModeName | Fast | None
"""Search mode: "exact"; "fast", with the default settings; `Fast` with others; None for the recipe's own."""


def fast_of(mode: Mode, recipe: Recipe) -> Fast | None:
    """Settings of the fast mode; None for the exact mode."""
    if mode is None:
        return Fast() if recipe.fast else None
    if isinstance(mode, Fast):
        return mode
    return Fast() if arguments.choice("mode", mode, get_args(ModeName)) == "fast" else None
