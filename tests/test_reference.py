"""The generated pages of the documentation site hold every command, option, request and public name."""

from __future__ import annotations

import html
import importlib
import re
from types import ModuleType
from typing import Any

import pytest
import typer

import lexent
from lexent.cli import app
from markdown import ROOT

SITE = ROOT / "docs" / "_site"


@pytest.fixture
def generator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of docs/_site, by name."""
    monkeypatch.syspath_prepend(str(SITE))
    return importlib.import_module(request.param)


@pytest.mark.parametrize("generator", ["cli_reference"], indirect=True)
def test_every_command_and_option_is_in_the_reference(generator: ModuleType) -> None:
    page = html.unescape(generator.page())
    sections = dict(re.findall(r"^#+ `(lexent[^`]*)`\n(.*?)(?=^#+ `|\Z)", page, re.MULTILINE | re.DOTALL))

    def check(node: Any, path: str) -> None:
        assert path in sections
        for parameter in node.params:
            for name in parameter.opts if parameter.param_type_name == "option" else ():
                assert name in sections[path], f"{path}: {name}"
            if parameter.param_type_name == "option" and type(parameter.default) in (int, float):
                assert (
                    re.search(rf"\| [^|]*default: {parameter.default}\b", sections[path]) or not parameter.show_default
                )
        for name, child in getattr(node, "commands", {}).items():
            check(child, f"{path} {name}")

    check(typer.main.get_command(app), "lexent")
    assert len(sections) > 25


@pytest.mark.parametrize("generator", ["http_reference"], indirect=True)
def test_every_request_and_field_is_in_the_reference(generator: ModuleType) -> None:
    page, schema = generator.page(), generator.document()
    for path, item in schema["paths"].items():
        for method in item:
            assert f"### `{method.upper()} {path}`\n" in page
    for name, body in schema["components"]["schemas"].items():
        section = page.split(f"### {name}\n")[1].split("\n### ")[0]
        for field in body.get("properties", ()):
            assert f"| `{field}`" in section, f"{name}: {field}"


@pytest.mark.parametrize("generator", ["python_reference"], indirect=True)
def test_every_public_name_is_in_the_reference(generator: ModuleType) -> None:
    headings = re.findall(r'heading: "lexent\.(\w+)"', generator.page())
    assert sorted(headings) == sorted(set(lexent.__all__) - {"__version__"})


# --- the files around the code -----------------------------------------------------------------------------------


def test_the_version_to_cite_is_that_of_the_package() -> None:
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    (cited,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited == version


def test_workflows_run_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    run = {
        target
        for workflow in (ROOT / ".github" / "workflows").glob("*.yml")
        for target in re.findall(r"run: make ([\w-]+)", workflow.read_text())
    }
    assert {"check", "test", "coverage", "docs", "smoke"} <= run
    assert run <= targets
