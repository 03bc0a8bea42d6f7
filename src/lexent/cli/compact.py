"""lexent compact: one segment in the place of many."""

from __future__ import annotations

from time import perf_counter

from lexent.cli import options
from lexent.cli.console import show, show_json
from lexent.cli.progress import Meter


def compact(path: options.IndexPath, memory: options.Memory = None, json: options.Json = False) -> None:
    """Write an index anew as one segment, without what was deleted.

    Searches give the same, quicker. Adding merges small segments by itself, so this is seldom needed.
    """
    from lexent.engine import Index

    start = perf_counter()
    with Index.open(path) as index:
        before = index.info()
        with Meter("documents") as meter:
            index.compact(memory=options.bytes_of(memory), progress=meter.counter("compacting", len(index)))
        after = index.info()
    seconds = perf_counter() - start
    if json:
        show_json({**after, "bytes_before": before["bytes"], "seconds": round(seconds, 3)})
        return
    show(
        f"compacted  {before['segments']} segments to {after['segments']}, {before['bytes'] / 1e6:,.1f} MB to "
        f"{after['bytes'] / 1e6:,.1f} MB, {seconds:,.1f} s"
    )
