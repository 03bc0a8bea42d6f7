"""Types of the fields of a file whose cells are all text (CSV, TSV), from all of their values.

A column is of the first of these types that all of its non-empty cells have:

- integer: digits, with - before them or not, of at most 64 bits. No leading zero: 007 is text.
- number: integers and decimals as JSON writes them: 2.5, -1e-3. No thousands separators, no decimal comma.
- boolean: true and false, in upper or lower case.
- date: 2019-05-31 or 2019/05/31, also with a time: 2019-05-31T10:30:00. Kept as text in the form of ISO 8601, so that
  the order of the texts is that of the dates.
- time: a date with a time and an offset, Z or +02:00. Kept as text in the form of ISO 8601, in UTC.

Any other column is text, as it stands. A column whose name is that of an id (id, uid, ..., or anything that ends in
_id) is text, too. An empty cell of a column that is no text has no value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from lexent.corpus.columns import ID_NAMES

FieldType = Literal["integer", "number", "boolean", "date", "time", "text"]

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}([-/])[0-9]{2}\1[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}.*)?")
_LONGEST = 400
"""Characters of a number."""


def infer(rows: Iterable[Mapping[str, str]], columns: Sequence[str]) -> dict[str, FieldType]:
    """The type of each of the columns."""
    open_types: dict[str, list[Any]] = {column: [] if _is_id(column) else list(_PARSERS) for column in columns}
    filled: set[str] = set()
    for row in rows:
        for column, types in open_types.items():
            cell = row.get(column, "").strip() if types else ""
            if cell:
                filled.add(column)
                types[:] = [one for one in types if _PARSERS[one](cell) is not None]
    return {column: types[0] if types and column in filled else "text" for column, types in open_types.items()}


def converted(cell: str, kind: FieldType) -> Any:
    """The value of a cell; None where it is empty and its column is no text."""
    return cell if kind == "text" else _PARSERS[kind](cell.strip())


def text_kind(value: str) -> FieldType:
    """What a string of a source that has types itself is: a date, a time, or text."""
    cell = value.strip()
    return "date" if _date(cell) is not None else "time" if _time(cell) is not None else "text"


def _integer(cell: str) -> int | None:
    value = int(cell) if len(cell) <= 20 and _INTEGER.fullmatch(cell) else None
    return value if value is not None and -(2**63) <= value < 2**64 else None


def _number(cell: str) -> int | float | None:
    if len(cell) > _LONGEST or not _NUMBER.fullmatch(cell):
        return None
    if _INTEGER.fullmatch(cell):
        return _integer(cell)
    value = float(cell)
    return value if math.isfinite(value) else None


def _date(cell: str) -> str | None:
    moment = _moment(cell)
    if moment is None or moment.tzinfo is not None:
        return None
    return moment.isoformat() if ":" in cell else moment.date().isoformat()


def _time(cell: str) -> str | None:
    moment = _moment(cell)
    if moment is None or moment.tzinfo is None:
        return None
    try:
        # With "+00:00" fractions of a second sort as they should; with "Z" they would not.
        return moment.astimezone(UTC).isoformat()
    except OverflowError:  # before the year 1 or after 9999, in UTC
        return None


def _moment(cell: str) -> datetime | None:
    if not _DATE.fullmatch(cell):
        return None
    try:
        return datetime.fromisoformat(cell.replace("/", "-"))
    except (ValueError, OverflowError):
        return None


_PARSERS: dict[str, Callable[[str], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": lambda cell: {"true": True, "false": False}.get(cell.lower()),
    "date": _date,
    "time": _time,
}
"""In order of preference; each gives None for a cell that is not of its type."""


def _is_id(column: str) -> bool:
    name = column.strip().lower()
    return name in ID_NAMES or name.endswith("_id")
