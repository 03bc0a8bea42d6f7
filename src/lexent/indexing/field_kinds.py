"""One kind for each metadata field of an index: number, text or boolean.

The first value of a field decides its kind, also for documents that are added later: a filter compares values of one
kind, and a value of another would drop out of every range. A later value of another kind is converted where that is
exact, and refused where it is not:

- a text that reads as a JSON number, such as "2001" or "-1.5", becomes a number; not "007" and not "n/a",
- "true" and "false" become booleans,
- a number or boolean becomes text: as it is spelled in a CSV or TSV file, else as JSON writes it,
- an empty text among numbers or booleans is no value, and neither is one that comes before any other value.

A date of a CSV or TSV file is written in the form of ISO 8601. Where the index has texts in that field that are no
dates, it keeps its spelling, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import orjson

from lexent import arguments
from lexent.corpus import field_types
from lexent.errors import InputError
from lexent.indexing.filters import FieldKind
from lexent.types import ConvertedCells, Document

_NONE: Any = object()
"""No conversion is exact."""


class FieldKinds:
    """The kinds of the fields of an index, while documents are added to it."""

    def __init__(
        self,
        known: Callable[[str], Iterable[FieldKind]] | None = None,
        has_other_text: Callable[[str], bool] | None = None,
    ) -> None:
        """known: the kinds that a field has in the index so far; several only where an older version mixed them.

        has_other_text: whether a field has texts there that are no dates.
        """
        self._known = known or (lambda name: ())
        self._has_other_text = has_other_text or (lambda name: False)
        self._kinds: dict[str, frozenset[FieldKind]] = {}
        self._converted: Counter[tuple[str, FieldKind]] = Counter()

    def fitted(self, documents: Iterable[Document]) -> list[Document]:
        """The documents, with values converted to the kinds of their fields."""
        return [self._fitted(document) if document.metadata else document for document in documents]

    def notes(self) -> list[str]:
        """What was converted, in sentences."""
        return [
            f'the field "{name}" holds {_PLURAL[kind]}: {count:,} value{"s" if count > 1 else ""} of another kind '
            f"{'were' if count > 1 else 'was'} converted"
            for (name, kind), count in self._converted.items()
        ]

    def _fitted(self, document: Document) -> Document:
        metadata = self._mapping("", document.metadata, document)
        return document if metadata is document.metadata else replace(document, metadata=metadata)

    def _mapping(self, prefix: str, given: Mapping[str, Any], document: Document) -> Mapping[str, Any]:
        for name in given:
            if isinstance(name, str):
                arguments.unicode(f"document {document.id!a}: the name of a metadata field", name)
        found = {name: self._value(f"{prefix}{name}", value, document) for name, value in given.items()}
        return given if all(found[name] is value for name, value in given.items()) else found

    def _value(self, name: str, value: Any, document: Document) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        cells = document.metadata
        if isinstance(cells, ConvertedCells) and name in cells.spelling and self._kinds_of(name) == {"text"}:
            return self._spelled(name, value, cells.spelling[name])
        if value is None:
            return None
        if isinstance(value, Mapping):
            return self._mapping(f"{name}.", value, document)
        if isinstance(value, list | tuple):
            fitted = [self._value(name, one, document) for one in value]
            return value if all(new is old for new, old in zip(fitted, value, strict=True)) else fitted
        if isinstance(value, float) and not math.isfinite(value):
            return value  # kept as null: no value
        kind, kinds = _kind(value), self._kinds_of(name)
        if not kinds and isinstance(value, str) and not value.strip():
            return None  # an empty cell says nothing of its field's kind
        if not kinds:
            self._kinds[name] = frozenset({kind})
        if not kinds or kind in kinds:
            return value
        wanted = next(iter(kinds))
        found = _converted(value, wanted) if len(kinds) == 1 else value
        if found is _NONE:
            raise InputError(
                f'document "{document.id}": the field "{name}" holds {_PLURAL[wanted]} in this index, and here it is '
                f"{value!r:.60}; write {_SINGULAR[wanted]}, leave the field out, or give it another name"
            )
        self._converted[name, wanted] += 1
        return found

    def _spelled(self, name: str, value: Any, spelling: str) -> Any:
        """The value of a converted cell in a text field: as it stands in the file, unless it is a date among dates."""
        if value is None or isinstance(value, str):
            return spelling if self._has_other_text(name) else value
        self._converted[name, "text"] += 1
        return spelling

    def _kinds_of(self, name: str) -> frozenset[FieldKind]:
        found = self._kinds.get(name)
        if found is None:
            found = self._kinds[name] = frozenset(self._known(name))
        return found


_PLURAL: dict[FieldKind, str] = {"number": "numbers", "text": "text", "boolean": "booleans"}
_SINGULAR: dict[FieldKind, str] = {"number": "a number", "text": "a text", "boolean": "true or false"}


def _kind(value: Any) -> FieldKind:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "text"  # dates and the like are kept as text


def _converted(value: Any, wanted: FieldKind) -> Any:
    if wanted == "text":
        try:
            return orjson.dumps(value).decode()
        except TypeError:  # an integer of more than 64 bits
            return _NONE
    if not isinstance(value, str):
        return _NONE
    text = value.strip()
    if not text:
        return None
    found = field_types.converted(text, wanted)
    return _NONE if found is None else found
