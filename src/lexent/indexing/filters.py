"""Filters over metadata: {"year": {"gte": 2019}, "lang": "en"} parsed, checked and put in one canonical form.

A filter becomes a tree whose leaves are spans of stored values; `field_index` looks those up. Here is no SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from lexent.errors import InputError

OPERATORS = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "exists")
JOINS = ("and", "or", "not")
MAX_NESTING = 32
"""How deep "and", "or" and "not" may stand within each other."""

EXAMPLE = '{"year": {"gte": 2019}, "lang": "en"}'

Stored = int | float | str | bytes
"""What stands in the index for a value. SQLite orders these as: numbers, text, bytes."""

FieldKind = Literal["number", "text", "boolean"]

LAST_CHARACTER = "\U0010ffff"
"""Follows every character of a date."""
YEARS = range(1000, 10_000)
"""Numbers that a field of dates is compared with as years."""
INT64_END = 2**63
"""Numbers from here on are no integers of SQLite; they are stored as bytes, exact and in order."""

_FALSE, _TRUE, _HUGE = b"\x00", b"\x01", b"\x02"
_BOUNDS = {"gt": (0, True), "gte": (0, False), "lt": (1, True), "lte": (1, False)}  # low or high, and whether open


def stored(value: bool | int | float | str) -> Stored:
    """Equal values and no others give equal stored ones, in order within a kind. 1 equals 1.0, but not True."""
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, str) or value < INT64_END:
        return value
    whole = int(value)  # exact: a float this large has no fraction
    size = (whole.bit_length() + 7) // 8
    return _HUGE + bytes([size]) + whole.to_bytes(size, "big")


def unstored(value: Stored) -> bool | int | float | str:
    """The value that is stored so; an integer of INT64_END or more as a float: JSON has no other."""
    if not isinstance(value, bytes):
        return value
    return value == _TRUE if value in (_FALSE, _TRUE) else float(int.from_bytes(value[2:], "big"))


@dataclass(frozen=True, slots=True)
class Span:
    """The stored values from low to high; None is no bound, an open end does not belong."""

    low: Stored | None = None
    high: Stored | None = None
    low_open: bool = False
    high_open: bool = False


KINDS: dict[FieldKind, tuple[Span, ...]] = {
    "number": (Span(high="", high_open=True), Span(low=_HUGE)),
    "text": (Span(low="", high=b"", high_open=True),),
    "boolean": (Span(low=_FALSE, high=_TRUE),),
}
"""Where the values of each kind lie."""


@dataclass(frozen=True, slots=True)
class Match:
    """Documents with a value of that field in any of the spans."""

    field: str
    spans: frozenset[Span]


@dataclass(frozen=True, slots=True)
class Join:
    """All of the parts hold, or at least one of them."""

    all: bool
    parts: frozenset[Node]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Node


Node = Match | Join | Not


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents count, by their metadata. Equal filters, however they were written, are equal and hash alike."""

    root: Node

    @staticmethod
    def of(given: Mapping[str, Any] | Filter) -> Filter:
        """Reads a filter; several keys must all hold, {} holds for every document.

        `{"lang": "en"}` is a value, `{"lang": ["en", "de"]}` any of several, `{"year": {"gte": 2019, "lt": 2023}}` an
        operator each: eq ne in nin gt gte lt lte exists. "and" and "or" take a list of filters, "not" takes one.
        A field with a list holds when one element does, the same one for all bounds of one range. ne, nin and not hold
        wherever the opposite does not, so also without the field. A nested field is "author.name".
        """
        return given if isinstance(given, Filter) else Filter(_joined(given, depth=0))

    @property
    def names(self) -> frozenset[str]:
        """The fields it asks for."""
        return frozenset(match.field for match in _matches(self.root))

    @property
    def kinds(self) -> dict[str, frozenset[FieldKind]]:
        """The kinds of value it compares each field with; none where it only asks whether there is one."""
        found: dict[str, set[FieldKind]] = {}
        for match in _matches(self.root):
            kinds = found.setdefault(match.field, set())
            kinds.update(_kind(span) for span in match.spans if span != Span())
        return {name: frozenset(kinds) for name, kinds in found.items()}

    def texts(self, name: str) -> frozenset[str]:
        """The texts that it compares a field with."""
        spans = (span for match in _matches(self.root) if match.field == name for span in match.spans)
        return frozenset(end for span in spans for end in (span.low, span.high) if isinstance(end, str))

    def on_dates(self, name: str) -> Filter:
        """The filter for a field of dates: a year may be a number, and a date that stops early means all within it.

        A year holds its months, days and times: 2019-05 equals 2019-05-31, which is not greater than it.
        """
        return Filter(_on_dates(self.root, name))


