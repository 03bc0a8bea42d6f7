"""Options are made from the settings that they set; commands stay short."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Annotated, Any

import click
import pytest
import typer
from typer.testing import CliRunner

import lexent.cli
from lexent.cli.app import app
from lexent.cli.option_groups import Settings, settings_group, with_option_groups

MOST_PARAMETERS = 12


def commands(group: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    found = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, (*path, name))
        else:
            found[" ".join((*path, name))] = command
    return found


COMMANDS = commands(typer.main.get_command(app))


def test_no_function_of_a_command_has_more_than_a_dozen_parameters() -> None:
    folder = Path(lexent.cli.__file__).parent
    long = {
        f"{path.name}:{node.name}": count
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and (count := len(node.args.args) + len(node.args.kwonlyargs)) > MOST_PARAMETERS
    }
    assert long == {}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text_and_a_flag_of_its_own(name: str) -> None:
    options = [one for one in COMMANDS[name].params if one.param_type_name == "option"]
    flags = [flag for one in options for flag in (*one.opts, *one.secondary_opts)]
    assert len(set(flags)) == len(flags)
    assert [one.name for one in options if not (one.help or "").strip(" .")] == []


def test_k_has_one_meaning() -> None:
    """-k is the number of hits wherever it stands, and no long option looks like it."""
    assert not [name for name, command in COMMANDS.items() for one in command.params if "--k" in one.opts]
    assert {"--hits" in one.opts for command in COMMANDS.values() for one in command.params if "-k" in one.opts} == {
        True
    }


def run(command: Any, *words: str) -> Any:
    own = typer.Typer(rich_markup_mode="markdown")
    own.command()(command)
    return CliRunner().invoke(own, words)


RECIPE = settings_group(
    "recipes.py",
    "Recipe",
    ("k", "query_cap", "adaptive_k", "power", "buckets"),
    flags={"k": "--sae-k"},
    convert={"buckets": lambda given: tuple(float(part) for part in given.split(","))},
)
MORE = settings_group("search/modes.py", "Fast", ("candidates",), ranges={"candidates": {"min": 1}})


def test_a_group_has_what_was_given_and_nothing_else() -> None:
    seen: list[Settings] = []

    @with_option_groups
    def command(*, settings: Annotated[Settings, RECIPE + MORE], last: int = 3) -> None:
        seen.append({**settings, "last": last})

    assert run(command).exit_code == 0
    words = [
        "--sae-k",
        "0",
        "--no-adaptive-k",
        "--power",
        "0.5",
        "--buckets",
        "1,0.5",
        "--candidates",
        "7",
        "--last",
        "4",
    ]
    assert run(command, *words).exit_code == 0
    given = {"k": 0, "adaptive_k": False, "power": 0.5, "buckets": (1.0, 0.5), "candidates": 7, "last": 4}
    assert seen == [{"last": 3}, given]
    assert run(command, "--sae-k", "many").exit_code == 2
    assert run(command, "--k", "4").exit_code == 2
    assert run(command, "--candidates", "0").exit_code == 2


def test_help_and_defaults_come_from_the_fields() -> None:
    @with_option_groups
    def command(
        *, limits: Annotated[Settings, settings_group("server/settings.py", "Limits", panel="L", prefix="--max-")]
    ) -> None:
        typer.echo(repr(limits))

    from lexent.server.settings import Limits

    shown = " ".join(click.unstyle(run(command, "--help").stdout).replace("│", " ").split())
    assert "--max-seconds" in shown
    assert "Time that a request other than a change may take." in shown
    assert f"[default: {Limits().seconds}]" in shown
    assert Limits(**ast.literal_eval(run(command, "--max-k", "7").stdout)) == Limits(k=7)


@pytest.mark.parametrize("name", COMMANDS)
def test_defaults_are_written_in_one_way(name: str) -> None:
    """At the end of a help text, as Typer writes those that it knows: [default: X]."""
    for option in COMMANDS[name].params:
        text = option.help or ""
        assert not re.search(r"[Dd]efault: ", text.removesuffix(text[text.find("[default: ") :]))
        assert not re.search(r"(where|if) not given", text)
        assert "[default: " not in text or text.endswith("]")


def test_the_options_of_the_server_and_of_the_exam_are_the_fields_of_their_settings() -> None:
    from lexent.server.settings import Settings as Server
    from lexent.studies.naming.exam import Plan

    help = {option.name: option.help for option in COMMANDS["serve"].params}
    assert help["host"].endswith(f"[default: {Server().host}]")
    assert help["port"].endswith(f"[default: {Server().port}]")
    help = {option.name: option.help for option in COMMANDS["concepts score"].params}
    for field in ("spread", "shown", "distractors", "top"):
        assert help[field].endswith(f"[default: {getattr(Plan(), field)}]")
    assert "One of: random, near." in help["distractors"]


def test_two_options_of_one_name_are_refused() -> None:
    with pytest.raises(AssertionError, match="two options of one name"):

        @with_option_groups
        def command(*, settings: Annotated[Settings, RECIPE], power: float = 1.0) -> None: ...
