"""What README and docs/ say can be typed exists: commands, options, Python, requests, targets, scripts and links."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import runpy
import shlex
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.core import TyperGroup

import markdown
from lexent import recipes
from lexent.cli import app
from lexent.cli.options import names_of
from markdown import ROOT, Command

PAGES = markdown.pages()


def every(program: str) -> list[Command]:
    return [command for page in PAGES for command in markdown.commands(page, program)]


# --- lexent ----------------------------------------------------------------------------------------------------------


class Parsed(Exception):
    """Carries what the parser made of a command, in place of running it."""

    def __init__(self, verb: str, given: dict[str, Any]) -> None:
        super().__init__(verb)
        self.verb, self.given = verb, given


@cache
def parser() -> Any:
    """The command line with verbs that only tell what they were given."""
    root = typer.main.get_command(app)

    def tell(verb: str) -> Callable[..., None]:
        def callback(**given: Any) -> None:
            raise Parsed(verb, given)

        return callback

    def walk(node: Any, path: str) -> None:
        for name, child in getattr(node, "commands", {}).items():
            walk(child, f"{path} {name}".strip())
        if not hasattr(node, "commands"):
            node.callback = tell(path)

    walk(root, "")
    return root


def parse(words: tuple[str, ...], *, whole: bool) -> Parsed | None:
    """What the parser makes of a command: its verb, options, their types and choices. None for a part of a command."""
    given = [word for word in words if word != "..."] if not whole else list(words)
    try:
        TyperGroup.main(parser(), given, "lexent", standalone_mode=False)
    except Parsed as found:
        return found
    except Exception as error:
        if not whole and type(error).__name__ == "MissingParameter":  # after all that is given was read
            return None
        raise AssertionError(f"{' '.join(words)}: {type(error).__name__}: {error}") from error
    raise AssertionError(f"{' '.join(words)}: no verb")


def check_values(verb: str, given: dict[str, Any]) -> None:
    """Values that the verb itself reads: names of recipes, analyses, sections, measures, methods, settings."""
    from lexent.adapters import AdapterConfig, TrainSettings
    from lexent.cli.filters import filter_of
    from lexent.cli.fuse import weights_of
    from lexent.evaluation import measures
    from lexent.evaluation.comparison import DIME, LEARNED
    from lexent.evaluation.evaluate import BASELINES
    from lexent.evaluation.tuning import GRID
    from lexent.indexing.forward.stores import EXTRAS
    from lexent.lexicon import shipped
    from lexent.search.fused import SIDES
    from lexent.studies.analyses import ANALYSES
    from lexent.studies.reproduction.reproduce import chosen
    from lexent.training.hard_negatives import Miner

    def known(option: str, names: Any, allowed: Any) -> None:
        assert set(names) <= set(allowed), f"{option}: {names}; allowed: {', '.join(allowed)}"

    for name in names_of(given.get("recipe") or ""):
        assert name in recipes.RECIPES or name.endswith(".json"), f"no recipe {name}"
    settings = {field.name for kind in (recipes.Recipe, recipes.BM25) for field in dataclasses.fields(kind)}
    chosen_settings = {key: value for key, value in given.items() if key in settings and value is not None}
    if verb in ("index", "retune", "eval"):
        recipe = recipes.get("latent-terms")
        recipe.having(**{key: value for key, value in chosen_settings.items() if key != "buckets"})
    known("--what", names_of(given.get("what") or ""), (*ANALYSES, "all"))
    known("--baselines", names_of(given.get("baselines") or ""), BASELINES)
    known("--with", names_of(given.get("extras") or ""), EXTRAS)
    known("--beside", names_of(given.get("beside") or ""), (*DIME, *LEARNED, "all"))
    if isinstance(given.get("measures"), str):
        measures.parse(given["measures"])
    if verb == "reproduce":
        chosen(given["paper"], only=names_of(given["only"]), skip=names_of(given["skip"]))
    if verb == "tune":
        known("--over", names_of(given["over"] or ""), (*GRID, "buckets"))
    if verb == "adapt train":
        for kind in (AdapterConfig, TrainSettings):
            fields = {field.name for field in dataclasses.fields(kind)}
            needed = {"dim": 384, "width": 384} if kind is AdapterConfig else {}
            kind(**needed | {key: value for key, value in given.items() if key in fields and value is not None})
    if verb in ("search", "eval"):
        weights = weights_of(given.get("fuse") or "", flag="--fuse")
        runs = [Path(run).stem for run in given.get("run") or []]
        known("--fuse", weights, (*BASELINES, *runs) if verb == "eval" else SIDES)
        filter_of(given.get("filter"))
    if verb == "train" and given.get("negatives"):
        known("--negatives", names_of(given["negatives"]), get_args(Miner))
    lexicons = given.get("lexicon") or []
    for name in [lexicons] if isinstance(lexicons, str) else lexicons:
        assert not str(name).startswith("all-MiniLM") or name in shipped(), f"no lexicon {name} ships"


COMMANDS = every("lexent")


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) > 100
    assert {command.page for command in COMMANDS} > {"README.md", "docs/train.md", "docs/search.md", "docs/serve.md"}


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_command_is_one_that_exists(command: Command) -> None:
    parsed = parse(command.words, whole=command.whole)
    if parsed is not None:
        check_values(parsed.verb, parsed.given)


def options() -> set[str]:
    """Every option of every verb, and of the scripts under benchmarks/."""
    found = {"--help", "--debug"}

    def walk(node: Any) -> None:
        for parameter in node.params:
            found.update([*parameter.opts, *parameter.secondary_opts])
        for child in getattr(node, "commands", {}).values():
            walk(child)

    walk(parser())
    for script in (ROOT / "benchmarks").glob("*.py"):
        found.update(re.findall(r'add_argument\(\s*"(--[a-z0-9-]+)"', script.read_text()))
    return found


MENTIONED = sorted(
    {
        (markdown.name(page), word.split("=")[0])
        for page in PAGES
        for span in markdown.spans(page)
        if span.startswith("-")
        for word in re.findall(r"(?<!\S)--?[a-z][a-z0-9-]*", span)
    }
)


def test_there_are_options_to_check() -> None:
    assert len(MENTIONED) > 50


@pytest.mark.parametrize(("page", "option"), MENTIONED, ids=str)
def test_option_that_the_prose_names_exists(page: str, option: str) -> None:
    assert option in options(), f"{page} names {option}"


# --- make and the scripts under benchmarks/ --------------------------------------------------------------------------


MAKEFILE = (ROOT / "Makefile").read_text()


def recipe_of(target: str) -> str:
    """The commands of a target of the Makefile."""
    found = re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
    assert found, f"no target {target} in the Makefile"
    return found.group(1)


@pytest.mark.parametrize("command", every("make"), ids=str)
def test_make_target_exists_and_takes_what_is_given(command: Command) -> None:
    target, *variables = command.words
    text = recipe_of(target)
    for name, value in (variable.split("=", 1) for variable in variables):
        assert re.search(rf"\$\({name}\)", text), f"{target} does not read {name}"
        text = text.replace(f"$({name})", value)
    for default, value in re.findall(r"^(\w+) [?:]= (.*)$", MAKEFILE, re.MULTILINE):
        text = text.replace(f"$({default})", value)
    text = text.replace("$(ARGS)", "")
    for line in text.splitlines():
        words = shlex.split(line.strip().lstrip("@"), comments=True)
        if any(word.startswith("benchmarks") for word in words):
            read_by_script(words[1:])


@pytest.mark.parametrize("command", every("python"), ids=str)
def test_script_exists_and_takes_what_is_given(command: Command) -> None:
    read_by_script(list(command.words))


class Read(Exception):
    """The arguments were read, and nothing else is to be done."""


def read_by_script(words: list[str]) -> None:
    """Has a script under benchmarks/ read its arguments with its own parser, and stop there."""
    import argparse

    module = words[1].removeprefix("benchmarks.") if words[0] == "-m" else Path(words[0]).stem
    script = ROOT / "benchmarks" / f"{module}.py"
    assert script.is_file(), f"no script {script.name}"
    arguments = words[2:] if words[0] == "-m" else words[1:]
    real, given, path = argparse.ArgumentParser.parse_args, sys.argv, list(sys.path)

    def read(self: argparse.ArgumentParser, *args: Any, **more: Any) -> Any:
        raise Read(real(self, *args, **more))

    argparse.ArgumentParser.parse_args = read  # type: ignore[method-assign]
    sys.argv, sys.path = [str(script), *arguments], [str(ROOT), *path]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except Read:
        return
    except SystemExit as error:
        raise AssertionError(f"{module}: refuses {arguments}") from error
    finally:
        argparse.ArgumentParser.parse_args = real  # type: ignore[method-assign]
        sys.argv, sys.path = given, path
    raise AssertionError(f"{module} reads no arguments")


# --- links, names and files ------------------------------------------------------------------------------------------


LINKS = [(page, link) for page in PAGES for link in markdown.links(page) if "://" not in link]


def test_there_are_links_to_check() -> None:
    assert len(LINKS) > 40


@pytest.mark.parametrize(
    ("page", "link"), LINKS, ids=lambda found: str(found) if isinstance(found, str) else found.stem
)
def test_link_leads_somewhere(page: Path, link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    assert target.exists(), f"{markdown.name(page)}: {link}"
    assert target.is_relative_to(ROOT), f"{markdown.name(page)}: {link} leaves the repository"
    if anchor:
        assert anchor in markdown.anchors(target), f"{markdown.name(page)}: {link}"


NAMES = sorted({span for page in PAGES for span in markdown.spans(page) if re.match(r"(lexent|index)(\.\w+)+", span)})
SOURCES = sorted(
    {
        (markdown.name(page), span)
        for page in PAGES
        for span in markdown.spans(page)
        if re.fullmatch(r"[\w/]+\.py", span)
    }
)


@pytest.mark.parametrize("span", NAMES)
def test_python_name_exists(span: str) -> None:
    """`lexent.search.Fast(...)`, `index.dense_search`: modules and attributes that are there."""
    import lexent
    from lexent.engine import Index

    first, *parts = re.match(r"\w+(?:\.\w+)*", span).group().split(".")  # type: ignore[union-attr]
    if parts in (["json"], ["md"]):
        return  # a file
    found: Any = lexent if first == "lexent" else Index
    for number, part in enumerate(parts):
        if not hasattr(found, part):
            assert first == "lexent", f"an index has no {part}"
            found = importlib.import_module(".".join(["lexent", *parts[: number + 1]]))
        else:
            found = getattr(found, part)


@pytest.mark.parametrize(("page", "file"), SOURCES, ids=str)
def test_source_file_exists(page: str, file: str) -> None:
    assert (ROOT / file).is_file() or (ROOT / "src" / "lexent" / file).is_file(), f"{page} names {file}"


@pytest.mark.parametrize("page", PAGES, ids=markdown.name)
def test_json_can_be_read(page: Path) -> None:
    for block in markdown.json_blocks(page):
        json.loads(block)


def test_docs_count_what_ships() -> None:
    from lexent.lexicon import load, shipped
    from lexent.studies.analyses import ANALYSES

    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    text = " ".join((ROOT / "docs" / "how-it-works.md").read_text().split())
    (sentence,) = re.findall(r"and (\w+ lexicons of named concepts .*?)\. ##", text)
    lexicons = [load(name) for name in shipped()]
    assert sentence.split()[0] == words[len(lexicons)]
    sizes = {size for lexicon in lexicons for size in (lexicon.token_size, lexicon.size - lexicon.token_size) if size}
    assert {int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", sentence)} == sizes
    text = " ".join((ROOT / "docs" / "how-to.md").read_text().split())
    named, more = re.findall(r"--what ([\w,]+) # .*?, and (\w+) more", text)[0]
    assert more == words[len(ANALYSES) - len(named.split(","))]
