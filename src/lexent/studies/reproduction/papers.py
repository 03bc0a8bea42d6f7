"""What the papers report: tables that stand beside ours, read from papers.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources

from lexent.errors import NotFoundError
from lexent.studies.analyses.table import Table


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper: its recipes, what it measured on, and its tables by the section that they belong to."""

    name: str
    title: str
    source: str
    recipes: tuple[str, ...]
    setting: str
    """The encoder and the data of the paper's figures."""
    tables: dict[str, tuple[Table, ...]]


def _read() -> dict[str, Paper]:
    found = tomllib.loads(resources.files(__package__).joinpath("papers.toml").read_text(encoding="utf-8"))
    papers = {}
    for name, values in found.items():
        tables = {section: tuple(map(Table.from_json, several)) for section, several in values["tables"].items()}
        papers[name] = Paper(**{**values, "name": name, "recipes": tuple(values["recipes"]), "tables": tables})
    return papers


PAPERS: dict[str, Paper] = _read()


def paper_of(name: str) -> Paper:
    """The paper of that name."""
    if name not in PAPERS:
        raise NotFoundError(f'no paper "{name}"; papers: {", ".join(PAPERS)}')
    return PAPERS[name]
