"""Recipes as JSON files: what `lexent tune --out` writes, and what `--recipe FILE` reads."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from lexent.artifact import disk_errors, write_json
from lexent.errors import InputError, NotFoundError
from lexent.recipes import BM25, RECIPES, Recipe
from lexent.types import Level


def write(recipe: Recipe, path: str | Path) -> Path:
    """Beside, then renamed. The recipe takes the file's name, so that both can be compared in one evaluation."""
    place = Path(path)
    if place.suffix != ".json":
        raise InputError(f'a recipe is written to a .json file; given: "{place}"; write for example {place.stem}.json')
    with disk_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        write_json(beside, replace(recipe, name=place.stem).to_dict())
        os.replace(beside, place)
    return place


def read(path: str | Path) -> Recipe:
    """A recipe from its file; whatever is not a setting, or not a value that it may have, is refused by name."""
    place = Path(path)
    if not place.is_file():
        known = ", ".join(RECIPES)
        raise NotFoundError(f'no recipe file "{place}"; write one: lexent tune COLLECTION --out FILE; recipes: {known}')
    try:
        values = json.loads(place.read_bytes())
    except ValueError as error:
        raise InputError(f"{place} is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise InputError(f'{place} holds no recipe; it reads {{"name": "mine", "level": "tokens", "k": 16, ...}}')
    weighting = values.pop("weighting", {})
    if not isinstance(weighting, dict):
        raise InputError(f'{place}: weighting is {weighting!r}; it reads {{"k1": 1.0, "b": 0.4, ...}}')
    values = {"name": place.stem, **_checked(values, Recipe, place)}
    values["buckets"] = tuple(values.get("buckets", ()))
    try:
        return Recipe(**values, weighting=BM25(**_checked(weighting, BM25, place)))
    except (InputError, TypeError) as error:
        raise InputError(f"{place}: {error}") from error


def _checked(values: dict[str, Any], kind: type[Recipe] | type[BM25], place: Path) -> dict[str, Any]:
    """The values, when each is one that the class has and of its type."""
    types = {field.name: str(field.type) for field in fields(kind)}
    for name, value in values.items():
        if name not in types:
            near = get_close_matches(name, types, n=1)
            hint = f'did you mean "{near[0]}"? ' if near else ""
            raise InputError(f'{place}: no setting "{name}"; {hint}settings: {", ".join(types)}')
        if not _fits(value, types[name]):
            raise InputError(f"{place}: {name} is {value!r}; allowed: {_ALLOWED.get(types[name], 'a text')}")
    return values


_ALLOWED = {
    "Level": ", ".join(get_args(Level)),
    "bool": "true, false",
    "float": "a number",
    "int": "a whole number",
    "float | None": "a number, or null",
    "int | None": "a whole number, or null",
    "tuple[float, ...]": "numbers in brackets",
}


def _fits(value: object, annotation: str) -> bool:
    """Whether a JSON value is of the type; the choices of formulas and the like the recipe checks itself."""
    if value is None:
        return "None" in annotation
    if annotation.startswith(("float", "int")):
        return isinstance(value, int if annotation.startswith("int") else int | float) and not isinstance(value, bool)
    if annotation == "bool":
        return isinstance(value, bool)
    if annotation.startswith("tuple"):
        return isinstance(value, list) and all(_fits(each, "float") for each in value)
    return isinstance(value, str) and (annotation != "Level" or value in get_args(Level))
