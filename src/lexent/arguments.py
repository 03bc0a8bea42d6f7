"""Checks of arguments: the type and the range of what a caller gives. A wrong one is an InputError.

Every message names the argument, shows what was given and says what is allowed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar, cast

from lexent.errors import InputError

T = TypeVar("T")
LONGEST_SHOWN = 60
"""Characters of a value that a message shows."""
MOST_LEVELS = 100
"""So many levels of lists and mappings within each other metadata may have: deeper ones end in a RecursionError."""
_LEAVES = frozenset((str, int, float, bool, type(None)))
HIGHEST_WEIGHT = 1000
"""The most that a weight or factor of a query may be: of a concept, a fused ranking, feedback, k1 and k2."""
HIGHEST_COUNT = 1_000_000
"""The most that a count in a recipe may be: of latents, or of tokens of a passage."""


def refused(name: str, given: object, allowed: str, remedy: str = "") -> InputError:
    """The error for an argument that is not allowed."""
    return InputError(f"{name} is {shown(given)}; allowed: {allowed}{f'; {remedy}' if remedy else ''}")


def shown(given: object) -> str:
    """A value as messages show it: its type and a piece of it."""
    if given is None or isinstance(given, bool | Real):
        return f"{given}"
    try:
        piece = repr(given)
    except Exception:  # a caller's own class
        piece = "..."
    piece = piece if len(piece) <= LONGEST_SHOWN else f"{piece[: LONGEST_SHOWN - 3]}..."
    return f'"{given}"' if isinstance(given, str) and len(given) < LONGEST_SHOWN else f"{type(given).__name__} {piece}"


def text(name: str, given: object, *, remedy: str = "") -> str:
    """The value, which must be a string."""
    if not isinstance(given, str):
        raise refused(name, given, "a string", remedy)
    return given


def unicode(where: str, given: str) -> str:
    """A text that UTF-8 can hold: one without half a surrogate pair. where: what the message begins with."""
    if given.isascii():
        return given
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: character {error.start + 1} is half a surrogate pair ({given[error.start]!a}), which UTF-8 "
            f'cannot hold; allowed: valid Unicode; mend it: text.encode("utf-8", "replace").decode()'
        ) from error
    return given


def text_or_none(name: str, given: object) -> str | None:
    """The value, which must be a string or None."""
    return None if given is None else text(name, given)


def texts(name: str, given: object, *, remedy: str = "") -> list[str]:
    """A list of strings. A single string is refused: read as a list it would be one of characters."""
    if isinstance(given, str):
        raise refused(name, given, "a list of strings", remedy or f"write [{shown(given)}]")
    return [text(f"{name}[{place}]", one) for place, one in enumerate(items(name, given, "a list of strings", remedy))]


def names(name: str, given: object, *, allowed: str = "a string, or a list of strings") -> list[str]:
    """A list of strings; a single string is a list of one."""
    if isinstance(given, str):
        return [given]
    return [
        text(f"{name}[{place}]", one, remedy=f'write ["{one}"]' if isinstance(one, Integral) else "")
        for place, one in enumerate(items(name, given, allowed))
    ]


def one_or_several(name: str, given: object, kinds: tuple[type, ...], *, allowed: str) -> list[Any]:
    """What a list holds; a single value of one of the kinds is a list of one."""
    return [given] if isinstance(given, kinds) else items(name, given, allowed)


def items(name: str, given: object, allowed: str, remedy: str = "") -> list[Any]:
    """What a list, a set or an iterator holds. Bytes and mappings are refused."""
    if isinstance(given, bytes | bytearray | Mapping) or not isinstance(given, Iterable):
        raise refused(name, given, allowed, remedy)
    return list(given)


def whole(name: str, given: object, *, least: int, most: int | None = None, remedy: str = "") -> int:
    """An integer within its range; of NumPy, too. True is none."""
    good = isinstance(given, Integral) and not isinstance(given, bool)
    if not good or cast(int, given) < least or (most is not None and cast(int, given) > most):
        allowed = f"{least} or more" if most is None else f"from {least} to {most:,}"
        raise refused(name, given, allowed if good else f"an integer, {allowed}", remedy)
    return int(cast(int, given))


def whole_or_none(name: str, given: object, *, least: int) -> int | None:
    """The value, which must be an integer of at least `least`, or None."""
    return None if given is None else whole(name, given, least=least)


def number(name: str, given: object, *, allowed: str = "a finite number") -> float:
    """The value, which must be a finite number."""
    if not is_number(given):
        raise refused(name, given, allowed)
    return float(cast(float, given))


def seconds(name: str, given: object) -> float:
    """A time to wait: a finite number of 0 or more."""
    found = number(name, given, allowed="a number of seconds, 0 or more")
    if found < 0:
        raise refused(name, given, "a number of seconds, 0 or more")
    return found


def is_number(given: object) -> bool:
    """Whether it is a finite number; True is none."""
    if not isinstance(given, Real) or isinstance(given, bool):
        return False
    try:
        return math.isfinite(given)
    except OverflowError:  # an integer that no float holds
        return False


def is_too_deep(given: object, levels: int = MOST_LEVELS) -> bool:
    """Whether lists and mappings stand within each other in more levels than these."""
    if type(given) in _LEAVES:
        return False
    inner = given.values() if isinstance(given, Mapping) else given if isinstance(given, list | tuple) else None
    if inner is None:
        return False
    return levels == 0 or any(is_too_deep(one, levels - 1) for one in inner)


def flag(name: str, given: object) -> bool:
    """The value, which must be True or False."""
    if given is not True and given is not False:
        raise refused(name, given, "True or False")
    return given


def path(name: str, given: object, *, allowed: str = "a path: a string or a pathlib.Path") -> Path:
    """The value, which must be a path that is not empty."""
    if not is_path(given) or not str(given):
        raise refused(name, given, allowed)
    found = Path(cast(str, given))
    if "\0" in str(found):
        raise refused(name, given, "a path without a null character")
    try:
        os.fsencode(found)
    except UnicodeEncodeError:
        raise refused(name, ascii(str(found)), "a path that is valid Unicode") from None
    return found


def is_path(given: object) -> bool:
    """Whether the value is a string or a path."""
    return isinstance(given, str) or (isinstance(given, os.PathLike) and isinstance(os.fspath(given), str))


def function(name: str, given: T | None) -> T | None:
    """The value, which must be callable or None."""
    if given is not None and not callable(given):
        raise refused(name, given, "a function, or None")
    return given


def progress(given: T | bool | None) -> T | bool | None:
    """Who hears of progress: a function, True for a bar, or nobody."""
    if given is not None and not isinstance(given, bool) and not callable(given):
        raise refused("progress", given, "a function of the number of documents done, True for a bar, or None")
    return given


def mapping(name: str, given: object, *, allowed: str) -> Mapping[Any, Any]:
    """The value, which must be a mapping."""
    if not isinstance(given, Mapping):
        raise refused(name, given, allowed)
    return given


def choice(name: str, given: object, allowed: Sequence[str]) -> str:
    """The value, which must be one of the allowed strings."""
    if not isinstance(given, str) or given not in allowed:
        raise refused(name, given, ", ".join(allowed))
    return given


def instance(name: str, given: object, kind: type[T], *, allowed: str) -> T:
    """The value, which must be of that class."""
    if not isinstance(given, kind):
        raise refused(name, given, allowed)
    return given


# --- the fields of settings --------------------------------------------------------------------------------------

_TYPES: dict[str, tuple[Callable[[object], bool], str]] = {
    "int": (lambda given: isinstance(given, Integral) and not isinstance(given, bool), "an integer"),
    "float": (lambda given: isinstance(given, Real) and not isinstance(given, bool), "a number"),
    "bool": (lambda given: isinstance(given, bool), "True or False"),
    "str": (lambda given: isinstance(given, str), "a string"),
    "tuple[float, ...]": (lambda given: isinstance(given, tuple) and all(map(is_number, given)), "a tuple of numbers"),
    "tuple[int, ...]": (
        lambda given: isinstance(given, tuple) and all(_TYPES["int"][0](one) for one in given),
        "a tuple of integers",
    ),
}


def fields_of(settings: Any, *, of: str = "") -> None:
    """Checks the types of a dataclass's fields, as they are annotated; others than numbers and texts it leaves alone.

    Numbers of NumPy become Python's, so that the settings can be written as JSON.

    of: what the settings are of, for the message.
    """
    for field in fields(settings):
        kind, _, optional = str(field.type).partition(" | ")
        if kind not in _TYPES or optional not in ("", "None"):
            continue
        fits, allowed = _TYPES[kind]
        given = getattr(settings, field.name)
        if not fits(given) and not (given is None and optional):
            name = f"{field.name} of {of}" if of else field.name
            raise refused(name, given, f"{allowed}{', or None' if optional else ''}")
        plain = {"int": int, "float": float}.get(kind)
        if plain and isinstance(given, Real) and not isinstance(given, int | float):
            object.__setattr__(settings, field.name, plain(given))