def _on_dates(node: Node, name: str) -> Node:
    if isinstance(node, Join):
        return Join(node.all, frozenset(_on_dates(part, name) for part in node.parts))
    if isinstance(node, Not):
        return Not(_on_dates(node.part, name))
    if node.field != name:
        return node
    spans = frozenset(_of_years(span) for span in node.spans if span.low != _HUGE)
    return Match(name, frozenset(map(_of_dates, spans)))


def _of_years(span: Span) -> Span:
    """A span of years that are numbers, as text; others as they are."""
    ends = [end for end in (span.low, span.high) if isinstance(end, int | float)]
    if not ends or any(end not in YEARS for end in ends):
        return span
    low, high = (str(int(end)) if isinstance(end, int | float) else end for end in (span.low, span.high))
    return Span("" if low is None else low, b"" if high == "" else high, span.low_open, span.high_open)


def _of_dates(span: Span) -> Span:
    low, high = span.low, span.high
    if isinstance(low, str) and low and span.low_open:
        low += LAST_CHARACTER
    if isinstance(high, str) and high and not span.high_open:
        high += LAST_CHARACTER
    return Span(low, high, span.low_open, span.high_open)


def mask(node: Node, size: int, find: Callable[[Match], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """bool[size]: where a tree holds, from where each of its leaves does."""
    if isinstance(node, Match):
        return find(node)
    if isinstance(node, Not):
        return ~mask(node.part, size, find)
    found = np.full(size, node.all)
    for part in node.parts:
        (np.logical_and if node.all else np.logical_or)(found, mask(part, size, find), out=found)
    return found


def _matches(node: Node) -> Iterator[Match]:
    if isinstance(node, Match):
        yield node
    else:
        for part in (node.part,) if isinstance(node, Not) else node.parts:
            yield from _matches(part)


def _kind(span: Span) -> FieldKind:
    if isinstance(span.low, str):
        return "text"
    return "boolean" if span.low in (_FALSE, _TRUE) else "number"


# --- reading what was given --------------------------------------------------------------------------------------


def _joined(given: Any, *, depth: int) -> Node:
    if not isinstance(given, Mapping):
        raise InputError(f"a filter is a mapping of fields, such as {EXAMPLE}; this is none: {_short(given)}")
    if depth > MAX_NESTING:
        raise InputError(f'a filter nests "and", "or" and "not" at most {MAX_NESTING} deep; write this one flatter')
    return _combined([_part(name, value, depth=depth) for name, value in given.items()])


def _part(name: Any, value: Any, *, depth: int) -> Node:
    if not isinstance(name, str):
        raise InputError(f"a filter names fields as text, such as {EXAMPLE}; this is none: {_short(name)}")
    _check_unicode(name)
    if name == "not":
        part = _joined(value, depth=depth + 1)
        return part.part if isinstance(part, Not) else Not(part)
    if name in JOINS:
        if not _is_list(value) or not value:
            raise InputError(f'"{name}" joins a list of filters: {{"{name}": [{{"lang": "en"}}, {{"year": 2019}}]}}')
        return _combined([_joined(each, depth=depth + 1) for each in value], all=name == "and")
    if isinstance(value, Mapping):
        return _operators(name, value)
    return _any_of(name, "in", value) if _is_list(value) else _any_of(name, "eq", [value])


def _combined(parts: Sequence[Node], *, all: bool = True) -> Node:
    """The parts joined: like joins within each other become one, and a join of one part is that part."""
    like = [part.parts if isinstance(part, Join) and part.all == all else (part,) for part in parts]
    flat = frozenset(chain.from_iterable(like))
    return next(iter(flat)) if len(flat) == 1 else Join(all, flat)


def _operators(name: str, given: Mapping[Any, Any]) -> Node:
    if not given:
        raise InputError(f'the filter on "{name}" has no operator; give one of {_listed()}: {{"{name}": {{"gte": 1}}}}')
    parts: list[Node] = []
    for operator, value in given.items():
        if operator not in OPERATORS:
            near = get_close_matches(str(operator).lstrip("$").lower(), OPERATORS, n=1)
            meant = f'did you mean "{near[0]}"? ' if near else ""
            raise InputError(
                f'no operator "{operator}" in the filter on "{name}"; {meant}there are {_listed()}; '
                f'a field within a field is written "{name}.{operator}"'
            )
        if operator in ("in", "nin"):
            if not _is_list(value):
                raise InputError(f'"{operator}" on "{name}" takes a list of values; this is none: {_short(value)}')
            found = _any_of(name, operator, value)
        elif operator in ("eq", "ne"):
            found = _any_of(name, operator, [value])
        elif operator == "exists":
            if not isinstance(value, bool | np.bool_):
                raise InputError(f'"exists" on "{name}" takes true or false; given {_short(value)}')
            found = Match(name, frozenset({Span()}))
        else:
            continue
        holds = bool(value) if operator == "exists" else operator in ("eq", "in")
        parts.append(found if holds else Not(found))
    bounds = {operator: value for operator, value in given.items() if operator in _BOUNDS}
    if bounds:
        parts.append(Match(name, frozenset(_range(name, bounds))))
    return _combined(parts)


def _any_of(name: str, operator: str, values: Any) -> Match:
    found = (stored(_value(name, operator, value)) for value in values)
    return Match(name, frozenset(Span(low=value, high=value) for value in found))


def _range(name: str, bounds: Mapping[str, Any]) -> list[Span]:
    """The spans between the bounds; of two lower or two upper ones the narrower counts."""
    ends: list[tuple[Any, bool] | None] = [None, None]
    for operator, given in bounds.items():
        value = _value(name, operator, given)
        if isinstance(value, bool):
            raise InputError(f'"{operator}" on "{name}" takes a number or a text; given {_short(value)}')
        side, is_open = _BOUNDS[operator]
        other = ends[side] or ends[1 - side]
        if other is not None and isinstance(other[0], str) is not isinstance(value, str):
            raise InputError(
                f'the bounds on "{name}" are a number and a text ({_short(other[0])} and {_short(value)}); '
                "give two numbers or two texts"
            )
        best = ends[side]
        beyond = best is None or (value > best[0] if side == 0 else value < best[0])
        if best is None or beyond or (value == best[0] and is_open):
            ends[side] = (value, is_open)
    low, high = ends
    if isinstance((low or high or ("",))[0], str):
        return [_cut(KINDS["text"][0], low, high)]
    small, huge = KINDS["number"]
    spans = []
    if low is None or low[0] < INT64_END:
        spans.append(_cut(small, low, high if high and high[0] < INT64_END else None))
    if high is None or high[0] >= INT64_END:
        spans.append(_cut(huge, low if low and low[0] >= INT64_END else None, high))
    return spans


def _cut(span: Span, low: tuple[Any, bool] | None, high: tuple[Any, bool] | None) -> Span:
    return Span(
        low=span.low if low is None else stored(low[0]),
        high=span.high if high is None else stored(high[0]),
        low_open=span.low_open if low is None else low[1],
        high_open=span.high_open if high is None else high[1],
    )


def _value(name: str, operator: str, given: Any) -> bool | int | float | str:
    """The value as a document's metadata would hold it: dates become text, as they do there."""
    value = given.item() if isinstance(given, np.generic) else given
    if hasattr(value, "to_pydatetime"):  # a timestamp of pandas
        value = value.to_pydatetime()
    if value is None:
        without = f'{{"{name}": {{"exists": false}}}}'
        raise InputError(f'the filter on "{name}" has no value; to find documents without it: {without}')
    if type(value) not in (bool, int, float, str):
        try:
            value = None if isinstance(value, Mapping) or _is_list(value) else orjson.loads(orjson.dumps(value))
        except TypeError:
            value = None
    if not isinstance(value, bool | int | float | str):
        hint = "; filters are joined by the keys " + _listed(JOINS) if isinstance(given, Mapping) else ""
        raise InputError(
            f'"{operator}" on "{name}" takes a text, a number, true or false; given {_short(given)}'
            f"{', a list: for any of several use in' if _is_list(given) else hint}"
        )
    if isinstance(value, str):
        _check_unicode(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InputError(f'"{operator}" on "{name}" takes a finite number; given {value}')
    elif isinstance(value, int) and not -INT64_END <= value < 2 * INT64_END:
        raise InputError(
            f'"{operator}" on "{name}" takes a number of at most 64 bits; given {_short(value)}; '
            "a longer one is kept and compared as text, in quotes"
        )
    return value


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the filter holds text that is not valid Unicode ({_short(text)}, {error.reason})") from None


def _is_list(value: Any) -> bool:
    return isinstance(value, Set | np.ndarray) or (isinstance(value, Sequence) and not isinstance(value, str | bytes))


def _listed(words: Sequence[str] = OPERATORS) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1]


def _short(value: Any) -> str:
    try:
        shown = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list of thousands of levels
        return f"a value too large to show ({type(value).__name__})"
    return shown if len(shown) <= 80 else shown[:77] + "..."
