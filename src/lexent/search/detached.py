"""What stands in a hit for its index where there is none: after pickling, or in another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from lexent.errors import InputError


class DetachedIndex:
    """Knows where the index was, and the strength of the hit. Whatever else a hit asks it is an InputError."""

    __slots__ = ("_path", "_query", "_strength")

    def __init__(self, path: Path, query: str, strength: float) -> None:
        self._path, self._query, self._strength = path, query, strength

    def strength(self, query: object, score: float) -> float:
        """The strength that the hit had."""
        return self._strength

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise InputError(
            "this hit was pickled, and its explanation, words and passages need the open index; search again: "
            f"lexent.open({str(self._path)!r}).search({self._query!r})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> DetachedIndex:
        return self
