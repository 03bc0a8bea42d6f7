"""The pages of recipes: the settings that they give as ours are ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lexent.adapters import AdapterConfig, TrainSettings
from lexent.recipes import RECIPES

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = {
    ("recipe-latent-terms.md", 2): "latent-terms",
    ("recipe-hybrid.md", 1): "latent-terms",
    ("recipe-hybrid.md", 2): "hybrid",
    ("recipe-clsr.md", 2): "clsr",
    ("recipe-clsr.md", 4): "clsr-efficient",
    ("recipe-ssr.md", 2): "ssr",
    ("recipe-uhd.md", 2): "uhd",
}
"""The column of each page that has a recipe's values."""


def rows(page: str) -> list[list[str]]:
    found = re.findall(r"^\| `(\w+)` \|(.*)\|$", (DOCS / page).read_text(), re.MULTILINE)
    return [[name, *(cell.strip() for cell in cells.split("|"))] for name, cells in found]


def shown(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(("page", "column"), COLUMNS)
def test_settings_of_a_recipe_are_those_of_the_code(page: str, column: int) -> None:
    recipe = RECIPES[COLUMNS[page, column]]
    assert {row[0]: row[column] for row in rows(page)} == {row[0]: shown(recipe.setting(row[0])) for row in rows(page)}
    assert len(rows(page)) > 3


def test_settings_of_adapters_are_those_of_the_code() -> None:
    form, training = AdapterConfig(dim=8, width=8), TrainSettings()
    for name, _, ours, *_ in rows("recipe-imrnns.md"):
        value = getattr(form, name, None) if hasattr(form, name) else getattr(training, name)
        assert ours == {True: "yes", False: "no"}.get(value if isinstance(value, bool) else "", shown(value)), name
