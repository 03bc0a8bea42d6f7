"""Data frames and tables in memory: pandas, polars, Arrow, and whatever speaks the Arrow or the data frame protocol.

None of these packages is imported unless such an object was given. Rows are read one after the other; the object is not
copied as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lexent.corpus.problems import RowError
from lexent.corpus.rows import Row, Table
from lexent.errors import InputError, MissingExtraError

BATCH_ROWS = 1024
_PROTOCOLS = ("__arrow_c_stream__", "__dataframe__", "to_batches", "collect_schema")
"""What a type has that is a data frame, a table, or one that is not computed yet."""


def is_frame(given: object) -> bool:
    """Whether it is a data frame or an Arrow table. Its type is asked: columns of a frame may be attributes of it."""
    kind = type(given)
    if hasattr(kind, "dtype") or hasattr(kind, "chunks"):  # a single column
        return False
    by_array = hasattr(kind, "__arrow_c_array__") and hasattr(kind, "schema")
    return by_array or any(hasattr(kind, name) for name in _PROTOCOLS)


def frame_name(frame: object) -> str:
    """What messages call it."""
    return f"the given {type(frame).__name__}"


def rows_once(frame: Any) -> Iterator[Mapping[str, Any]] | None:
    """The rows of a source that gives its batches only once; None for others."""
    return _arrow_rows(iter(frame)) if hasattr(type(frame), "read_next_batch") else None


def frame_table(frame: Any) -> Table:
    """The rows of a data frame or an Arrow table; its columns keep their types."""
    name, kind = frame_name(frame), type(frame)
    if hasattr(kind, "collect") and not hasattr(kind, "iter_rows"):
        raise InputError(f"{name} has no rows yet; give what it collects: frame.collect()")
    if hasattr(kind, "itertuples") and hasattr(kind, "iloc"):
        return _table(name, lambda: _pandas_rows(frame, name), len(frame))
    if hasattr(kind, "iter_rows"):
        return _table(name, lambda: frame.iter_rows(named=True), len(frame))
    if hasattr(kind, "to_pylist"):
        return _table(name, lambda: _arrow_rows([frame]), int(frame.num_rows))
    return _table(name, lambda: _arrow_rows(_stream(frame, name)), None)


def _table(name: str, make: Callable[[], Iterator[Mapping[str, Any]]], count: int | None) -> Table:
    def rows() -> Iterator[tuple[int, Row]]:
        return enumerate(make(), 1)

    return Table(name, "row", rows, lambda: count)


def _pandas_rows(frame: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """The rows, with the levels of an index that has names as columns."""
    names = [str(column) for column in frame.columns]
    columns = [_cells(frame.iloc[:, place]) for place in range(len(names))]
    if all(level is not None for level in frame.index.names):
        names += [str(level) for level in frame.index.names]
        columns += [iter(frame.index.get_level_values(level)) for level in frame.index.names]
    twice = next((column for place, column in enumerate(names) if column in names[:place]), None)
    if twice is not None:
        raise InputError(f'{name} has two columns named "{twice}"; rename one of them')
    for cells in zip(*columns, strict=True):
        yield dict(zip(names, cells, strict=True))


def _cells(column: Any) -> Iterator[Any]:
    """The values of a column.

    Pandas has no type for dates, and integers among which some are missing are floats: times that are all midnight are
    dates, and floats that are all whole or missing are integers.
    """
    kind = getattr(column.dtype, "kind", "")
    if kind == "f" and column.isna().any() and (column.dropna() % 1 == 0).all():
        return (None if value != value else int(value) for value in column)
    if kind == "M" and getattr(column.dtype, "tz", None) is None:
        days = column.dt.normalize()
        if bool(((days == column) | column.isna()).all()):
            return (None if missing else day for day, missing in zip(column.dt.date, column.isna(), strict=True))
    return iter(column)


def _arrow_rows(batches: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield from batch.slice(start, BATCH_ROWS).to_pylist()


def _stream(frame: Any, name: str) -> Iterator[Any]:
    """The batches of an object that gives them by protocol."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError("pyarrow", extra="parquet", purpose=f"reading {name}") from error
    try:
        if hasattr(frame, "__arrow_c_stream__"):
            yield from pyarrow.RecordBatchReader.from_stream(frame)
        elif hasattr(frame, "__arrow_c_array__"):
            yield pyarrow.record_batch(frame)
        else:
            from pyarrow.interchange import from_dataframe

            yield from from_dataframe(frame).to_batches()
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise RowError(f"{name} cannot be read ({error})", where=name, reason="damaged table") from error
