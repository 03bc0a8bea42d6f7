"""Documents by id, and changes to them: a few at once, or a stream of rows of which each has its own answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from pydantic import ValidationError

from lexent.errors import InputError, LexentError
from lexent.server.bodies import DocumentBody
from lexent.server.served import Change, ServedIndex
from lexent.server.word_attribution import of_document
from lexent.types import Document

MOST_ERRORS = 1000
"""Rows whose errors are reported; later ones are only counted: a client that does not read yet must not be blocked."""


def got(served: ServedIndex, id: str, *, tokens: bool) -> dict[str, Any]:
    """A document with its concepts, strongest first, and on wish with its words and their concepts."""
    searcher = served.searcher()
    position = searcher.reader.position(id)
    document = searcher.reader.at([position])[0]
    vector = searcher.document_scorer.documents([position])
    ids, weights = vector.of(0)
    df = searcher.document_scorer.df
    concepts = [
        {"id": concept, "label": searcher.lexicon.label(concept), "weight": weight, "documents": int(df[concept])}
        for concept, weight in sorted(zip(ids.tolist(), weights.tolist(), strict=True), key=lambda one: -one[1])
    ]
    return {
        "id": document.id,
        "title": document.title,
        "text": document.text,
        "metadata": document.metadata,
        "concepts": concepts,
        "tokens": of_document(served, searcher, position) if tokens else None,
    }


def document_of(body: DocumentBody) -> Document:
    """The document of a body, checked."""
    found = Document(id=body.id, text=body.text, title=body.title, metadata=body.metadata)
    if not body.id.strip():
        raise InputError("the id is blank; every document needs an id of its own")
    if not found.content.strip():
        raise InputError(f'the document "{body.id}" has neither text nor title; give it some words')
    return found


def added(served: ServedIndex, bodies: list[DocumentBody], *, upsert: bool) -> dict[str, Any]:
    """Adds all or none."""
    if len(bodies) > served.limits.batch:
        raise InputError(
            f"{len(bodies):,} documents at once; allowed: at most {served.limits.batch:,}; "
            "for more send rows to documents/bulk"
        )
    return served.add([document_of(body) for body in bodies], upsert=upsert).to_dict(served.index)


def deleted(served: ServedIndex, ids: list[str]) -> dict[str, Any]:
    """Delete documents by id, all or none."""
    if len(ids) > served.limits.batch:
        raise InputError(f"{len(ids):,} ids at once; allowed: at most {served.limits.batch:,}")
    return served.delete(ids).to_dict(served.index)


@dataclass(slots=True)
class Bulk:
    """A stream of rows on its way into an index. Rows are committed some hundreds at a time, and told when they are."""

    served: ServedIndex
    upsert: bool
    lines: int = 0
    added: int = 0
    replaced: int = 0
    failed: int = 0
    _rows: dict[str, tuple[int, Document]] = field(default_factory=dict)
    _news: list[dict[str, Any]] = field(default_factory=list)

    async def run(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Reads rows and gives lines of JSON: errors as they are found, a line for each commit, a last one for all."""
        held, most = b"", self.served.limits.line
        try:
            async for chunk in chunks:
                *lines, held = (held + chunk).split(b"\n")
                if len(held) > most:
                    raise InputError(
                        f"row {self.lines + len(lines) + 1} is longer than the {most:,} bytes that a row may have"
                    )
                for line in lines:
                    self._take(line)
                    if len(self._rows) >= self.served.limits.batch:
                        await self._commit()
                for news in self._replies():
                    yield news
            self._take(held)
            await self._commit()
        except LexentError as error:  # nothing after this row is read; what was committed stays
            self._fail(self.lines + 1, error)
            last = {"done": False, "error": str(error)}
        else:
            last = {"done": True}
        for news in self._replies():
            yield news
        counts = {"lines": self.lines, "added": self.added, "replaced": self.replaced, "failed": self.failed}
        yield orjson.dumps({**last, **counts}) + b"\n"

    def _take(self, line: bytes) -> None:
        self.lines += 1
        if not line.strip():
            return
        try:
            if len(line) > self.served.limits.line:
                raise InputError(f"the row has {len(line):,} bytes; allowed: at most {self.served.limits.line:,}")
            document = document_of(DocumentBody.model_validate(orjson.loads(line)))
            before = self._rows.get(document.id)
            if before is not None and not self.upsert:
                raise InputError(f'the id "{document.id}" stands already in row {before[0]}; ids must differ')
            self._rows[document.id] = (self.lines, document)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the row"
            self._fail(self.lines, InputError(f'{where}: {first["msg"]}; a row is {{"id": "...", "text": "..."}}'))
        except orjson.JSONDecodeError as error:
            self._fail(self.lines, InputError(f"not JSON: {error}; write one document a row"))
        except LexentError as error:
            self._fail(self.lines, error)

    async def _commit(self) -> None:
        rows, self._rows = self._rows, {}
        if not rows:
            return
        change, errors = await self.served.writers.run(lambda: _committed(self.served, rows, upsert=self.upsert))
        for number, error in errors:
            self._fail(number, error)
        self.added += change.added
        self.replaced += change.replaced
        through = max(number for number, _ in rows.values())
        self._news.append({"committed": change.added, "through": through})

    def _fail(self, line: int, error: LexentError) -> None:
        self.failed += 1
        if self.failed <= MOST_ERRORS:
            self._news.append({"line": line, "error": str(error)})

    def _replies(self) -> list[bytes]:
        news, self._news = self._news, []
        return [orjson.dumps(one) + b"\n" for one in news]


def _committed(
    served: ServedIndex, rows: dict[str, tuple[int, Document]], *, upsert: bool
) -> tuple[Change, list[tuple[int, LexentError]]]:
    """Adds rows together; where that fails, one by one, so that only those at fault are left out."""
    errors: list[tuple[int, LexentError]] = []
    if not upsert:
        there = served.index.documents.positions(list(rows))
        for id in there:
            errors.append((rows[id][0], InputError(f'the index already has a document "{id}"; add with upsert=true')))
        rows = {id: row for id, row in rows.items() if id not in there}
    if not rows:
        return Change(), errors
    try:
        return served.add([document for _, document in rows.values()], upsert=upsert), errors
    except InputError:
        change = Change()
        for number, document in rows.values():
            try:
                one = served.add([document], upsert=upsert)
                change = Change(added=change.added + one.added, replaced=change.replaced + one.replaced)
            except InputError as error:
                errors.append((number, error))
        return change, errors
