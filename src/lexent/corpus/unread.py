"""The files of a folder that are not read, by kind: they are reported, never passed over in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

SHOWN_KINDS = 12


@dataclass(frozen=True, slots=True)
class Unread:
    """How many files of a folder no reader is for."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """By suffix, or by what they are: "hidden", "without a suffix"."""

    def __add__(self, other: Unread) -> Unread:
        return Unread(Counter(self.counts) + Counter(other.counts))

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __str__(self) -> str:
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        shown = ", ".join(f"{count:,} {kind}" for kind, count in ordered[:SHOWN_KINDS])
        rest = sum(count for _, count in ordered[SHOWN_KINDS:])
        return shown + (f", {rest:,} of other kinds" if rest else "")
