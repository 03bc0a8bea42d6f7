"""Documents by id, and changes to them: a few at once, or a stream of rows of which each has its own answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from pydantic import TypeAdapter, ValidationError

from lexent.errors import InputError, LexentError
from lexent.server.bodies import DocumentBody
from lexent.server.replies import ChangeReply, DocumentReply
from lexent.server.served import ServedIndex
from lexent.server.word_attribution import of_document
from lexent.types import Document

MAX_REPORTED_ERRORS = 1000
"""Rows whose errors are reported; later ones are only counted: a client that does not read yet must not be blocked."""
_ROW = TypeAdapter(DocumentBody)


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


def added(served: ServedIndex, documents: list[DocumentBody], *, upsert: bool) -> ChangeReply:
    """Adds all or none."""
    if len(documents) > served.limits.batch:
        raise InputError(
            f"{len(documents):,} documents at once; allowed: at most {served.limits.batch:,}; "
            "for more send rows to documents/bulk"
        )
    return served.add(documents, upsert=upsert)


def deleted(served: ServedIndex, ids: list[str], *, filter: str | None) -> ChangeReply:
    """Delete documents by id, or those that match a filter, written as JSON; all or none."""
    if filter is not None or not ids:
        return served.delete(ids or None, filter=None if filter is None else _filter_of(filter))
    if len(ids) > served.limits.batch:
        raise InputError(f"{len(ids):,} ids at once; allowed: at most {served.limits.batch:,}")
    return served.delete(ids)


def _filter_of(given: str) -> dict[str, Any]:
    try:
        found = orjson.loads(given)
    except orjson.JSONDecodeError as error:
        raise InputError(f'filter is no JSON ({error}); write for example filter={{"year": {{"lt": 2000}}}}') from error
    if not isinstance(found, dict):
        raise InputError(f'filter is {given:.60}; allowed: an object of fields, such as {{"year": {{"lt": 2000}}}}')
    return found


@dataclass(slots=True)
class Bulk:
    """A stream of rows on its way into an index. Rows are committed in batches; each commit is reported."""

    served: ServedIndex
    upsert: bool
    lines: int = 0
    added: int = 0
    replaced: int = 0
    failed: int = 0
    _rows: dict[str, tuple[int, Document]] = field(default_factory=dict)
    _reports: list[dict[str, Any]] = field(default_factory=list)

    async def run(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Reads rows and gives lines of JSON: errors as they are found, a line for each commit, a last one for all."""
        rest, most = b"", self.served.limits.line
        try:
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > most:
                    raise InputError(
                        f"row {self.lines + len(lines) + 1} is longer than the {most:,} bytes that a row may have"
                    )
                for line in lines:
                    self._take(line)
                    if len(self._rows) >= self.served.limits.batch:
                        await self._commit()
                yield self._replies()
            if rest:  # no line end after the last row
                self._take(rest)
            await self._commit()
        except LexentError as error:  # nothing after this row is read; what was committed stays
            self._fail(self.lines + 1, error)
            last = {"done": False, "error": str(error)}
        else:
            last = {"done": True}
        counts = {"lines": self.lines, "added": self.added, "replaced": self.replaced, "failed": self.failed}
        self._reports.append({**last, **counts})
        yield self._replies()

    def _take(self, line: bytes) -> None:
        self.lines += 1
        if not line.strip():
            return
        try:
            if len(line) > self.served.limits.line:
                raise InputError(f"the row has {len(line):,} bytes; allowed: at most {self.served.limits.line:,}")
            document = _ROW.validate_python(orjson.loads(line))
            before = self._rows.get(document.id)
            if before is not None and not self.upsert:
                raise InputError(f'the id "{document.id}" stands already in row {before[0]}; ids must differ')
            self._rows[document.id] = (self.lines, document)
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
        rows, self._rows = self._rows, {}
        if not rows:
            return
        changes, errors = await self.served.writers.run(lambda: _committed(self.served, rows, upsert=self.upsert))
        for number, error in errors:
            self._fail(number, error)
        added = sum(change.added for change in changes)
        self.added += added
        self.replaced += sum(change.replaced for change in changes)
        self._reports.append({"committed": added, "through": max(number for number, _ in rows.values())})

    def _fail(self, line: int, error: LexentError) -> None:
        self.failed += 1
        if self.failed <= MAX_REPORTED_ERRORS:
            self._reports.append({"line": line, "error": str(error)})

    def _replies(self) -> bytes:
        """A line for each report since the last call."""
        reports, self._reports = self._reports, []
        return b"".join(orjson.dumps(report) + b"\n" for report in reports)


def _committed(
    served: ServedIndex, rows: dict[str, tuple[int, Document]], *, upsert: bool
) -> tuple[list[ChangeReply], list[tuple[int, LexentError]]]:
    """Adds rows together; where that fails, one by one, so that only those at fault are left out."""
    errors: list[tuple[int, LexentError]] = []
    if not upsert:
        known = served.index.documents.positions(list(rows))
        for id in known:
            errors.append((rows[id][0], InputError(f'the index already has a document "{id}"; add with upsert=true')))
        rows = {id: row for id, row in rows.items() if id not in known}
    if not rows:
        return [], errors
    try:
        return [served.add([document for _, document in rows.values()], upsert=upsert)], errors
    except InputError:
        changes = []
        for number, document in rows.values():
            try:
                changes.append(served.add([document], upsert=upsert))
            except InputError as error:
                errors.append((number, error))
        return changes, errors
