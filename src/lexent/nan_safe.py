"""Measures that are not defined, such as a ratio over 0 or a t-test over one query.

A measure that is not defined is NaN in memory, null in JSON and "undefined" in a table. It is never 0 or 1, which
would read as a result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNDEFINED = math.nan


def ratio(numerator: float, denominator: float) -> float:
    """The ratio; undefined where the denominator is 0."""
    return numerator / denominator if denominator else UNDEFINED


def mean(values: Iterable[float]) -> float:
    """The mean of the values that are defined; undefined where none is."""
    kept = [value for value in map(float, values) if not math.isnan(value)]
    return math.fsum(kept) / len(kept) if kept else UNDEFINED


def paired_p(
    left: NDArray[np.float64], right: NDArray[np.float64], *, alternative: Literal["two-sided", "greater"]
) -> float:
    """The p-value of a paired t-test over queries.

    1 where no query differs: there is nothing to test. Undefined with fewer than two queries, and where all of them
    differ by the same amount: the test divides by the spread of the differences.
    """
    import numpy as np
    from scipy.stats import ttest_rel

    if len(left) < 2:
        return UNDEFINED
    if np.array_equal(left, right):
        return 1.0
    difference = np.asarray(left, np.float64) - right
    if np.ptp(difference) <= 1e-9 * np.abs(difference).max():
        return UNDEFINED
    return float(ttest_rel(left, right, alternative=alternative).pvalue)


def shown(value: float | None, spec: str) -> str:
    """A value in a table, by its format; "undefined" where it is not defined, empty where there is none."""
    if value is None:
        return ""
    return "undefined" if math.isnan(value) else format(value, spec)


def p_text(p_value: float | None) -> str:
    """A p-value in a table; nothing where there is none."""
    return "<0.001" if p_value is not None and p_value < 0.001 else shown(p_value, ".3f")


def plain(value: Any) -> Any:
    """The same value as JSON can hold it: what is not finite becomes None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value
