"""Documents by id, and changes to them: a few at once, or a stream of rows of which each has its own answer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from pydantic import TypeAdapter, ValidationError

from lexent.errors import InputError, LexentError
from lexent.server.audit_log import Caller
from lexent.server.bodies import DocumentBody
from lexent.server.replies import ChangeReply, DocumentReply
from lexent.server.served import ServedIndex
from lexent.server.word_attribution import of_document
from lexent.types import Document

MAX_REPORTED_ERRORS = 1000
"""Rows whose errors are reported; later ones are only counted: a client that does not read yet must not be blocked."""
_ROW = TypeAdapter(DocumentBody)
log = logging.getLogger("lexent.server")


def got(served: ServedIndex, id: str, *, tokens: bool) -> DocumentReply:
    """A document with its concepts, strongest first; tokens: also with its words and their concepts."""
    searcher = served.searcher()
    position = searcher.reader.position(id)
    document = searcher.reader.at([position])[0]
    passages = searcher.document_scorer.documents(searcher.reader.run(position))
    ids, owners = np.unique(passages.ids, return_inverse=True)
    weights = np.zeros(len(ids), np.float32)
    np.maximum.at(weights, owners, passages.values)  # a document has what one of its passages has
    df = searcher.document_scorer.df
    concepts = [
        {
            "id": concept,
            "label": searcher.label(concept),
            "word": searcher.is_word(concept),
            "weight": weight,
            "documents": int(df[concept]),
        }
        for concept, weight in sorted(zip(ids.tolist(), weights.tolist(), strict=True), key=lambda one: -one[1])
    ]
    words = of_document(searcher, position) if tokens else None
    return DocumentReply(document.id, document.title, document.text, document.metadata, concepts, words)


def added(served: ServedIndex, documents: list[DocumentBody], *, upsert: bool, by: Caller) -> ChangeReply:
    """Adds all or none."""
    if len(documents) > served.limits.batch:
        raise InputError(
            f"{len(documents):,} documents at once; allowed: at most {served.limits.batch:,}; "
            "for more send rows to documents/bulk"
        )
    return served.add(documents, upsert=upsert, by=by)


def deleted(served: ServedIndex, ids: list[str], *, filter: str | None, by: Caller) -> ChangeReply:
    """Delete documents by id, or those that match a filter, written as JSON; all or none."""
    if filter is not None or not ids:
        return served.delete(ids or None, filter=None if filter is None else _filter_of(filter), by=by)
    if len(ids) > served.limits.batch:
        raise InputError(f"{len(ids):,} ids at once; allowed: at most {served.limits.batch:,}")
    return served.delete(ids, by=by)


def _filter_of(given: str) -> dict[str, Any]:
    try:
        found = orjson.loads(given)
    except orjson.JSONDecodeError as error:
        raise InputError(f'filter is no JSON ({error}); write for example filter={{"year": {{"lt": 2000}}}}') from error
    if not isinstance(found, dict):
        raise InputError(f'filter is {given:.60}; allowed: an object of fields, such as {{"year": {{"lt": 2000}}}}')
    return found


@dataclass(slots=True)
class _Row:
    """A document that is to be added, and the rows that it came in: with upsert, the last of them counts."""

    document: Document
    lines: list[int]


@dataclass(slots=True)
class _Commit:
    """What became of some rows. Each is added or has an error, unless the index could not be written."""

    by: Caller
    added: int = 0
    replaced: int = 0
    errors: list[tuple[int, LexentError]] = field(default_factory=list)
    failure: LexentError | None = None
    """Why the index could not be written."""

    def run(self, served: ServedIndex, rows: dict[str, _Row], *, upsert: bool) -> None:
        """Adds rows together; where that fails, one by one, so that only those at fault are left out."""
        if not upsert:
            for id in served.index.documents.positions(list(rows)):
                self._refuse(rows.pop(id), InputError(f'the index already has a document "{id}"; add with upsert=true'))
        try:
            if rows:
                self._add(served, list(rows.values()), upsert=upsert)
        except InputError:
            for row in rows.values():
                try:
                    self._add(served, [row], upsert=upsert)
                except InputError as error:
                    self._refuse(row, error)

    def _add(self, served: ServedIndex, rows: list[_Row], *, upsert: bool) -> None:
        change = served.add([row.document for row in rows], upsert=upsert, by=self.by)
        earlier = sum(len(row.lines) - 1 for row in rows)
        self.added += change.added + earlier
        self.replaced += change.replaced + earlier

    def _refuse(self, row: _Row, error: LexentError) -> None:
        self.errors += [(line, error) for line in row.lines]


@dataclass(slots=True)
class Bulk:
    """A stream of rows on its way into an index. Rows are committed in batches; each commit is reported."""

    served: ServedIndex
    upsert: bool
    by: Caller
    lines: int = 0
    blank: int = 0
    added: int = 0
    replaced: int = 0
    failed: int = 0
    _rows: dict[str, _Row] = field(default_factory=dict)
    _bytes: int = 0
    _reports: list[dict[str, Any]] = field(default_factory=list)

    async def run(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Reads rows and gives lines of JSON: errors as they are found, a line for each commit, a last one for all."""
        rest, most = b"", self.served.limits.line
        try:
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._take(line)
                    if len(self._rows) >= self.served.limits.batch or self._bytes >= self.served.limits.body:
                        await self._commit()
                if len(rest) > most:
                    self.lines += 1
                    self._fail(self.lines, error := InputError(f"the row is longer than {most:,} bytes"))
                    raise error
                yield self._replies()
            if rest:  # no line end after the last row
                self._take(rest)
            await self._commit()
        except LexentError as error:  # nothing after this row is read; what was committed stays
            uncommitted = self.lines - self.blank - self.added - self.failed
            last = {"done": False, "error": str(error), "uncommitted": uncommitted}
        else:
            last = {"done": True}
        counts = {"lines": self.lines, "added": self.added, "replaced": self.replaced, "failed": self.failed}
        self._reports.append({**last, **counts})
        yield self._replies()

    def _take(self, line: bytes) -> None:
        self.lines += 1
        if not line.strip():
            self.blank += 1
            return
        try:
            if len(line) > self.served.limits.line:
                raise InputError(f"the row has {len(line):,} bytes; allowed: at most {self.served.limits.line:,}")
            document = _ROW.validate_python(orjson.loads(line))
            before = self._rows.get(document.id)
            if before is not None and not self.upsert:
                raise InputError(f'the id "{document.id}" stands already in row {before.lines[0]}; ids must differ')
            self._rows[document.id] = _Row(document, [*(before.lines if before else ()), self.lines])
            self._bytes += len(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the row"
            self._fail(
                self.lines,
                InputError(f'{where}: {first["msg"]}; a row is {{"id": "...", "text": "...", "metadata": {{...}}}}'),
            )
        except orjson.JSONDecodeError as error:
            self._fail(self.lines, InputError(f"not JSON: {error}; write one document a row"))
        except LexentError as error:
            self._fail(self.lines, error)

    async def _commit(self) -> None:
        rows, self._rows, self._bytes = self._rows, {}, 0
        if not rows:
            return
        through, done = max(row.lines[-1] for row in rows.values()), _Commit(self.by)

        def work() -> None:
            try:
                done.run(self.served, rows, upsert=self.upsert)
            except LexentError as error:
                done.failure = error
            except Exception as error:
                log.error("unexpected %s in a bulk add", type(error).__name__, exc_info=error)
                done.failure = LexentError("something went wrong that should not; the server's log has the traceback")

        await self.served.writers.run(work)
        for number, error in done.errors:
            self._fail(number, error)
        self.added += done.added
        self.replaced += done.replaced
        if done.failure is not None:
            raise done.failure
        self._reports.append({"committed": done.added, "through": through})

    def _fail(self, line: int, error: LexentError) -> None:
        self.failed += 1
        if self.failed <= MAX_REPORTED_ERRORS:
            self._reports.append({"line": line, "error": str(error)})

    def _replies(self) -> bytes:
        """A line for each report since the last call."""
        reports, self._reports = self._reports, []
        return b"".join(orjson.dumps(report) + b"\n" for report in reports)
