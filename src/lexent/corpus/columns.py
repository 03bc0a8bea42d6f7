"""Which column holds the text, the title and the id: guessed by name and content, or named by the caller.

Names are compared without case, blanks, dashes and underscores: "Doc ID", "doc-id" and "DocId" are one name. A column
within another is named with a dot, as filters name it: "doc.body" is the key "body" of the column "doc".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexent.errors import InputError, NotFoundError

Rows = Sequence[Mapping[str, Any]]

# In order of preference.
TEXT_NAMES = ("text", "body", "content", "contents", "abstract", "passage", "document", "article", "paragraph",
              "summary", "description", "docstring", "sentence")  # fmt: skip
TITLE_NAMES = ("title", "name", "heading", "headline", "subject")
ID_NAMES = ("_id", "id", "docid", "docno", "pid", "documentid", "passageid", "paperid", "uid", "uuid")
_BETWEEN_WORDS = re.compile(r"[\s_-]+")
_ENDS_AS_ID = re.compile(r"(?:(?:^|[\s_.-])[iI]|[a-z]I)[dD]\s*$")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that make a Document; all others become its metadata."""

    text: str
    title: str | None = None
    id: str | None = None
    """None: rows are numbered, from 0."""

    @property
    def description(self) -> str:
        """Which columns were chosen, in one line."""
        id = "row number, from 0" if self.id is None else f'"{self.id}"'
        title = "none" if self.title is None else f'"{self.title}"'
        return f'id = {id}, title = {title}, text = "{self.text}"  (override: --id, --title, --text)'


def choose(rows: Rows, *, name: str, text: str | None, title: str | None, id: str | None) -> Columns:
    """The columns to use, from the first rows of the source called `name`.

    A given name must exist; None is guessed; "" as title or id means that there is none.
    """
    names = list(dict.fromkeys(column for row in rows for column in row))
    for option, given in (("text", text), ("title", title), ("id", id)):
        if given is not None and (given or option == "text") and not any(_has(row, given) for row in rows):
            raise NotFoundError(
                f'{name} has no column "{given}"; columns: {listing(rows)}; choose one: --{option} COLUMN'
            )
    taken = {given for given in (text, title, id) if given}
    chosen_id = id if id is not None else _named(ID_NAMES, names, taken)
    chosen_title = title if title is not None else _named(TITLE_NAMES, names, taken)
    others = [column for column in names if column not in (chosen_id, chosen_title)]
    chosen_text = text or _named(TEXT_NAMES, [column for column in others if _text_length(rows, column)], set())
    if chosen_text is None:
        chosen_text = max(others, key=lambda column: _text_length(rows, column), default=None)
    if (chosen_text is None or not _text_length(rows, chosen_text)) and title is None and chosen_title is not None:
        chosen_text, chosen_title = chosen_title, None  # titles are all the text there is
    if chosen_text is None or (text is None and not _text_length(rows, chosen_text)):
        empty = _named(TEXT_NAMES, names, taken)
        if empty is not None and all(_is_empty(value_at(row, empty)) for row in rows):
            found = title if title is not None else _named(TITLE_NAMES, names, taken)
            return Columns(text=empty, title=found or None, id=chosen_id or None)
        raise InputError(f"{name} has no text column; columns: {listing(rows)}; name it: --text COLUMN")
    return Columns(text=chosen_text, title=chosen_title or None, id=chosen_id or None)


def listing(rows: Rows) -> str:
    """Every column with its first value, shortened."""
    samples: dict[str, Any] = {}
    for row in rows:
        for column, value in _leaves(row):
            if _is_empty(samples.get(column)):
                samples[column] = value
    return ", ".join(f"{column} ({_sample(value)})" for column, value in samples.items()) or "none"


def value_at(row: Mapping[str, Any], column: str) -> Any:
    """The value of a column, or of a key within one ("doc.body"); None where there is none."""
    if column in row:
        return row[column]
    outer, dot, inner = column.partition(".")
    within = row.get(outer) if dot else None
    return value_at(within, inner) if isinstance(within, Mapping) else None


def without(row: Mapping[str, Any], columns: Sequence[str | None]) -> dict[str, Any]:
    """The row without some of its columns, or keys within them. A mapping of which nothing is left goes, too."""
    found = dict(row)
    for column in columns:
        if column is None:
            continue
        outer, dot, inner = column.partition(".")
        if column in found:
            del found[column]
        elif dot and isinstance(found.get(outer), Mapping):
            rest = without(found[outer], [inner])
            if rest or not found[outer]:
                found[outer] = rest
            else:
                del found[outer]
    return found


def is_id_name(column: str) -> bool:
    """Whether a column is named as one of ids, such as "id", "Doc ID" or "author_id": its values are text."""
    return _ENDS_AS_ID.search(column) is not None or _plain(column) in {_plain(name) for name in ID_NAMES}


def _plain(name: str) -> str:
    return _BETWEEN_WORDS.sub("", name).lower()


def _named(wanted: Sequence[str], names: Sequence[str], taken: set[str]) -> str | None:
    """The column of the first wanted name that there is; one that is spelled so comes before one that reads so."""
    free = [name for name in reversed(names) if name not in taken]
    spelled, read = {name.lower(): name for name in free}, {_plain(name): name for name in free}
    found = (spelled.get(name) or read.get(_plain(name)) for name in wanted)
    return next((name for name in found if name is not None), None)


def _has(row: Mapping[str, Any], column: str) -> bool:
    if column in row:
        return True
    outer, dot, inner = column.partition(".")
    within = row.get(outer) if dot else None
    return isinstance(within, Mapping) and _has(within, inner)


def _leaves(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _text_length(rows: Rows, column: str) -> float:
    """The mean length of the column's strings in the sample; 0 for a column of other things."""
    total = 0
    for row in rows:
        value = value_at(row, column)
        parts = value if isinstance(value, list) else [value]
        strings = [part.strip() for part in parts if isinstance(part, str)]
        total += sum(map(len, strings)) if len(strings) == len(parts) else 0
    return total / max(1, len(rows))


def _sample(value: Any, width: int = 24) -> str:
    shown = f'"{" ".join(value.split())}"' if isinstance(value, str) else str(value)
    return shown if len(shown) <= width else shown[: width - 2] + ('…"' if isinstance(value, str) else "…")
