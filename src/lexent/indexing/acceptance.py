"""The documents of a source, and which of them an index can take, where others are left out and not refused.

A corpus that skips bad rows (`on_error="skip"`) knows its own rows alone. Here its documents meet the index: an id that
is there already, or a value that does not fit the kind of its field, is one more problem of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from lexent import arguments
from lexent.corpus import Corpus, Problem, read
from lexent.corpus.frames import is_frame
from lexent.errors import InputError
from lexent.indexing.field_kinds import FieldKinds
from lexent.types import Document

if TYPE_CHECKING:
    from lexent.corpus.sources import Source
    from lexent.indexing.reader import IndexReader


def documents_of(source: Source) -> Iterable[Document]:
    """The documents of a source: given as they are, or read; see `lexent.corpus.read`."""
    if isinstance(source, Corpus):
        return source
    if arguments.is_path(source) or is_frame(source) or not isinstance(source, Iterable):
        return read(source)
    if isinstance(source, Sequence):
        return read(source) if source and not isinstance(source[0], Document) else _only_documents(source)
    if not isinstance(source, Iterator):  # mappings and data frames give names of columns: `read` refuses them
        return read(source)
    first = list(islice(source, 1))
    if not first:
        return ()
    whole = chain(first, source)
    return _only_documents(whole) if isinstance(first[0], Document) else read(whole)


def count_of(documents: Iterable[Document]) -> int | None:
    """How many documents there are, where that is known before they are read."""
    if isinstance(documents, Corpus):
        return documents.count()
    return len(documents) if isinstance(documents, Sized) else None


def _only_documents(items: Iterable[Any]) -> Iterator[Document]:
    for number, item in enumerate(items, 1):
        yield arguments.instance(f"item {number}", item, Document, allowed="a lexent.Document, as the first item is")


def fitting(documents: Iterable[Document], kinds: FieldKinds | None = None) -> Iterable[Document]:
    """The documents whose fields fit those of an index, and of each other, where others are left out; else all.

    kinds: those of the fields of the index so far.
    """
    if isinstance(documents, Corpus) and documents.on_error == "skip":
        return _fitting(documents, kinds or FieldKinds())
    return documents


def _fitting(corpus: Corpus, kinds: FieldKinds) -> Iterator[Document]:
    for document in corpus:
        try:
            kinds.fitted([document])
        except InputError as error:
            _leave_out(corpus, document.id, "kind of a field", str(error))
        else:
            yield document


def not_in_index(documents: list[Document], there: Iterable[str], source: Iterable[Document]) -> list[Document]:
    """The documents whose id is not `there`. Others are an InputError, or left out where their source leaves them."""
    for id in there:
        message = (
            f'the index already has a document "{id}"; replace it with --upsert (index.upsert; over HTTP '
            '"upsert": true), or give it another id'
        )
        if not isinstance(source, Corpus) or source.on_error == "stop":
            raise InputError(message)
        _leave_out(source, id, "id in the index", message)
    known = set(there)
    return [document for document in documents if document.id not in known]


class Numbered:
    """Gives rows without ids the next numbers that no document of an index has: each source counts its rows from 0."""

    def __init__(self, documents: Iterable[Document], reader: IndexReader, *, upsert: bool) -> None:
        columns = documents.columns if isinstance(documents, Corpus) else None
        self._wanted = columns is not None and columns.id is None
        self._reader, self._next = reader, len(reader)
        if self._wanted and upsert:
            raise InputError(
                "upsert was given rows without ids, so which documents they replace is not known; give each row an id "
                "(--id COLUMN), or add them: lexent add"
            )

    def on(self, documents: Iterable[Document]) -> Iterable[Document]:
        """The documents with ids that are free in the index."""
        return map(self._numbered, documents) if self._wanted else documents

    def _numbered(self, document: Document) -> Document:
        while self._reader.positions([str(self._next)]):
            self._next += 1
        self._next += 1
        return replace(document, id=str(self._next - 1))


def _leave_out(corpus: Corpus, id: str, reason: str, message: str) -> None:
    corpus.problems.append(Problem(f'{corpus.name}, document "{id}"', reason, message))
