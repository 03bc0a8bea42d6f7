"""Values of metadata as JSON has them: dates in the form of ISO 8601, and nothing for a value that is missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """The value as JSON keeps it, also within lists and mappings.

    Dates and times are written in the form of ISO 8601, those with an offset in UTC, so that filters compare them. NaN,
    NaT and the like are None. What JSON does not know (decimals, durations) is kept as it prints.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, datetime | np.datetime64):
        return _moment(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist()) if value.dtype.kind != "V" else str(value)
    if isinstance(value, Mapping):
        return {name if isinstance(name, str) else str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if is_missing(value) else str(value)


def is_missing(value: Any) -> bool:
    """Whether the value says that there is none: None, NaN, and NaT and NA of data frames."""
    if value is None:
        return True
    if isinstance(value, str | bytes | list | tuple | Mapping | np.ndarray):
        return False
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):  # pandas.NA, which cannot be compared
        return type(value).__name__ == "NAType"


def _moment(value: datetime | np.datetime64) -> str | None:
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if is_missing(value):
        return None
    try:
        return value.isoformat() if value.tzinfo is None else value.astimezone(UTC).isoformat()
    except OverflowError:  # before the year 1 or after 9999, in UTC
        return value.isoformat()
