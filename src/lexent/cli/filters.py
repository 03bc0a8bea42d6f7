"""--filter, for the verbs that search: 'year>=2019', lang=en, 'tag=a,b' or a JSON object, to one filter."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from lexent.cli.option_groups import option_group
from lexent.errors import InputError


@option_group
class Filtering:
    """Which documents a search may find."""

    filter: Annotated[list[str] | None, typer.Option(metavar="FIELD=VALUE")] = None
    """Only documents whose metadata fits: lang=en, 'lang!=en', 'year>=2019', 'tag=a,b' (any of), or JSON: '{"or":
    [{"lang": "en"}, {"year": {"lt": 2000}}]}'. Repeatable; all must hold. Numbers, true and false are taken as such;
    'zip="0123"' is text."""
    subset_idf: bool = False
    """With --filter: concepts count by how rare they are among the documents left."""


_COMPARISON = re.compile(r"(?P<name>[^=<>!]+?)\s*(?P<sign>>=|<=|!=|==|=|>|<)\s*(?P<values>.*)", re.DOTALL)
_VALUE = re.compile(r'\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<bare>[^",]*))\s*(?P<end>,|$)', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")
_OPERATORS = {"=": "eq", "==": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_LISTS = {"eq": "in", "ne": "nin"}
_RANGE = {"gt", "gte", "lt", "lte"}


def filter_of(given: list[str] | None) -> dict[str, Any] | None:
    """The filter that holds where all given ones do; None where none is given. Checked: mistakes show early."""
    if not given:
        return None
    from lexent.indexing.filters import Filter

    parts = [_part(text) for text in given]
    for text, part in zip(given, parts, strict=True):
        try:
            Filter.of(part)
        except InputError as error:
            raise InputError(f"--filter {_shown(text)}: {error}") from None
    merged: list[dict[str, Any]] = []
    for part in parts:
        if not any(_merge(into, part) for into in merged):
            merged.append(part)
    whole = merged[0] if len(merged) == 1 else {"and": merged}
    Filter.of(whole)
    return whole


def _part(text: str) -> dict[str, Any]:
    text = text.strip()
    if text.startswith("{"):
        return _json(text)
    found = _COMPARISON.fullmatch(text)
    if not found:
        raise InputError(
            f"--filter {_shown(text)} compares nothing; write FIELD=VALUE, with one of = != > >= < <=, "
            f"""or JSON, for example --filter '{{"{text or "lang"}": {{"exists": true}}}}'"""
        )
    name, operator = found["name"].strip(), _OPERATORS[found["sign"]]
    if name in ("and", "or", "not"):
        raise InputError(f'--filter {_shown(text)}: "{name}" joins filters and cannot be a field; give another field')
    values = _values(found["values"], text, name)
    if len(values) == 1:
        return {name: {operator: values[0]}}
    if operator not in _LISTS:
        raise InputError(f"--filter {_shown(text)}: {found['sign']} takes one value; several stand only after = and !=")
    return {name: {_LISTS[operator]: values}}


def _json(text: str) -> dict[str, Any]:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "too deep or too long"
        at = f", character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(
            f"--filter {_shown(text)}: broken JSON ({why}{at}); write it within single quotes, for example "
            """--filter '{"lang": "en"}'"""
        ) from None
    return dict(value)


def _values(given: str, text: str, name: str) -> list[bool | int | float | str]:
    values: list[bool | int | float | str] = []
    start, more = 0, True
    while more:
        found = _VALUE.match(given, start)
        if not found:
            raise InputError(
                f"--filter {_shown(text)}: the quotes do not fit together; quote a whole value, "
                f"""for example --filter '{name}="one, and two"'"""
            )
        bare = (found["bare"] or "").strip()
        if found["quoted"] is None and not bare:
            raise InputError(
                f"--filter {_shown(text)}: a value is missing; for empty text write --filter '{name}=\"\"'"
            )
        values.append(bare_value(bare) if found["quoted"] is None else _unquoted(found["quoted"]))
        start, more = found.end(), found["end"] == ","
    return values


def bare_value(text: str) -> bool | int | float | str:
    """A number, true or false where it looks like one, else the text. 007 has a leading zero, so it is text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    number = _NUMBER.fullmatch(text)
    if not number or len(text) > 400:  # so long is no number that an index could hold
        return text
    return float(text) if number["fraction"] or number["exponent"] else int(text)


def _unquoted(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted[1:-1], flags=re.DOTALL)


def _merge(into: dict[str, Any], part: dict[str, Any]) -> bool:
    """Puts a comparison with a field beside those of other fields, or a bound to the others of its field."""
    for name, value in part.items():
        both = name in into and isinstance(into[name], dict) and isinstance(value, dict)
        bounds = both and into[name].keys() | value.keys() <= _RANGE and not into[name].keys() & value.keys()
        if name in ("and", "or", "not") or (name in into and not bounds):
            return False
    for name, value in part.items():
        into[name] = {**into[name], **value} if name in into else value
    return True


def _shown(text: str) -> str:
    text = text.encode(errors="backslashreplace").decode()
    return f'"{text if len(text) <= 80 else text[:77] + "..."}"'
