"""Types of the fields of a file whose cells are all text (CSV, TSV), from all of their values.

A column is of the first of these types that all of its cells have that are not missing:

- integer: digits, with - before them or not, of at most 64 bits. No leading zero: 007 is text.
- number: integers and decimals as JSON writes them: 2.5, -1e-3. No thousands separators, no decimal comma.
- boolean: true and false, in upper or lower case.
- date: 2019-05-31 or 2019/05/31, also with a time: 2019-05-31T10:30:00. Kept as text in the form of ISO 8601, so that
  the order of the texts is that of the dates.
- time: a date with a time and an offset, Z or +02:00. Kept as text in the form of ISO 8601, in UTC.
- date, day first: 31/5/2019, 31.5.2019, 31-05-2019, 31 May 2019. date, month first: 5/31/2019, May 31, 2019. Where
  all values of a column are both (3/4/2019), which it is cannot be known, and the column is text.

Any other column is text, as it stands. A column whose name is that of an id (id, Doc ID, ..., or anything that ends in
_id) is text, too. A cell is missing where it is empty; in a column that is otherwise no text also where it says NA,
N/A, NaN, null or None. A missing cell of a column that is no text has no value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal

from lexent.corpus.columns import is_id_name

FieldType = Literal[
    "integer", "number", "boolean", "date", "time", "date, day first", "date, month first", "text"
]  # fmt: skip

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}([-/])[0-9]{2}\1[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}.*)?")
_DAY_FIRST = re.compile(
    r"(?P<day>[0-9]{1,2})(?P<sign>[-/. ])(?P<month>[0-9]{1,2}|[A-Za-z]{3,9})\.?(?P=sign)(?P<year>[0-9]{4})"
)
_MONTH_FIRST = re.compile(
    r"(?P<month>[0-9]{1,2}|[A-Za-z]{3,9})\.?(?P<sign>[-/ ])(?P<day>[0-9]{1,2})(?:(?P=sign)|, ?)(?P<year>[0-9]{4})"
)
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none"))
_LONGEST = 400
"""Characters of a number."""


def infer(rows: Iterable[Mapping[str, str]], columns: Sequence[str]) -> dict[str, FieldType]:
    """The type of each of the columns."""
    open_types: dict[str, list[Any]] = {column: [] if is_id_name(column) else list(_PARSERS) for column in columns}
    filled: set[str] = set()
    for row in rows:
        for column, types in open_types.items():
            cell = row.get(column, "").strip() if types else ""
            if cell and cell.lower() not in _MISSING:
                filled.add(column)
                types[:] = [one for one in types if _PARSERS[one](cell) is not None]
    return {column: _first(types) if column in filled else "text" for column, types in open_types.items()}


def converted(cell: str, kind: FieldType) -> Any:
    """The value of a cell; None where it is missing and its column is no text."""
    return cell if kind == "text" else _PARSERS[kind](cell.strip())


def _first(types: list[FieldType]) -> FieldType:
    """The type of a column whose cells have all of these types."""
    if not types or {"date, day first", "date, month first"} <= set(types):
        return "text"
    return types[0]


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


def _written(form: re.Pattern[str], cell: str) -> str | None:
    """The date of a cell with its day or its month first, in the form of ISO 8601."""
    found = form.fullmatch(cell)
    if found is None:
        return None
    name = found["month"].lower()
    named = [place for place, month in enumerate(_MONTHS, 1) if name in (month, month[:3], month[:4])]
    if not name.isdigit() and not named:
        return None
    try:
        return date(int(found["year"]), named[0] if named else int(name), int(found["day"])).isoformat()
    except ValueError:
        return None


_PARSERS: dict[FieldType, Callable[[str], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": lambda cell: {"true": True, "false": False}.get(cell.lower()),
    "date": _date,
    "time": _time,
    "date, day first": lambda cell: _written(_DAY_FIRST, cell),
    "date, month first": lambda cell: _written(_MONTH_FIRST, cell),
}
"""In order of preference; each gives None for a cell that is not of its type."""
