"""The doc strings of a dataclass's fields, as help for the options that set them.

They are read from the source, so that the help of a command does not import what the command needs.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_BUILT_IN = {"None", "True", "False", "bool", "int", "float", "str"}
_TOP_LEVEL = re.compile(r"\n(?=[^\s)])")


@dataclass(frozen=True, slots=True)
class Field:
    """What a class says of one of its fields."""

    help: str
    default: str
    """As it is written; empty where it has none."""
    annotation: str
    choices: tuple[object, ...] = ()
    """What a Literal allows."""


@cache
def fields_of(file: str, name: str) -> dict[str, Field]:
    """The fields of the class `name` in a file of the package, such as "recipes.py"."""
    found: dict[str, Field] = {}
    for node, help in _declared(file, name):
        default = "" if node.value is None else ast.unparse(node.value)
        annotation = ast.unparse(node.annotation)
        literal = _assigned(file, annotation)
        choices = ast.literal_eval(literal.removeprefix("Literal")) if literal.startswith("Literal[") else ()
        value = _assigned(file, default) or default
        found[node.target.id] = Field(help, value, annotation, tuple(choices))  # type: ignore[union-attr]
    return found


def _assigned(file: str, name: str) -> str:
    """What is assigned to a name, in the file or in one that it imports the name from; "" where nothing is found."""
    if not name.isidentifier() or name in _BUILT_IN:
        return ""
    source = _source(file)
    if found := re.search(rf"^{name}(?:: [^=\n]*)? = (Literal\[[^\]]*\]|[^\n]*)", source, re.MULTILINE):
        return found[1]
    origin = re.search(rf"^from lexent\.([\w.]+) import (?:\([^)]*|[^(\n]*)\b{name}\b", source, re.MULTILINE)
    return _assigned(f"{origin[1].replace('.', '/')}.py", name) if origin else ""


def docs_of(file: str, name: str) -> dict[str, str]:
    """The doc line of each field of a class."""
    return {node.target.id: help for node, help in _declared(file, name)}  # type: ignore[union-attr]


def _declared(file: str, name: str) -> list[tuple[ast.AnnAssign, str]]:
    """Fields and doc lines. Only the class itself is parsed: this runs whenever the command line starts."""
    source = _source(file)
    start = source.index(f"\nclass {name}") + 1
    end = _TOP_LEVEL.search(source, start)
    body = ast.parse(source[start : end.start() if end else None]).body[0].body  # type: ignore[attr-defined]
    following = [*body[1:], None]
    return [
        (node, _text(after)) for node, after in zip(body, following, strict=True) if isinstance(node, ast.AnnAssign)
    ]


@cache
def _source(file: str) -> str:
    return resources.files("lexent").joinpath(file).read_text(encoding="utf-8")


def _text(node: ast.stmt | None) -> str:
    """The string that stands below a field, without the stage it may begin with ("pool: how the codes ...")."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return ""
    text = " ".join(str(node.value.value).split())
    stage, colon, rest = text.partition(": ")
    text = rest if colon and stage.isidentifier() and stage.islower() else text
    return text[:1].upper() + text[1:]
