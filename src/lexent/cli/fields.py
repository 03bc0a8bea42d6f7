"""The doc strings of a dataclass's fields, as help for the options that set them.

They are read from the source, so that the help of a command does not import what the command needs.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Field:
    """What a class says of one of its fields."""

    help: str
    default: str
    """As it is written; empty where it has none."""
    annotation: str


@cache
def fields_of(file: str, name: str) -> dict[str, Field]:
    """The fields of the class `name` in a file of the package, such as "recipes.py"."""
    tree = ast.parse(resources.files("lexent").joinpath(file).read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    choices = {
        node.targets[0].id: [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }  # of type aliases such as Mode = Literal["a", "b"]
    found: dict[str, Field] = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            default = "" if node.value is None else ast.unparse(node.value)
            allowed = ", ".join(str(choice) for choice in choices.get(ast.unparse(node.annotation), []))
            help = _text(after) + (f" One of: {allowed}." if allowed else "")
            found[node.target.id] = Field(help, default, ast.unparse(node.annotation))
    return found


def _text(node: ast.stmt | None) -> str:
    """The string that stands below a field, without the stage it may begin with ("pool: how the codes ...")."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return ""
    text = " ".join(str(node.value.value).split())
    stage, colon, rest = text.partition(": ")
    text = rest if colon and stage.isidentifier() and stage.islower() else text
    return text[:1].upper() + text[1:]
