"""Short names for the indexes that a server serves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def by_name(paths: Sequence[Path]) -> dict[str, Path]:
    """A short name for each folder: papers.lexent is "papers"; a second one of that name is "papers-2"."""
    found: dict[str, Path] = {}
    for path in paths:
        stem = path.resolve().name.removesuffix(".lexent") or "index"
        name, count = stem, 2
        while name in found:
            name, count = f"{stem}-{count}", count + 1
        found[name] = path
    return found
