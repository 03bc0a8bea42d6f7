"""The fields of an index with their values and ranges, for filters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lexent.indexing.filters import Stored, unstored
from lexent.server.replies import FieldBin, FieldReply, FieldsReply, FieldValue
from lexent.server.served import ServedIndex

if TYPE_CHECKING:
    from lexent.indexing.reader import IndexReader

MAX_VALUES = 50
"""Values of a field that are given."""
MAX_BINS = 24
"""Bins of a histogram of numbers."""
YEAR, MONTH = 4, 7
"""Characters of a date."""


def fields(served: ServedIndex) -> FieldsReply:
    """All fields with their commonest values; counted once for each generation."""
    reader = served.searcher().reader
    key = ("fields", served.index.manifest.generation)
    found: FieldsReply = served.cache.get_or_make(
        key, lambda: FieldsReply([_field(reader, name) for name in reader.field_names()])
    )
    return found


def _field(reader: IndexReader, name: str) -> FieldReply:
    counts = reader.value_counts(name)
    kind = _kind(reader, name)
    commonest = sorted(counts, key=lambda value: -counts[value])[:MAX_VALUES]
    values = [FieldValue(unstored(value), counts[value]) for value in commonest]
    bins = _numbers(counts) if kind == "number" else _dates(counts) if kind == "date" else []
    return FieldReply(name, kind, len(counts), values, bins)


def _kind(reader: IndexReader, name: str) -> Literal["number", "text", "boolean", "date", "mixed"]:
    kinds = reader.field_kinds(name)
    if len(kinds) != 1:
        return "mixed"
    (kind,) = kinds
    return "date" if kind == "text" and not reader.has_other_text(name) else kind


def _numbers(counts: Mapping[Stored, int]) -> list[FieldBin]:
    """Bins of equal width; none where there is one number, or where the range is too wide to be divided."""
    numbers: Any = [unstored(value) for value in counts]
    if len(numbers) < 2 or not math.isfinite(float(max(numbers)) - float(min(numbers))):
        return []
    whole = all(isinstance(number, int) for number in numbers)
    span = max(numbers) - min(numbers)
    bins = min(MAX_BINS, span) if whole else MAX_BINS
    found, edges = np.histogram(np.array(numbers, np.float64), bins=int(bins), weights=list(counts.values()))
    ends = edges.tolist()
    return [FieldBin(low, high, int(n)) for low, high, n in zip(ends, ends[1:], found.tolist(), strict=False)]


def _dates(counts: Mapping[Stored, int]) -> list[FieldBin]:
    """A bin for each year that has documents, or for each month where all are of one year."""
    dates = {str(value): count for value, count in counts.items() if value}
    size = YEAR if len({date[:YEAR] for date in dates}) > 1 else MONTH
    found = Counter[str]()
    for date, count in dates.items():
        found[date[:size]] += count
    return [FieldBin(part, part, found[part]) for part in sorted(found)]
