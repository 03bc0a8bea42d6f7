"""Indexing in steps: what was encoded is committed now and then, so that an interrupted run can go on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from time import monotonic

import numpy as np
import orjson
from numpy.typing import NDArray

from lexent.errors import InputError
from lexent.indexing.writer import EncodedDocuments, SegmentWriter, Writer
from lexent.types import Document

CHECKPOINT_SECONDS = 60.0
"""After so many seconds a segment is committed, and another one begun."""

Material = Callable[[list[Document]], EncodedDocuments]
"""What makes the codes of documents."""


def fill(segment: SegmentWriter, chunks: Iterator[list[Document]], material: Material) -> bool:
    """Adds chunks to a segment until it is time for a checkpoint; says whether all were added."""
    began = monotonic()
    for chunk in chunks:
        segment.add(chunk, partial(material, chunk))
        if monotonic() - began >= CHECKPOINT_SECONDS:
            return False
    return True


def add_rest(writer: Writer, chunks: Iterable[list[Document]], material: Material) -> None:
    """Adds chunks to an index that has others already, a segment for each checkpoint."""
    rest = _new_ids(writer, chunks)
    first = next(rest, None)  # before a segment is begun, as what an interrupted run left may be deleted before it
    ended = first is None
    rest = chain([] if first is None else [first], rest)
    while not ended:
        with writer.new_segment() as segment:
            ended = fill(segment, rest, material)
        if segment.documents.count:
            writer.append(segment.part())
            writer.tidy()
        else:
            segment.discard()


def unindexed(
    writer: Writer, chunks: Iterable[list[Document]], progress: Callable[[int], None] | None
) -> Iterator[list[Document]]:
    """The chunks from the first document on that an interrupted run did not index, or not as it is now.

    What that run indexed of later documents is deleted.
    """
    reader = writer.reader
    bases = zip(reader.bases.tolist(), reader.runs, strict=False)
    firsts = np.concatenate([np.empty(0, np.int64), *(base + runs.starts[:-1] for base, runs in bases)])
    done, known = 0, len(firsts)
    for chunk in chunks:
        if done == known:
            yield chunk
            continue
        stored = writer.reader.at(firsts[done : done + len(chunk)].tolist())
        same = _same(chunk, stored)
        done += same
        if progress is not None and same:
            progress(same)
        if same == len(chunk):
            continue
        _delete(writer, firsts[done:])
        known = done
        yield chunk[same:]
    if done < known:
        _delete(writer, firsts[done:])


def _delete(writer: Writer, firsts: NDArray[np.int64]) -> None:
    """Deletes documents by the positions of their first passages, with the kinds of their fields."""
    if len(firsts):
        writer.delete(chain.from_iterable(map(writer.reader.run, firsts.tolist())))
        writer.compact()


def _same(chunk: Sequence[Document], stored: Sequence[Document]) -> int:
    """How many documents at the beginning of a chunk are as they are stored."""
    for place, (one, other) in enumerate(zip(chunk, stored, strict=False)):
        if (one.id, one.title, one.text) != (other.id, other.title, other.text) or _json(one) != _json(other):
            return place
    return min(len(chunk), len(stored))


def _json(document: Document) -> bytes:
    return orjson.dumps(dict(document.metadata), option=orjson.OPT_SORT_KEYS)


def _new_ids(writer: Writer, chunks: Iterable[list[Document]]) -> Iterator[list[Document]]:
    """The chunks, whose ids earlier segments must not have."""
    for chunk in chunks:
        there = writer.reader.positions([document.id for document in chunk])
        if there:
            raise InputError(
                f'two documents have the id "{next(iter(there))}"; ids must differ: remove one, or name another column '
                "as the id"
            )
        yield chunk
