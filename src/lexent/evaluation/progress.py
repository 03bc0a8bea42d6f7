"""How far a long step has come, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable

from lexent.types import Kind

Progress = Callable[[str, int, int], None]
"""Called with the step, how many texts are done, and of how many. Steps that come from the cache make no call."""


def counter(progress: Progress | None, system: str, *, kind: Kind, total: int) -> Callable[[int], None]:
    """Adds up what is done since the last call."""
    what = f"{system}, {'documents' if kind == 'document' else 'queries'}"
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(what, done, total)

    return advance
