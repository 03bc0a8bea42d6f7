"""Which column holds the text, the title and the id: guessed by name and content, or named by the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexent.errors import InputError, NotFoundError

Rows = Sequence[Mapping[str, Any]]

# In order of preference; compared without case.
TEXT_NAMES = ("text", "body", "content", "contents", "abstract", "passage", "document", "article", "paragraph",
              "summary", "description", "docstring", "sentence")  # fmt: skip
TITLE_NAMES = ("title", "name", "heading", "headline", "subject")
ID_NAMES = ("_id", "id", "docid", "doc_id", "docno", "pid", "document_id", "passage_id", "paper_id", "uid", "uuid")


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
        if given not in names and (given is not None and (given or option == "text")):
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
        if empty is not None and all(_is_empty(row.get(empty)) for row in rows):
            found = title if title is not None else _named(TITLE_NAMES, names, taken)
            return Columns(text=empty, title=found or None, id=chosen_id or None)
        raise InputError(f"{name} has no text column; columns: {listing(rows)}; name it: --text COLUMN")
    return Columns(text=chosen_text, title=chosen_title or None, id=chosen_id or None)


def listing(rows: Rows) -> str:
    """Every column with its first value, shortened."""
    samples: dict[str, Any] = {}
    for row in rows:
        for column, value in row.items():
            if samples.get(column) in (None, ""):
                samples[column] = value
    return ", ".join(f"{column} ({_sample(value)})" for column, value in samples.items()) or "none"


def _named(wanted: Sequence[str], names: Sequence[str], taken: set[str]) -> str | None:
    known = {name.lower(): name for name in reversed(names) if name not in taken}
    return next((known[name] for name in wanted if name in known), None)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _text_length(rows: Rows, column: str) -> float:
    """The mean length of the column's strings in the sample; 0 for a column of other things."""
    total = 0
    for row in rows:
        value = row.get(column)
        parts = value if isinstance(value, list) else [value]
        strings = [part.strip() for part in parts if isinstance(part, str)]
        total += sum(map(len, strings)) if len(strings) == len(parts) else 0
    return total / max(1, len(rows))


def _sample(value: Any, width: int = 24) -> str:
    shown = f'"{" ".join(value.split())}"' if isinstance(value, str) else str(value)
    return shown if len(shown) <= width else shown[: width - 2] + ('…"' if isinstance(value, str) else "…")
